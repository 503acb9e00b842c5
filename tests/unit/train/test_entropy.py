"""The entropy floor: a bonus that looks for its size, and is there only below the floor."""

import pytest
import torch

from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.config import LearnerConfig
from cuarl.train.entropy import STEP, EntropyFloor
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.schedule import OptimConfig

from .policies import played, tiny_policy, weights


def test_the_bonus_grows_below_the_floor_shrinks_above_it_and_is_there_only_below():
    floor, told = EntropyFloor(1.0), []
    for entropy in (2.0, 0.9, 0.8, 1.1, 0.9, 1.0, 1.2, 1.3, 1.4, 0.5):
        told.append(round(floor.observe({"policy/entropy": entropy})["policy/entropy_coef"] / STEP))
    # of each step; what a step's entropy changes is the next one's
    assert told == [0, 0, 1, 2, 0, 2, 0, 0, 0, 0] and floor.coef == pytest.approx(STEP)
    before = floor.state()
    assert floor.observe({}) == {"policy/entropy_coef": pytest.approx(STEP)} and floor.state() == before


def learner_of(floor, coef=0.0, rate=1e-2):
    optim = OptimConfig(learning_rate=rate)
    return Learner(tiny_policy(), LearnerConfig(entropy_floor=floor, loss=LossConfig(entropy_coef=coef), optim=optim))


def step(learner, number, rewards=((1, 0, 0), (0, 1))):
    learner.begin_step(number)
    return learner.update(played(learner.policy, list(rewards), seed=number, version=number - 1), number)


def test_above_the_floor_nothing_changes_and_below_it_the_next_step_has_the_bonus():
    plain, above, below = learner_of(0.0), learner_of(0.1), learner_of(100.0)
    first = [step(one, 1) for one in (plain, above, below)]
    assert all(one["policy/entropy"] > 0.1 for one in first)
    assert "policy/entropy_coef" not in first[0] and first[2]["policy/entropy_coef"] == 0
    fixed = learner_of(0.0)
    step(fixed, 1)
    fixed._objective.entropy_bonus = STEP  # what a fixed bonus would be from here on
    told = [step(one, 2) for one in (plain, above, below, fixed)]
    assert told[1]["policy/entropy_coef"] == 0 and told[2]["policy/entropy_coef"] == STEP
    now = [weights(one.policy) for one in (plain, above, below, fixed)]
    assert all(torch.equal(now[0][name], now[1][name]) for name in now[0])
    assert all(torch.equal(now[2][name], now[3][name]) for name in now[0])
    assert any(not torch.equal(now[0][name], now[2][name]) for name in now[0])


def test_below_the_floor_groups_that_teach_nothing_keep_the_entropy_up():
    learner = learner_of(100.0, rate=3e-3)
    step(learner, 1)
    same = played(learner.policy, [(1, 1), (0, 0)], seed=7, version=1)
    entropies = []
    for number in range(2, 13):
        learner.begin_step(number)
        entropies.append(learner.update(same, number)["policy/entropy"])
    # the first updates still go where the rewards of the first step have sent the moments
    assert entropies[3:] == sorted(entropies[3:]) and entropies[-1] > max(entropies[:3]) + 0.05


def test_the_bonus_goes_on_after_a_resume(tmp_path):
    def made():
        learner = learner_of(100.0)
        return learner, Checkpoints(tmp_path, learner, About(run="mine", base_model="org/model"))

    learner, checkpoints = made()
    whole = [step(learner, number) for number in (1, 2)]
    checkpoints.save(2)
    checkpoints.commit(2, {})
    whole.append(step(learner, 3))
    expected = weights(learner.policy)
    learner, checkpoints = made()
    assert checkpoints.restore() == 2
    assert step(learner, 3) == whole[2] and whole[2]["policy/entropy_coef"] == pytest.approx(2 * STEP)
    assert all(torch.equal(expected[name], p) for name, p in weights(learner.policy).items())
