"""Budgets of tokens: what gives way, what never does, and that what was sampled is what is scored."""

import anyio
import pytest
import torch

from cuarl.agent import formats
from cuarl.agent.base import Decision
from cuarl.agent.model import ModelAgent
from cuarl.agent.prompt import Window
from cuarl.agent.scripted import DemonstratingAgent
from cuarl.agent.wording import Wording
from cuarl.errors import ConfigError
from cuarl.policy.inputs import Row
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.score import Scorer
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
from cuarl.types import Action, Observation, Wait
from tests.unit.policy.conftest import qwen3, qwen3_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import screen

FORMAT = formats.get("qwen3-vl")
TASK = TaskInstance(task_id="wifi", goal="turn on wifi")
SCREENS = [screen(i, 64, 96 + 32 * (i % 3)) for i in range(7)]
WIDE = Window(history_images=4, history_turns=5)


class Waiting:
    """A teacher that waits."""

    name = "waiting"

    async def act(self, *_: object) -> Decision:
        return Decision(action=Wait())


def play(agent: ModelAgent | DemonstratingAgent) -> list[Turn]:
    """All screens in turn, whatever the agent answers."""

    async def work() -> list[Turn]:
        turns: list[Turn] = []
        for i, shown in enumerate(SCREENS):
            decision = await agent.act(TASK, Observation(shown), turns, i)
            assert decision.too_long is None
            turns.append(Turn(index=i, screenshot=shown.ref, action=_of(decision), sampled=decision.sampled))
        return turns

    return anyio.run(work)


def _of(decision: Decision) -> Action | None:
    return decision.action


def agents(policy: QwenVLPolicy, window: Window) -> list[ModelAgent | DemonstratingAgent]:
    params = SamplingParams(max_tokens=12)
    return [
        ModelAgent(LocalSampler(policy), FORMAT, params=params, window=window),
        DemonstratingAgent(Waiting(), Wording(FORMAT, policy.written, window=window)),
    ]


def budget(policy: QwenVLPolicy) -> int:
    """Room for one turn and a little more."""
    first = anyio.run(agents(policy, Window())[0].act, TASK, Observation(SCREENS[0]), (), 0)
    assert first.sampled is not None
    return len(first.sampled.prompt_ids) + 70


def shown(turn: Turn) -> list[str]:
    assert turn.sampled is not None
    return [ref.digest for ref in turn.sampled.images]


@pytest.mark.parametrize("older", ["text", "drop"])
def test_prompts_keep_within_the_budget_and_always_have_the_present_screen_and_the_task(
    qwen3: QwenVLPolicy,  # noqa: F811
    older: str,
) -> None:
    window, most = WIDE.but(history_older=older), budget(qwen3)
    for free, bound in zip(agents(qwen3, window), agents(qwen3, window.but(max_prompt_tokens=most)), strict=True):
        wide, tight = play(free), play(bound)
        assert max(len(t.sampled.prompt_ids) for t in wide if t.sampled) > most
        narrower = 0
        for turn, unbound in zip(tight, wide, strict=True):
            assert turn.sampled is not None and unbound.sampled is not None
            assert len(turn.sampled.prompt_ids) <= most
            assert shown(turn)[-1] == turn.screenshot.digest
            assert TASK.goal in qwen3.decode(turn.sampled.prompt_ids)
            assert FORMAT.system_prompt[:20] in qwen3.decode(turn.sampled.prompt_ids)
            pictures = sum(qwen3.images.grid(s.width, s.height).tokens for s in SCREENS if s.digest in shown(turn))
            assert turn.sampled.prompt_ids.count(qwen3.special.image) == pictures, "no picture is cut"
            narrower += shown(turn) != shown(unbound)
        assert narrower >= 3


@pytest.mark.parametrize("older", ["text", "drop"])
def test_what_was_sampled_within_a_budget_is_what_is_scored(qwen3: QwenVLPolicy, older: str) -> None:  # noqa: F811
    sampling, _ = agents(qwen3, WIDE.but(history_older=older, max_prompt_tokens=budget(qwen3)))
    known = {s.digest: s for s in SCREENS}
    turns = [Turn.model_validate_json(t.model_dump_json()) for t in play(sampling)]
    rows = [
        Row(t.sampled.prompt_ids, tuple(known[d] for d in shown(t)), t.sampled.token_ids) for t in turns if t.sampled
    ]
    for pack in (False, True):
        with torch.no_grad():
            scores = Scorer(qwen3).eval()(qwen3.collate(rows, pack=pack)).logprobs
        for turn, scored in zip(turns, scores, strict=True):
            assert turn.sampled is not None and turn.sampled.logprobs is not None
            recorded = torch.tensor(turn.sampled.logprobs)
            assert (scored[: len(recorded)] - recorded).abs().max() < 1e-4


def test_a_budget_that_a_turn_alone_exceeds_is_an_error_that_says_what_it_takes(qwen3: QwenVLPolicy) -> None:  # noqa: F811
    for agent in agents(qwen3, WIDE.but(max_prompt_tokens=20)):
        with pytest.raises(
            ConfigError, match=r"one turn alone .* takes [0-9]+ tokens, and max_prompt_tokens is 20"
        ) as error:
            play(agent)
        assert error.value.where == "task wifi"
        needed = int(str(error.value.hint).removeprefix("--max-prompt-tokens "))
        first = Window(max_prompt_tokens=needed)
        again = agents(qwen3, first)[0]
        decision = anyio.run(again.act, TASK, Observation(SCREENS[0]), (), 0)
        assert decision.sampled is not None and len(decision.sampled.prompt_ids) == needed


def test_a_full_context_without_a_budget_is_the_episodes_end(qwen3: QwenVLPolicy, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setattr(qwen3, "context", 20)
    for agent in agents(qwen3, WIDE):
        decision = anyio.run(agent.act, TASK, Observation(SCREENS[0]), (), 0)
        assert decision.too_long is not None and decision.too_long.limit == 19
