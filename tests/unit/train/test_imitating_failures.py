"""An oracle's demonstration, imitated beside what is learnt from rewards, where a group has failed whole."""

from dataclasses import replace

import pytest
import torch

from cuarl.policy.inputs import Row
from cuarl.policy.score import Scorer
from cuarl.train.batch import Batch, BatchConfig, policy_updates
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.replay import ReplayConfig
from cuarl.train.schedule import OptimConfig

from .policies import played, tiny_policy, weights
from .test_learner import gradient, logprob_of, slow_gradient


def batch_of(policy, rewards=((1, 0, 0, 1), (0, 0)), *, shown=2):
    """A group that teaches, failures, and of each failed group a demonstration without logprobs."""
    whole = played(policy, [*rewards, *[(1,)] * shown], turns=3, seed=2)
    groups, demos = whole.groups[: len(rewards)], whole.groups[len(rewards) :]
    failed = [group for group in groups if not any(group.rewards)]
    return Batch(
        groups, whole.pictures, demonstrated={f.group_id: written(d) for f, d in zip(failed, demos, strict=False)}
    )


def written(group):
    """As an oracle says it: not sampled, so without logprobs."""

    def bare(t):
        turns = [
            turn.model_copy(update={"sampled": turn.sampled.model_copy(update={"logprobs": None})}) for turn in t.turns
        ]
        return t.model_copy(update={"turns": tuple(turns)})

    return group.model_copy(update={"trajectories": tuple(map(bare, group.trajectories))})


def learner_of(policy, coef=0.3, *, batch=None, loss=None, **config):
    optim = OptimConfig(learning_rate=1e-2, max_grad_norm=1e9)
    parts = {"batch": batch or BatchConfig(), "loss": loss or LossConfig(), "optim": optim}
    return Learner(policy, LearnerConfig(imitation_coef=coef, **parts, **config))


def step(learner, batch, number=1):
    learner.begin_step(number)
    return learner.update(batch, number)


def slow_imitation(policy, batch, coef):
    """The gradient of ``coef / G`` times the mean negative logprob of each demonstration, turn by turn."""
    scorer, total = Scorer(policy).eval(), 0.0
    for group in batch.demonstrated.values():
        logprobs = []
        for turn in (turn for t in group.trajectories for turn in t.turns):
            s = turn.sampled
            row = Row(s.prompt_ids, tuple(batch.pictures[i.digest] for i in s.images), s.token_ids)
            logprobs.append(scorer(policy.collate([row])).logprobs[0])
        total = total - coef / len(batch.collected) * torch.cat(logprobs).mean()
    total.backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


@pytest.mark.parametrize("max_tokens", [1, 100_000])
def test_the_gradient_is_that_of_both_terms_however_rows_are_cut(max_tokens):
    policy = tiny_policy()
    batch = batch_of(policy)
    learner = learner_of(policy, batch=BatchConfig(max_tokens=max_tokens))
    told = step(learner, batch)
    expected = slow_gradient(tiny_policy(), batch) + slow_imitation(tiny_policy(), batch, 0.3)
    assert torch.allclose(gradient(learner), expected, atol=1e-6)
    assert told["imitation/groups"] == 1 and told["policy/ratio_mean"] == pytest.approx(1, abs=1e-5)
    shown = [turn.sampled for g in batch.demonstrated.values() for t in g.trajectories for turn in t.turns]
    mine = [turn.sampled for t in batch.groups[0].trajectories for turn in t.turns]
    assert told["train/tokens"] == sum(len(s.token_ids) for s in (*shown, *mine))


@pytest.mark.parametrize(
    "loss",
    [
        LossConfig(kl_penalty_coef=0.1),
        LossConfig(decoupled=True, importance_cap=2.0),
        LossConfig(ratio="answer"),
        LossConfig(surrogate="weights", entropy_coef=0.01),
    ],
    ids=["penalty", "decoupled", "one ratio an answer", "clipped weights"],
)
def test_no_ratio_and_no_penalty_sees_a_demonstration(loss):
    batch = batch_of(tiny_policy())
    told = []
    for coef in (1e-12, 0.0):
        shown = batch if coef else replace(batch, demonstrated={})
        told.append(step(learner_of(tiny_policy(), coef, loss=loss, compute_post_kl=True), shown))
    with_it, without = told
    ours = {
        "imitation/groups",
        "imitation/nll",
        "train/tokens",
        "train/rows",
        "train/padding_frac",
        "train/packed_frac",
        "train/pictures",
    }
    assert {n: v for n, v in with_it.items() if n not in ours and "kl_post" not in n} == pytest.approx(
        {n: v for n, v in without.items() if n not in ours and "kl_post" not in n}, abs=1e-6
    )
    assert with_it["policy/kl_post"] == pytest.approx(without["policy/kl_post"], rel=1e-2)


def test_where_everything_fails_the_demonstrations_alone_are_learnt():
    policy = tiny_policy()
    batch = batch_of(policy, ((0, 0), (0, 0)))
    learner = learner_of(policy, 1.0)
    shown = Batch(tuple(batch.demonstrated.values()), batch.pictures)
    before = logprob_of(policy, shown, 1)
    told = [step(learner, batch, number) for number in (1, 2, 3)]
    assert logprob_of(policy, shown, 1) > before
    assert told[-1]["imitation/nll"] < told[0]["imitation/nll"]
    assert told[0]["optim/updates"] == 1 and told[0]["imitation/groups"] == 2 and "policy/ratio_mean" not in told[0]


def test_without_failures_nothing_is_imitated_and_nothing_changes():
    batch = batch_of(tiny_policy(), ((1, 0), (0, 1)), shown=0)
    learnt = []
    for coef in (0.5, 0.0):
        policy = tiny_policy()
        told = step(learner_of(policy, coef), batch)
        learnt.append(weights(policy))
        assert told.get("imitation/groups", 0.0) == 0 and "imitation/nll" not in told
    assert all(torch.equal(learnt[0][name], learnt[1][name]) for name in learnt[0])


def test_demonstrations_are_dealt_over_the_updates_of_a_step():
    batch = batch_of(tiny_policy(), ((1, 0), (0, 0), (0, 0), (0, 1)))
    updates = policy_updates(
        batch.groups, BatchConfig(num_substeps=2), demonstrated=list(batch.demonstrated.values()), share=0.25
    )
    for update in updates:
        imitated = [row for row in update if row.imitated]
        assert len({row.episode for row in imitated}) == 1 and min(row.episode for row in imitated) >= 8
        assert sum(row.weight * len(row.token_ids) for row in imitated) == pytest.approx(0.5)
    places = [row.place for update in updates for row in update]
    assert len(set(places)) == len(places)


def test_a_kept_success_may_stand_in_and_the_demonstration_is_imitated_all_the_same():
    learner = learner_of(tiny_policy(), replay=ReplayConfig(per_task=1))
    step(learner, batch_of(learner.policy, ((1, 0),), shown=0))
    told = step(learner, batch_of(learner.policy, ((0, 0),), shown=1), 2)
    assert told["replay/used"] == 1 and told["imitation/groups"] == 1 and told["imitation/nll"] > 0
