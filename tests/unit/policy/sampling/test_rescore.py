from __future__ import annotations

import anyio
import pytest

from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import PromptTooLong, SamplerCapabilities, SampleRequest, SamplingParams
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.sampling.rescore import RescoringSampler, accept
from cuarl.trajectory import Group, Sampled, Trajectory, Turn
from tests.unit.policy.pictures import messages, screen


class TextOnly:
    """An endpoint over a local policy that gives away less than it knows."""

    def __init__(self, policy: QwenVLPolicy, **hidden: object) -> None:
        self.local, self.hidden = LocalSampler(policy), hidden
        self.truth: list[Sampled] = []

    @property
    def capabilities(self) -> SamplerCapabilities:
        return SamplerCapabilities(token_ids=False, logprobs=False, images=True, name="endpoint")

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        sampled = await self.local.sample(request)
        assert isinstance(sampled, Sampled)
        self.truth.append(sampled)
        return sampled.model_copy(update=self.hidden)

    async def close(self) -> None:
        pass


NOTHING = {"token_ids": (), "prompt_ids": (), "logprobs": None, "exact": False}


def sample(policy: QwenVLPolicy, hidden: dict[str, object], **params: float) -> tuple[Sampled, Sampled]:
    endpoint = TextOnly(policy, **hidden)
    request = SampleRequest(messages("go", screen(1)), SamplingParams(max_tokens=6, **params), seed=5)  # type: ignore[arg-type]
    found = anyio.run(RescoringSampler(endpoint, policy).sample, request)
    assert isinstance(found, Sampled)
    return found, endpoint.truth[0]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_missing_logprobs_are_those_that_were_drawn(policy: QwenVLPolicy, temperature: float) -> None:
    found, truth = sample(policy, {"logprobs": None}, temperature=temperature)
    assert found.token_ids == truth.token_ids and not found.exact
    assert found.logprobs == pytest.approx(truth.logprobs, abs=1e-4)


def test_text_alone_gets_a_prompt_ids_and_logprobs_and_stays_marked(policy: QwenVLPolicy) -> None:
    found, truth = sample(policy, dict(NOTHING))
    assert found.prompt_ids == truth.prompt_ids and not found.exact
    assert found.logprobs is not None and len(found.logprobs) == len(found.token_ids) > 0
    assert found.token_ids == policy.encode_answer(truth.text)[: len(found.token_ids)]


def test_exact_samples_pass(policy: QwenVLPolicy) -> None:
    found, truth = sample(policy, {})
    assert found == truth


def test_an_answer_is_scored_up_to_a_placeholder(policy: QwenVLPolicy) -> None:
    """The wire's reading has cut the text there; no end of turn is made up behind it."""
    found, _ = sample(policy, {**NOTHING, "text": "ab", "stop": "special_token"})
    assert found.token_ids == policy.encode_answer("ab")[:-1]


def test_an_answer_that_is_but_a_placeholder_has_nothing_to_score(policy: QwenVLPolicy) -> None:
    found, _ = sample(policy, {**NOTHING, "text": "", "stop": "special_token"})
    assert found.nothing_said and found.logprobs is None


def test_only_what_was_rescored_is_let_into_training(policy: QwenVLPolicy) -> None:
    rescored, _ = sample(policy, dict(NOTHING))
    unscored = rescored.model_copy(update={"logprobs": None})
    turns = tuple(Turn(index=i, screenshot=screen(1).ref, sampled=s) for i, s in enumerate((rescored, unscored)))
    trajectory = Trajectory(episode_id="e", task_id="t", goal="g", turns=turns, stop="done")
    (group,) = accept([Group(group_id="g", task_id="t", trajectories=(trajectory,))])
    assert [t.sampled.exact for t in group.trajectories[0].turns if t.sampled] == [True, False]
