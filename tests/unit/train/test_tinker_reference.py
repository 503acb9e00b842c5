"""What is known at Tinker by forward passes alone: divergences, and what training starts from and goes on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("tinker", reason="the extra tinker is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

from cuarl.errors import CheckpointError, TrainError
from cuarl.local.tinker import Fault, weights
from cuarl.policy.load import load_policy
from cuarl.policy.spec import ModelSpec
from cuarl.train.batch import BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.schedule import OptimConfig
from cuarl.train.tinker_checkpoints import TinkerCheckpoints, saved_state
from cuarl.workflow.tinker import starting_state
from tests.unit.policy.conftest import qwen3_folder, tokenizer  # noqa: F401
from tests.unit.train.test_tinker import EPISODE, LORA, World, ask, batch, world  # noqa: F401

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # the SDK's own loop, at exit
]
PENALTY = BatchConfig(credit="episode", kl_coef=0.5, kl_estimator="k1")


def test_a_penalty_and_the_divergence_after_an_update_are_those_of_training_here(world: World) -> None:  # noqa: F811
    learner = world.learner(batch=PENALTY, compute_post_kl=True)
    learner._reference = world.service.create_sampling_client(base_model="tiny").result()
    here = Learner(
        load_policy(ModelSpec(model=str(world.folder), lora=LORA, train="adapter")),
        LearnerConfig(
            batch=PENALTY,
            loss=LossConfig(kl_penalty_coef=0.5, kl_in="reward", kl_estimator="k1"),
            optim=OptimConfig(learning_rate=1e-2),
            compute_post_kl=True,
        ),
    )
    for step in (1, 2):  # only the second starts from a policy that is another than the base
        made = batch(ask(learner.sampler, range(10 * step, 10 * step + 8)))
        there, ours = learner.update(made, step), here.update(made, step)
    assert there["policy/kl_ref"] > 1e-4
    for name in ("policy/kl_ref", "policy/kl_post", "policy/kl_post_k1", "policy/logprob_diff_mean"):
        assert there[name] == pytest.approx(ours[name], rel=2e-2, abs=1e-5), name
    mine, theirs = weights(here.policy), weights(world.policy)
    assert all(torch.allclose(mine[name], theirs[name], atol=5e-4) for name in mine)


def test_a_reference_that_does_not_answer_ends_the_step_before_anything_is_learnt(world: World) -> None:  # noqa: F811
    learner = world.learner(batch=PENALTY)
    learner._reference = world.service.create_sampling_client(base_model="tiny").result()
    made = batch(ask(learner.sampler, range(8)))
    world.server.faults = [Fault("result", failure="out of order", kind="sample")]
    with pytest.raises(TrainError, match="out of order"):
        learner.update(made, 1)
    assert world.policy.version == 0 and world.server.log["forward_backward"] == 0


class Flight:
    """What is in flight, as a text that changes."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin_step(self) -> None:
        self.told.append("begun")

    def undo_step(self) -> None:
        self.told.append("undone")

    def state(self) -> str:
        return json.dumps(self.told)


def test_the_newest_checkpoint_has_what_is_in_flight(world: World, tmp_path: Path) -> None:  # noqa: F811
    learner = world.learner()
    learner.stream = Flight()
    checkpoints = TinkerCheckpoints(tmp_path, learner, run="r")
    for step in (1, 2):
        learner.begin_step(step)
        checkpoints.save(step)
        checkpoints.commit(step, {})
    learner.undo_step()
    found = saved_state(tmp_path)
    assert found is not None and found.step == 2 and found.stream == '["begun", "begun"]'
    assert len(list(tmp_path.rglob("stream.json"))) == 1


def test_training_starts_from_weights_that_are_kept_there(world: World, tmp_path: Path) -> None:  # noqa: F811
    learner = world.learner()
    learner.update(batch(ask(learner.sampler, range(8))), 1)
    folder = TinkerCheckpoints(tmp_path, learner, run="r").save(1)
    path = starting_state(str(folder))
    assert path == starting_state(path) == json.loads((folder / "tinker.json").read_text())["state"]
    world.learner(world.service.create_training_client_from_state(path).result(), batch=EPISODE)
    before, after = (weights(model.policy) for model in world.server.models.values())
    assert all(torch.equal(before[name], after[name]) for name in before)
    with pytest.raises(CheckpointError, match="no checkpoint of training at Tinker"):
        starting_state(str(tmp_path / "nowhere"))
    with pytest.raises(CheckpointError, match="saved for training"):
        starting_state(path.replace("/weights/", "/sampler_weights/"))
