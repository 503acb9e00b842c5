"""The reference of the KL penalty: the base, or the policy that training began with (case C35)."""

import math

import pytest
import torch

from cuarl.errors import CheckpointError
from cuarl.policy.inputs import Row
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec
from cuarl.train.batch import BatchConfig
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.reference import StartWeights
from cuarl.train.schedule import OptimConfig

from .policies import played, tiny_policy, weights

ABOUT = About(run="mine", base_model="org/model")


def trained_policy(**how):
    """A policy whose adapter is not zero: what a checkpoint gives."""
    policy = tiny_policy(**how)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.3)
    return policy


def learner_of(policy, reference="start", *, rate=1e-2, **batch):
    config = LearnerConfig(
        reference=reference,
        loss=LossConfig(kl_penalty_coef=0.1, kl_in="reward" if batch else "loss"),
        batch=BatchConfig(**batch),
        optim=OptimConfig(learning_rate=rate),
    )
    return Learner(policy, config)


def step(learner, batch, number):
    learner.begin_step(number)
    return learner.update(batch, number)


def divergence(policy, other, batch):
    """KL(policy ‖ other) by the k3 estimate at the answers of ``batch``, by two policies that know nothing of
    references."""
    turns = [turn.sampled for g in batch.groups for t in g.trajectories for turn in t.turns]
    rows = [Row(s.prompt_ids, tuple(batch.pictures[i.digest] for i in s.images), s.token_ids) for s in turns]
    with torch.no_grad():
        inputs = policy.collate(rows)
        p, q = (Scorer(m).eval()(inputs).logprobs[inputs.answer_mask].double() for m in (policy, other))
    return (torch.expm1(q - p) - (q - p)).mean().item()


@pytest.mark.parametrize("in_reward", [False, True])
def test_c35_the_divergence_starts_at_nothing_and_stays_that_from_the_start_after_a_resume(tmp_path, in_reward):
    batch_config = {"kl_coef": 0.1} if in_reward else {}
    policy = trained_policy()
    learner = learner_of(policy, **batch_config)
    batch = played(policy, [(1, 0, 0), (0, 1)], seed=1)
    first = step(learner, batch, 1)
    assert abs(first["policy/kl_ref"]) < 1e-6
    step(learner, batch, 2)
    checkpoints = Checkpoints(tmp_path, learner, ABOUT)
    checkpoints.save(2)
    checkpoints.commit(2, {})
    expected = divergence(policy, trained_policy(), batch)
    assert expected > 1e-4

    # the start is not there any more: the resumed process has another adapter until it restores the checkpoint
    other = tiny_policy()
    resumed = learner_of(other, rate=1e-9, **batch_config)
    assert Checkpoints(tmp_path, resumed, ABOUT).restore() == 2
    assert step(resumed, batch, 3)["policy/kl_ref"] == pytest.approx(expected, abs=1e-5)
    uninterrupted = step(learner_of(policy, "base", rate=1e-9, **batch_config), batch, 3)["policy/kl_ref"]
    assert abs(uninterrupted - expected) > 1e-4, "the base is another reference"


def test_c35_from_the_base_the_divergence_is_large_at_once():
    policy = trained_policy()
    batch = played(policy, [(1, 0)])
    first = step(learner_of(policy, "base"), batch, 1)["policy/kl_ref"]
    assert first == pytest.approx(divergence(trained_policy(), tiny_policy(), batch), rel=1e-3)
    assert first > 1e-3


def test_c35_dropout_is_off_in_the_reference_pass():
    policy = trained_policy(lora=LoraSpec(rank=4, dropout=0.9))
    learner = learner_of(policy)
    batch = played(policy, [(1, 0)])
    rows = [r for u in learner._updates(batch, 0.0) for r in u]
    assert rows
    known = {
        turn.sampled.token_ids: turn.sampled.logprobs for g in batch.groups for t in g.trajectories for turn in t.turns
    }
    assert all(r.reference == pytest.approx(known[r.token_ids], abs=1e-6) for r in rows), "sampled without dropout"


@pytest.mark.parametrize("full", [False, True], ids=["adapter", "all weights"])
def test_c35_the_policys_own_weights_are_back_after_an_error(full):
    policy = tiny_policy(full=True) if full else trained_policy()
    start = StartWeights(policy)
    then = weights(policy)
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.5)
    now = weights(policy)
    with pytest.raises(ZeroDivisionError), start.put_into(policy):
        assert all(torch.equal(then[n], p) for n, p in weights(policy).items())
        raise ZeroDivisionError
    assert all(torch.equal(now[n], p) for n, p in weights(policy).items())


def test_all_weights_can_be_held_to_what_they_were():
    policy = tiny_policy(full=True)
    batch = played(policy, [(1, 0, 0), (0, 1)], seed=1)
    learner = learner_of(policy, rate=1e-3)
    assert abs(step(learner, batch, 1)["policy/kl_ref"]) < 1e-6
    assert step(learner, batch, 2)["policy/kl_ref"] == pytest.approx(
        divergence(one_step(1e-3, batch), tiny_policy(full=True), batch), rel=1e-3
    )


def one_step(rate, batch):
    policy = tiny_policy(full=True)
    step(learner_of(policy, rate=rate), batch, 1)
    return policy


def test_the_penalty_pulls_back_to_the_start():
    """Without any reward, a step along the penalty brings a policy that went astray nearer to where it began."""
    policy = trained_policy()
    learner = learner_of(policy, rate=1e-3)
    batch = played(policy, [(1, 1), (0, 0)])
    with torch.no_grad():
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                p.mul_(1.5)
    before = divergence(policy, trained_policy(), batch)
    for number in range(1, 6):
        step(learner, batch, number)
    after = divergence(policy, trained_policy(), batch)
    assert math.isfinite(after) and after < before


def test_a_checkpoint_without_the_start_cannot_be_resumed_by_a_run_that_needs_it(tmp_path):
    learner = learner_of(trained_policy(), "base")
    checkpoints = Checkpoints(tmp_path, learner, ABOUT)
    checkpoints.save(1)
    checkpoints.commit(1, {})
    with pytest.raises(CheckpointError, match="start"):
        Checkpoints(tmp_path, learner_of(trained_policy()), ABOUT).restore()


def test_nothing_is_kept_where_no_penalty_asks_for_it():
    policy = tiny_policy()
    assert "start" not in Learner(policy, LearnerConfig(reference="start")).state()
