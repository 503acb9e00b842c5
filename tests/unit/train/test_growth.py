"""Hundreds of steps leave nothing behind: objects and tensors that are alive are counted along the way."""

import gc

import pytest
import torch

from cuarl.train.batch import BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.replay import ReplayConfig

from .policies import played, tiny_policy

STEPS = 500


def alive():
    gc.collect()
    found = gc.get_objects()
    return len(found), sum(t.nbytes for t in found if issubclass(type(t), torch.Tensor))


@pytest.mark.slow
def test_five_hundred_steps_of_learning_leave_nothing_behind():
    policy = tiny_policy()
    config = LearnerConfig(
        reference="start",
        loss=LossConfig(kl_penalty_coef=0.01, decoupled=True),
        batch=BatchConfig(reduction="turn"),
        replay=ReplayConfig(per_task=2),
    )
    learner = Learner(policy, config)
    batches = [played(policy, [rewards], turns=1, seed=seed) for seed, rewards in enumerate([(1, 0), (0, 0), (1, 1)])]
    counts = {}
    for step in range(1, STEPS + 1):
        learner.begin_step(step)
        assert learner.update(batches[step % 3], step)["optim/updates"] == 1
        if step % 100 == 0:
            counts[step] = alive()
    objects, tensors = zip(*counts.values(), strict=True)
    assert max(objects) - objects[0] < 50, counts
    assert max(tensors) == tensors[0], counts
