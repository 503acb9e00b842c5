import anyio
import anyio.from_thread
import pytest

from cuarl.errors import SamplerError
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import PromptTooLong, SampleRequest, SamplingParams
from cuarl.policy.sampling.local import LocalSampler
from cuarl.trajectory import Sampled
from tests.unit.policy.pictures import messages, screen

PARAMS = SamplingParams(max_tokens=4)


async def _episodes(sampler: LocalSampler, order: list[int]) -> dict[int, list[Sampled]]:
    """Three episodes of two or three turns that start in the given order."""
    taken: dict[int, list[Sampled]] = {}

    async def episode(name: int) -> None:
        with sampler.join():
            taken[name] = []
            for turn in range(2 + name % 2):
                shown = messages("go", screen(10 * turn + name))
                sampled = await sampler.sample(SampleRequest(shown, PARAMS, seed=100 * name + turn))
                assert isinstance(sampled, Sampled)
                taken[name].append(sampled)

    async with anyio.create_task_group() as tasks:
        for name in order:
            tasks.start_soon(episode, name)
    return taken


def test_concurrent_episodes_are_reproduced_bit_for_bit_in_any_order(qwen3: QwenVLPolicy) -> None:
    qwen3.vision.cache.clear()
    qwen3.vision.features([screen(1), screen(5), screen(6), screen(7)])  # as an earlier batch would have left it
    qwen3.forget_prompts()
    first = anyio.run(_episodes, LocalSampler(qwen3), [0, 1, 2])
    qwen3.vision.cache.clear()
    qwen3.forget_prompts()
    second = anyio.run(_episodes, LocalSampler(qwen3), [2, 0, 1])
    assert first == second
    assert [len(first[i]) for i in range(3)] == [2, 3, 2]


def test_a_long_prompt_is_refused_before_any_forward_pass(qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qwen3.decoder, "embed", None)
    request = SampleRequest(messages("go", screen(1)), PARAMS, seed=0, max_prompt_tokens=10)
    reply = anyio.run(LocalSampler(qwen3).sample, request)
    assert isinstance(reply, PromptTooLong) and (reply.limit, reply.needed > 10) == (10, True)


def test_the_context_bounds_every_prompt(qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qwen3, "context", 12)
    reply = anyio.run(LocalSampler(qwen3).sample, SampleRequest(messages("go", screen(1)), PARAMS, seed=0))
    assert isinstance(reply, PromptTooLong) and reply.limit == 11


def test_a_failing_forward_pass_is_the_samplers_error(qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of memory\nand a long tail")

    monkeypatch.setattr(qwen3.decoder, "logits", fail)
    with pytest.raises(SamplerError, match="out of memory") as caught:
        anyio.run(LocalSampler(qwen3).sample, SampleRequest(messages("go"), PARAMS, seed=0))
    assert "tail" not in caught.value.what


def test_everything_a_local_sampler_gives_is_exact(qwen3: QwenVLPolicy) -> None:
    given = LocalSampler(qwen3).capabilities
    assert given.token_ids and given.logprobs and given.images
    assert given.name == qwen3.name


def test_sampling_that_nobody_waits_for_ends_at_the_next_token(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    long = SamplingParams(max_tokens=400)

    async def cancelled() -> bool:
        with anyio.CancelScope() as scope:

            def halted() -> bool:
                asked.append(len(asked) > 3)
                if asked[-1]:
                    anyio.from_thread.run_sync(scope.cancel)
                return asked[-1]

            monkeypatch.setattr(qwen3, "halted", halted)
            await LocalSampler(qwen3).sample(SampleRequest(messages("go", screen(1)), long, seed=0))
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    assert asked == [False] * 4 + [True]
