"""What a lock-step rollout computes, exactly: the engine's counts against slow ones from the recorded turns alone."""

from __future__ import annotations

import anyio
import pytest

from benchmarks.work import count, decoding_rows
from cuarl.agent import formats
from cuarl.agent.model import ModelAgent
from cuarl.agent.prompt import Window
from cuarl.env.sim.phone import SimEnv
from cuarl.policy.generate import generate
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.qwen_vl.engine.pages import PAGE
from cuarl.policy.sampler import Message, Picture, SampledText, SamplingParams, Text
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.spec import ModelSpec
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import Limits, plan
from cuarl.tasks.task import Check, Task
from cuarl.train.metrics import METRICS, sampling_metrics
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import screen

pytestmark = pytest.mark.integration

TASKS = [
    Task(id=path, description=f"Turn {path} off", checks=(Check(path=path, value=False),))
    for path in ("network.wifi.enabled", "network.bluetooth.enabled")
]
TURNS = 4


@pytest.fixture(scope="module")
def policy(qwen3_folder):  # noqa: F811
    return load_policy(ModelSpec(model=str(qwen3_folder), device="cpu"))


def batches(policy, window):
    """Eight episodes of four turns, all at once: turn by turn what was sampled, and the counts."""
    sampler, said = LocalSampler(policy), formats.get("qwen3-vl")

    async def make_env(task):
        return SimEnv()

    setup = Setup(
        make_env=make_env,
        join=sampler.join,
        limits=Limits(max_invalid=TURNS, max_turns=TURNS),
        make_agent=lambda spec, env: ModelAgent(sampler, said, params=SamplingParams(max_tokens=12), window=window),
    )
    policy.forget_prompts()
    policy.forget_pictures()
    policy.take_work()

    async def work():
        with anyio.fail_after(60):
            return await collect(plan(TASKS, group_size=4, run_seed=0, prefix="g"), setup, max_concurrent=8)

    turns = [t.turns for group in anyio.run(work) for t in group.trajectories]
    found = [[t[i].sampled for t in turns if len(t) > i] for i in range(TURNS)]
    return found, policy.take_work()


WINDOWS = {"one picture": Window(), "all turns": Window(history_images=TURNS, history_turns=TURNS)}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_a_rollout_computes_what_it_has_to_and_counts_it(policy, window):
    found, work = batches(policy, window)
    assert [len(batch) for batch in found] == [8] * TURNS
    counted, metrics = count(found, policy.special.image), sampling_metrics(work)
    assert set(metrics) <= set(METRICS)
    assert (work.prompts, metrics["sampling/prompt_tokens"]) == (counted.prompts, counted.tokens)
    assert metrics["sampling/prefilled_tokens"] == counted.by_page < counted.tokens
    # beyond what is needed: of each prompt less than a page, and what prompts of one batch begin with alike
    alike = 2 * TURNS * PAGE
    assert 0 <= counted.by_page - counted.necessary < PAGE * counted.prompts + alike

    decoded, rows = sum(len(s.token_ids) - 1 for batch in found for s in batch), decoding_rows(found)
    assert metrics["sampling/decoded_tokens"] == decoded
    assert metrics["sampling/idle_frac"] == pytest.approx(1 - decoded / rows, abs=1e-12)
    assert metrics["sampling/pictures"] == len({p.digest for batch in found for s in batch for p in s.images})
    assert metrics["time/sampling_s"] > 0


def test_nothing_is_said_where_nothing_was_sampled(policy):
    policy.take_work()
    assert sampling_metrics(policy.take_work()) == {} == sampling_metrics(None)


def test_of_screens_at_a_real_size_little_more_is_prefilled_than_has_to_be(policy):
    """Each turn of two attempts at two tasks shows a new screen of 256 image tokens: at most 5 % above what is new."""
    policy.forget_prompts()
    policy.take_work()
    said, found = [[] for _ in range(4)], []
    for turn in range(4):
        jobs = [
            Job(_prompt(policy, f"Task {i // 2}", said[i], 10 * (i // 2)), SamplingParams(max_tokens=12), 7 * turn + i)
            for i in range(4)
        ]
        found.append(generate(policy, jobs))
        for answers, sampled in zip(said, found[-1], strict=True):
            answers.append(sampled.token_ids)
    counted, work = count(found, policy.special.image), policy.take_work()
    assert work.prompt_tokens - work.reused_tokens == counted.by_page <= 1.05 * counted.necessary
    assert work.pictures == 8


def _prompt(policy, goal, answers, first):
    messages = [Message("user", (Picture(screen(first, 512, 512)), Text(goal)))]
    for number, ids in enumerate(answers, 1):
        messages.append(Message("assistant", (SampledText(policy.decode(ids), ids),)))
        messages.append(Message("user", (Picture(screen(first + number, 512, 512)),)))
    return policy.render(messages)
