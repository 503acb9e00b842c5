"""Image and vision tokens in a sample, from a server or an old record: never trained, never fatal, always counted."""

import math

import pytest
import torch

from cuarl.policy.inputs import Row
from cuarl.policy.score import Scorer
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.metrics import METRICS, rollout_metrics
from cuarl.train.rows import policy_rows, supervised_rows, without

from .episodes import group, sampled, trajectory
from .policies import played, tiny_policy, weights

NAMES = ("image", "vision_start", "vision_end", "video")


def unsayable(policy, name):
    """The id of a placeholder; that of video has no field of its own."""
    special = policy.special
    if name == "video":
        return next(iter(special.unsayable - {special.image, special.vision_start, special.vision_end}))
    return getattr(special, name)


def spoiled(batch, policy, token, where):
    """``batch`` whose first attempt's first answer holds ``token`` as a server may have sampled it."""

    def change(turn):
        s = turn.sampled
        ids, logprobs = list(s.token_ids), list(s.logprobs)
        at = {"first": 0, "middle": 1, "last": len(ids), "only": 0}[where]
        ids, logprobs = [*ids[:at], token, *ids[at:]], [*logprobs[:at], -9.0, *logprobs[at:]]
        if where == "only":
            ids, logprobs = ids[:1], logprobs[:1]
        new = s.model_copy(update={"token_ids": tuple(ids), "logprobs": tuple(logprobs)})
        return turn.model_copy(update={"sampled": new})

    first = batch.groups[0].trajectories[0]
    changed = first.model_copy(update={"turns": (change(first.turns[0]), *first.turns[1:])})
    groups = (
        batch.groups[0].model_copy(update={"trajectories": (changed, *batch.groups[0].trajectories[1:])}),
        *batch.groups[1:],
    )
    return Batch(groups, batch.pictures)


@pytest.mark.parametrize("where", ["first", "middle", "last", "only"])
@pytest.mark.parametrize("name", NAMES)
def test_a_step_learns_from_what_stands_before_it_and_all_its_numbers_are_finite(name, where):
    policy = tiny_policy()
    batch = spoiled(played(policy, [(1, 0, 0), (0, 1)]), policy, unsayable(policy, name), where)
    clean = without(batch.groups, policy.special.unsayable, policy.decode)
    learner = Learner(policy, LearnerConfig())
    learner.begin_step(1)
    metrics = learner.update(batch, 1)
    assert all(math.isfinite(value) for value in metrics.values()), metrics
    assert metrics["policy/logprob_diff_mean"] < 1e-4
    rows = policy_rows(clean)
    assert metrics["train/tokens"] == sum(len(r.token_ids) for r in rows)
    assert not policy.special.unsayable & {t for r in rows for t in r.token_ids}
    other = tiny_policy()
    untouched = Learner(other, LearnerConfig())
    untouched.begin_step(1)
    untouched.update(Batch(clean, batch.pictures), 1)
    assert all(torch.equal(v, weights(other)[n]) for n, v in weights(policy).items())


@pytest.mark.parametrize("objective", ["reward", "imitation"])
@pytest.mark.parametrize("baseline", ["group", "leave-one-out", "batch", "critic"])
def test_a_turn_that_said_nothing_is_left_out_by_every_algorithm(objective, baseline):
    policy = tiny_policy()
    batch = spoiled(played(policy, [(1, 0, 0), (0, 1)]), policy, policy.special.image, "only")
    config = LearnerConfig(objective=objective, batch=BatchConfig(baseline=baseline))
    metrics = Learner(policy, config).update(batch, 1)
    assert all(math.isfinite(value) for value in metrics.values()) and metrics["train/rows"] > 0


def test_what_is_kept_has_the_logprobs_that_it_was_sampled_with():
    policy = tiny_policy()
    batch = played(policy, [(1, 0)])
    before = batch.groups[0].trajectories[0].turns[0].sampled
    cut = without(
        spoiled(batch, policy, policy.special.image, "middle").groups, policy.special.unsayable, policy.decode
    )
    after = cut[0].trajectories[0].turns[0].sampled
    assert (after.token_ids, after.logprobs, after.stop) == (before.token_ids[:1], before.logprobs[:1], "special_token")
    assert after.text == policy.decode(before.token_ids[:1])
    row = Row(after.prompt_ids, tuple(batch.pictures[i.digest] for i in after.images), after.token_ids)
    with torch.no_grad():
        scored = Scorer(policy).eval()(policy.collate([row])).logprobs[0, :1].tolist()
    assert scored == pytest.approx(after.logprobs, abs=1e-5)


def test_what_holds_none_stays_the_same_object():
    policy = tiny_policy()
    groups = played(policy, [(1, 0)]).groups
    assert all(a is b for a, b in zip(groups, without(groups, policy.special.unsayable, policy.decode), strict=True))


def test_a_turn_that_said_nothing_gives_no_row_and_the_others_keep_their_places():
    nothing = sampled((), stop="special_token")
    episodes = group(trajectory(1.0, (7, 8), nothing, (9,)), trajectory(0.0, nothing))
    for rows in (policy_rows([episodes]), supervised_rows([episodes], {})):
        assert [r.place for r in rows] == [(0, 0), (0, 2)]


def test_it_is_counted():
    cut = sampled((7,), stop="special_token")
    found = rollout_metrics([group(trajectory(1.0, (7, 8), cut), trajectory(0.0, (7,), (8,)))], policy_version=0)
    assert found["action/special_token_rate"] == 0.25 and "action/special_token_rate" in METRICS
