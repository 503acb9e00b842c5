"""The real Tinker SDK against a local server that trains with our own code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
import torch

pytest.importorskip("tinker", reason="the extra tinker is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

from cuarl.errors import SamplerError, TrainError
from cuarl.local.tinker import Fault, TinkerServer, running, weights
from cuarl.policy.load import load_policy, load_renderer
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.remote.tinker import TinkerSampler, connect, model_input
from cuarl.policy.sampler import Message, Picture, SampledText, SampleRequest, SamplingParams
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.train.batch import Batch, BatchConfig, policy_updates
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.schedule import OptimConfig
from cuarl.train.tinker import TinkerConfig, TinkerLearner
from cuarl.train.tinker_checkpoints import TinkerCheckpoints, saved_state
from cuarl.trajectory import Group, Sampled, Trajectory, Turn
from tests.unit.policy.conftest import qwen3_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import messages, screen

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # the SDK's own loop, at exit
]
KEY = "tml-canary-0123456789"
LORA = LoraSpec(rank=4, targets="attention+mlp")
EPISODE = BatchConfig(credit="episode")


class World:
    """A server, a client of it, and what the two are about."""

    def __init__(self, folder: Path, server: TinkerServer, url: str) -> None:
        self.folder, self.server = folder, server
        self.renderer = load_renderer(ModelSpec(model=str(folder)))
        self.service = connect(KEY, url)
        self.client = self.service.create_lora_training_client("tiny", rank=4, seed=0).result()

    def learner(self, client: Any = None, **changes: Any) -> TinkerLearner:
        sampler = TinkerSampler(None, self.renderer, name="tiny", context=2048)
        made = TinkerLearner(
            client or self.client,
            sampler,
            self.renderer,
            TinkerConfig(**{"learning_rate": 1e-2, "batch": EPISODE, **changes}),
        )
        made.refresh(0)
        return made

    @property
    def policy(self) -> QwenVLPolicy:
        (model,) = self.server.models.values()
        return model.policy


@pytest.fixture
def world(qwen3_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:  # noqa: F811
    monkeypatch.setenv("TINKER_TELEMETRY", "0")

    def make(rank: int, seed: int) -> QwenVLPolicy:
        return load_policy(ModelSpec(model=str(qwen3_folder), lora=LORA, train="adapter"))

    server = TinkerServer(make, chunk_bytes=60_000)
    with running(server) as url:
        world = World(qwen3_folder, server, url)
        yield world
        world.service.close("success").result()


def ask(sampler: TinkerSampler, seeds: Sequence[int], **params: Any) -> list[Sampled]:
    found: dict[int, Sampled] = {}

    async def one(seed: int) -> None:
        request = SampleRequest(messages("go", screen(1)), SamplingParams(**{"max_tokens": 4, **params}), seed=seed)
        sampled = await sampler.sample(request)
        assert isinstance(sampled, Sampled)
        found[seed] = sampled

    async def all_of_them() -> None:
        async with anyio.create_task_group() as tasks:
            for seed in seeds:
                tasks.start_soon(one, seed)

    anyio.run(all_of_them)
    return [found[seed] for seed in seeds]


def early(sampled: Sampled) -> float:
    """A reward that a random policy can earn: how many of the sampled tokens are of the first half of the
    vocabulary."""
    return sum(t < 130 for t in sampled.token_ids) / len(sampled.token_ids)


def batch(samples: Sequence[Sampled]) -> Batch:
    trajectories = tuple(
        Trajectory(
            episode_id=f"e{i}",
            task_id="t",
            goal="go",
            stop="done",
            reward=early(s),
            attempt=i,
            turns=(Turn(index=0, screenshot=screen(1).ref, sampled=s),),
        )
        for i, s in enumerate(samples)
    )
    group = Group(group_id="g", task_id="t", trajectories=trajectories)
    return Batch((group,), {screen(1).digest: screen(1)})


def test_samples_are_those_of_our_own_sampler(world: World) -> None:
    from cuarl.policy.sampling.local import LocalSampler

    sampler = world.learner().sampler
    (there,) = ask(sampler, [5])
    request = SampleRequest(messages("go", screen(1)), SamplingParams(max_tokens=4), seed=5)
    here = anyio.run(LocalSampler(load_policy(ModelSpec(model=str(world.folder)))).sample, request)
    assert isinstance(here, Sampled)
    assert (there.prompt_ids, there.token_ids, there.text, there.stop) == (
        here.prompt_ids,
        here.token_ids,
        here.text,
        here.stop,
    )
    assert there.logprobs == pytest.approx(here.logprobs, abs=1e-5) and world.server.keys == {KEY}
    (cold,) = ask(sampler, [5], temperature=0.5)
    assert cold.logprobs is None, "the service's are of temperature 1"


def test_a_prompt_becomes_chunks_and_back(world: World) -> None:
    prompt = world.renderer.render(messages("go", screen(1), screen(2)))
    assert isinstance(prompt, Prompt)
    sent = model_input(prompt.ids, prompt.screenshots, world.renderer)
    assert [c.type for c in sent.chunks] == ["encoded_text", "image", "encoded_text", "image", "encoded_text"]
    assert sent.length == len(prompt.ids)
    with pytest.raises(ValueError, match="more pictures"):
        model_input(prompt.ids, (*prompt.screenshots, screen(3)), world.renderer)
    with pytest.raises(ValueError, match="more image tokens"):
        model_input(prompt.ids, prompt.screenshots[:1], world.renderer)


class Reciting:
    """A client whose service sampled these tokens."""

    def __init__(self, *tokens: int) -> None:
        self.tokens = tokens

    async def sample(self, **asked: Any) -> Any:
        said = {"stop_reason": "stop", "tokens": list(self.tokens), "logprobs": [-0.5] * len(self.tokens)}
        return SimpleNamespace(sequences=[SimpleNamespace(**said)])


def test_an_image_token_that_the_service_sampled_ends_the_answer_and_is_not_trained(world: World) -> None:
    learner = world.learner()
    (fine,) = ask(learner.sampler, [1])
    names = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
    for odd in world.renderer._tokenizer.convert_tokens_to_ids(list(names)):
        for tokens in ((40, 41, odd, 42), (40, 41, odd), (odd,)):
            (cut,) = ask(TinkerSampler(Reciting(*tokens), world.renderer, name="tiny", context=2048), [5])
            assert (cut.stop, cut.token_ids) == ("special_token", tokens[: tokens.index(odd)])
            assert cut.text == world.renderer.decode(cut.token_ids)
            after = (
                Message("assistant", (SampledText(cut.text, cut.token_ids),)),
                Message("user", (Picture(screen(2)),)),
            )
            prompt = world.renderer.render((*messages("go", screen(1)), *after))
            assert isinstance(prompt, Prompt) and model_input(prompt.ids, prompt.screenshots, world.renderer)
            # as it is recorded now, and as it was before
            uncut = cut.model_copy(update={"token_ids": tokens, "logprobs": (-0.5,) * len(tokens), "stop": "eos"})
            for recorded in (cut, uncut) if odd == world.renderer.special.image else ():
                metrics = learner.update(_rewarded(fine, recorded), 1)
                assert metrics["train/tokens"] == len(fine.token_ids) + len(cut.token_ids)
                assert all(abs(value) < 1e6 for value in metrics.values()), metrics


def _rewarded(*samples: Sampled) -> Batch:
    """A group whose attempts have different rewards."""
    trajectories = tuple(
        Trajectory(
            episode_id=f"e{i}",
            task_id="t",
            goal="go",
            stop="done",
            reward=float(i),
            attempt=i,
            turns=(Turn(index=0, screenshot=screen(1).ref, sampled=s),),
        )
        for i, s in enumerate(samples)
    )
    return Batch((Group(group_id="g", task_id="t", trajectories=trajectories),), {screen(1).digest: screen(1)})


def test_the_loss_falls_in_five_steps(world: World) -> None:
    """Imitation of eight answers of its own at random: memorised more with every step."""
    learner = world.learner(algorithm="sft", learning_rate=2e-2)
    made = batch(ask(learner.sampler, range(8)))
    losses = [learner.update(made, step)["policy/loss"] for step in range(1, 6)]
    assert all(later < earlier for earlier, later in pairwise(losses)) and losses[-1] < losses[0] - 0.1, losses
    assert learner.sampler.version == 5


@pytest.mark.parametrize("loss", ["ppo", "importance_sampling"])
def test_an_update_there_equals_one_here(world: World, loss: Any) -> None:
    """Sums there, weighted sums here; ratio bounds there, distances here; several chunks there, one pass here."""
    learner = world.learner(loss=loss)
    made = batch(ask(learner.sampler, range(24)))
    here = Learner(
        load_policy(ModelSpec(model=str(world.folder), lora=LORA, train="adapter")),
        LearnerConfig(batch=EPISODE, loss=LossConfig(), optim=OptimConfig(learning_rate=1e-2)),
    )
    learner.update(made, 1)
    here.update(made, 1)
    assert len(world.server.chunks) > 1, "the batch has to be large enough for several chunks"
    ours, theirs = weights(here.policy), weights(world.policy)
    assert all(torch.allclose(ours[name], theirs[name], atol=2e-4) for name in ours)
    assert any(bool(theirs[name].any()) for name in theirs if "lora_B" in name)


def test_a_saved_state_goes_on_as_if_nothing_had_happened(world: World, tmp_path: Path) -> None:
    learner = world.learner()
    first = batch(ask(learner.sampler, range(8)))
    learner.update(first, 1)
    checkpoints = TinkerCheckpoints(tmp_path, learner, run="r")
    for _ in range(2):  # a step that was saved, but not committed, is saved again
        checkpoints.save(1)
    assert saved_state(tmp_path) is None
    checkpoints.commit(1, {}, {"reward/mean": 0.5})
    assert saved_state(tmp_path).pending == {"reward/mean": 0.5}
    checkpoints.commit(1, {})
    second = batch(ask(learner.sampler, range(50, 58)))
    learner.update(second, 2)
    whole = weights(world.policy)
    found = saved_state(tmp_path)
    assert found is not None and (found.step, found.pending) == (1, None)
    again = world.learner(world.service.create_training_client_from_state_with_optimizer(found.path).result())
    again.update(second, 2)
    resumed = weights(list(world.server.models.values())[-1].policy)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_sdk_gets_over_what_passes(world: World) -> None:
    learner = world.learner()
    world.server.faults = [
        Fault("asample", 429), Fault("asample", 500), Fault("retrieve_future", 408, kind="sample"),
        Fault("retrieve_future", 503, kind="sample"), Fault("retrieve_future", 410, kind="sample"),
    ]  # fmt: skip
    samples = ask(learner.sampler, range(4))
    world.server.faults = [Fault("optim_step", 500), Fault("retrieve_future", 408, times=2, kind="forward_backward")]
    learner.update(batch(samples), 1)
    assert not any(f.times for f in world.server.faults)
    assert world.policy.version == 1, "the step was made once"


def test_what_does_not_pass_is_one_of_our_errors(world: World) -> None:
    learner = world.learner()
    made = batch(ask(learner.sampler, range(8)))
    world.server.faults = [Fault("result", failure="prompt too long", kind="sample")]
    with pytest.raises(SamplerError, match="prompt too long"):
        ask_one(learner.sampler)
    world.server.faults = [Fault("retrieve_future", 410, kind="forward_backward")]
    with pytest.raises(TrainError, match="lost the result") as caught:
        learner.update(made, 1)
    assert "--resume" in str(caught.value)


def ask_one(sampler: TinkerSampler) -> object:
    return anyio.run(sampler.sample, SampleRequest(messages("go"), SamplingParams(max_tokens=2), seed=1))


def test_rows_without_advantage_send_nothing(world: World) -> None:
    learner = world.learner()
    samples = ask(learner.sampler, [1]) * 4
    assert not policy_updates(batch(samples).groups, EPISODE)[0]
    metrics = learner.update(batch(samples), 1)
    assert metrics["optim/skipped_flat"] == 1 and world.server.log["forward_backward"] == 0
