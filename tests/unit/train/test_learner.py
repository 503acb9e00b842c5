import math
from itertools import chain, repeat

import pytest
import torch

from cuarl.errors import ConfigError, TrainError
from cuarl.policy.inputs import Row
from cuarl.policy.lanes import run_alone
from cuarl.policy.score import Scorer
from cuarl.train import backward
from cuarl.train.advantage import group_advantages
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.schedule import OptimConfig
from cuarl.train.shutdown import StepUndone

from .policies import played, tiny_policy, weights

REWARDS = [(1, 0, 0, 1), (0, 0, 1), (1, 1), (0, None, 1)]


def learner_of(policy, *, batch=None, loss=None, objective="reward", checkpointing=False, **optim):
    optim.setdefault("learning_rate", 1e-2)
    parts = {"batch": batch or BatchConfig(), "loss": loss or LossConfig(), "optim": OptimConfig(**optim)}
    return Learner(policy, LearnerConfig(objective=objective, gradient_checkpointing=checkpointing, **parts))


def step(learner, batch, number=1):
    learner.begin_step(number)
    return learner.update(batch, number)


def gradient(learner):
    """The clipped gradient of the first update, read back from AdamW's first moment."""
    state = learner.state()["optimizer"]["state"]
    return torch.cat([s["exp_avg"].flatten() for s in state.values()]) / 0.1


def logprob_of(policy, batch, reward):
    """Sum of the logprobs of all answers in episodes with this reward."""
    rows = [
        Row(s.prompt_ids, tuple(batch.pictures[i.digest] for i in s.images), s.token_ids)
        for g in batch.groups
        for t in g.trajectories
        if t.reward == reward
        for s in [turn.sampled for turn in t.turns]
    ]
    with torch.no_grad():
        return Scorer(policy).eval()(policy.collate(rows)).logprobs.sum().item()


def slow_gradient(policy, batch):
    """GRPO token by token, from the papers: no batches, no padding, no weights, one backward pass."""
    scorer, terms, tokens = Scorer(policy).eval(), [], 0
    for g in batch.groups:
        for t, a in zip(g.trajectories, group_advantages(g.rewards).advantages, strict=True):
            for turn in t.turns if a is not None else ():
                s = turn.sampled
                row = Row(s.prompt_ids, tuple(batch.pictures[i.digest] for i in s.images), s.token_ids)
                for new, old in zip(scorer(policy.collate([row])).logprobs[0], s.logprobs, strict=True):
                    ratio = (new - old).exp()
                    terms.append(-torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a))
                    tokens += 1
    (torch.stack(terms).sum() / tokens).backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


@pytest.mark.parametrize("max_tokens", [1, 40, 100_000])
def test_the_gradient_is_that_of_the_formula_however_rows_are_cut_into_micro_batches(max_tokens):
    policy = tiny_policy()
    batch = played(policy, REWARDS)
    learner = learner_of(policy, batch=BatchConfig(max_tokens=max_tokens), max_grad_norm=1e9)
    metrics = step(learner, batch)
    reference = slow_gradient(tiny_policy(), batch)
    assert torch.allclose(gradient(learner), reference, atol=1e-6)
    assert metrics["optim/grad_norm"] == pytest.approx(reference.norm().item(), rel=1e-5)


@pytest.mark.parametrize("max_tokens", [1, 40, 100_000])
@pytest.mark.usefixtures("two_lanes")
def test_the_gradient_is_that_of_the_formula_in_lanes(max_tokens):
    test_the_gradient_is_that_of_the_formula_however_rows_are_cut_into_micro_batches(max_tokens)


@pytest.mark.usefixtures("two_lanes")
def test_a_step_in_lanes_that_became_overdue_is_undone():
    test_a_step_that_became_overdue_is_undone_while_no_weight_has_changed()


@pytest.mark.usefixtures("two_lanes")
def test_lanes_add_gradients_in_the_order_of_micro_batches(monkeypatch):
    """Whatever is over first: the same bits each time, and the gradient of one micro-batch after the other."""
    found = []
    for in_lanes in (True, True, False):
        policy = tiny_policy()
        ran = []
        if not in_lanes:
            monkeypatch.setattr(policy, "in_lanes", lambda screenshots: False)
        monkeypatch.setattr(backward, "run_alone", lambda pieces, ran=ran: ran.append(len(pieces)) or run_alone(pieces))
        learner = learner_of(policy, batch=BatchConfig(max_tokens=40))
        step(learner, played(policy, REWARDS))
        assert ran[0] > 2 if in_lanes else not ran
        found.append(gradient(learner))
    assert torch.equal(found[0], found[1])
    assert torch.allclose(found[0], found[2], atol=1e-6)


def test_the_whole_gradient_is_clipped_to_the_norm():
    policy = tiny_policy()
    learner = learner_of(policy, max_grad_norm=0.01)
    metrics = step(learner, played(policy, REWARDS))
    assert metrics["optim/grad_norm"] > 0.01
    assert gradient(learner).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_successes_become_likelier_and_failures_less_likely():
    policy = tiny_policy()
    batch = played(policy, [(1, 0, 1, 0)], with_pictures=False)
    before = [logprob_of(policy, batch, r) for r in (1, 0)]
    learner = learner_of(policy, learning_rate=1e-3)
    for number in (1, 2, 3):
        step(learner, batch, number)
    after = [logprob_of(policy, batch, r) for r in (1, 0)]
    assert after[0] > before[0]
    assert after[1] < before[1]
    assert policy.version == 3


def test_c36_the_first_update_starts_at_ratio_one_and_later_ones_do_not():
    policy = tiny_policy()
    batch = played(policy, REWARDS)
    learner = learner_of(policy)
    first, second = step(learner, batch, 1), step(learner, batch, 2)
    assert first["policy/ratio_mean"] == pytest.approx(1, abs=1e-3)
    assert first["policy/logprob_diff_mean"] < 1e-5
    assert second["policy/kl_sampler"] > 1e-6


def test_c28_a_flat_batch_changes_nothing_and_is_counted():
    policy = tiny_policy()
    before = weights(policy)
    metrics = step(learner_of(policy), played(policy, [(1, 1), (0.1, 0.1, 0.1), (None, None)]))
    counts = {"optim/updates": 0, "optim/skipped_flat": 1, "optim/skipped_nonfinite": 0, "train/pictures": 0}
    assert metrics == {"optim/lr": 1e-2, **counts}
    assert all(torch.equal(before[n], p) for n, p in weights(policy).items())


@pytest.mark.parametrize(("loss", "kept"), [(LossConfig(), 4), (LossConfig(kl_penalty_coef=0.1), 6)])
def test_c28_flat_groups_are_scored_only_where_a_penalty_gives_them_a_gradient(loss, kept):
    policy = tiny_policy()
    metrics = step(learner_of(policy, loss=loss), played(policy, [(1, 0, 0, 1), (1, 1)], turns=1))
    assert metrics["train/rows"] == kept


def test_the_reference_of_the_penalty_is_the_base_and_the_adapter_is_back_afterwards():
    policy = tiny_policy()
    batch = played(policy, REWARDS)
    learner = learner_of(policy, loss=LossConfig(kl_penalty_coef=0.1))
    first, second = step(learner, batch, 1), step(learner, batch, 2)
    assert first["policy/kl_ref"] == pytest.approx(0, abs=1e-6)
    assert second["policy/kl_ref"] > 1e-6
    # measured afresh at the changed weights, the divergence is still that of the adapter
    resumed = learner_of(policy, loss=LossConfig(kl_penalty_coef=0.1))
    assert step(resumed, batch, 3)["policy/kl_ref"] > second["policy/kl_ref"] / 10


def test_substeps_update_in_turn_on_their_own_groups():
    policy = tiny_policy()
    metrics = step(learner_of(policy, batch=BatchConfig(num_substeps=3)), played(policy, REWARDS))
    # group 2 is flat and alone in its share
    assert (metrics["optim/updates"], metrics["optim/skipped_flat"]) == (2, 1)


def test_supervised_training_makes_demonstrations_likelier_whatever_their_reward():
    policy = tiny_policy()
    batch = played(policy, [(1, None), (1,)])
    learner = learner_of(policy, objective="imitation", learning_rate=3e-3)
    nll = [step(learner, batch, number)["sft/nll"] for number in (1, 2, 3)]
    assert nll[0] > nll[1] > nll[2]


def test_full_fine_tuning_trains_the_language_model_and_not_the_tower():
    policy = tiny_policy(full=True)
    before = {n: p.detach().clone() for n, p in policy.model.named_parameters()}
    metrics = step(learner_of(policy, learning_rate=1e-5), played(policy, REWARDS))
    changed = {n for n, p in policy.model.named_parameters() if not torch.equal(before[n], p)}
    assert any("language_model" in n for n in changed)
    assert not any("visual" in n for n in changed)
    assert metrics["optim/lr"] == 1e-5


@pytest.mark.parametrize("checkpointing", [False, True])
def test_c33_every_adapter_learns_in_the_first_step(checkpointing):
    policy = tiny_policy(vision=True)
    step(learner_of(policy, checkpointing=checkpointing), played(policy, REWARDS))
    b = {n: p.norm().item() for n, p in weights(policy).items() if "lora_B" in n}
    assert any("visual" in n for n in b)
    assert min(b.values()) > 0, [n for n, norm in b.items() if norm == 0]


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_base_in_bfloat16_trains_its_adapter_in_float32_along_the_same_gradient(checkpointing):
    gradients = []
    for dtype in (torch.float32, torch.bfloat16):
        policy = tiny_policy(dtype=dtype)
        assert policy.dtype == dtype and {p.dtype for p in policy.parameters()} == {torch.float32}
        learner = learner_of(policy, checkpointing=checkpointing)
        step(learner, played(tiny_policy(), REWARDS))
        moments = learner.state()["optimizer"]["state"].values()
        gradients.append(torch.cat([m["exp_avg"].flatten() for m in moments]))
        assert all(p.abs().max() > 0 for n, p in weights(policy).items() if "lora_B" in n)
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


def test_an_adapter_beside_which_the_base_would_be_trained_is_refused():
    policy = tiny_policy()
    policy.base.model.language_model.norm.weight.requires_grad_(True)
    with pytest.raises(TrainError, match=r"base would be trained along, .*norm\.weight"):
        learner_of(policy)


def test_c33_adapters_without_gradient_are_named_before_the_first_step():
    policy = tiny_policy(vision=True)
    policy.vision.trained = False  # features without gradient, as a cache would give them
    before = weights(policy)
    with pytest.raises(TrainError, match=r"get no gradient.*visual\.blocks\.0"):
        step(learner_of(policy), played(policy, REWARDS))
    assert all(torch.equal(before[n], p) for n, p in weights(policy).items())


def test_c33_adapters_of_the_tower_are_not_dead_while_there_are_no_pictures():
    policy = tiny_policy(vision=True)
    learner = learner_of(policy)
    step(learner, played(policy, REWARDS, with_pictures=False), 1)
    step(learner, played(policy, REWARDS), 2)
    policy.vision.trained = False
    step(learner, played(policy, REWARDS), 3)  # checked once, in step 2


def test_a_gradient_that_is_not_finite_is_left_out_and_ends_the_run_if_it_persists():
    policy = tiny_policy()
    batch = played(policy, REWARDS)
    broken = next(policy.parameters())
    with torch.no_grad():
        broken[0, 0] = math.inf
    before = weights(policy)
    learner = learner_of(policy)
    metrics = step(learner, batch, 1)
    assert (metrics["optim/skipped_nonfinite"], metrics["optim/updates"]) == (1, 0)
    assert all(math.isfinite(v) for v in metrics.values())
    step(learner, batch, 2)
    with pytest.raises(TrainError, match="3 times in a row"):
        step(learner, batch, 3)
    assert all(torch.equal(before[n], p) for n, p in weights(policy).items())


def test_a_missing_picture_is_named_with_its_turn():
    policy = tiny_policy()
    batch = played(policy, [(1, 0)])
    with pytest.raises(TrainError, match="missing") as error:
        step(learner_of(policy), Batch(batch.groups, {}))
    assert error.value.where.startswith("g0/")


def test_chance_and_caches_start_anew_with_each_step():
    policy = tiny_policy()
    learner = learner_of(policy)
    learner.begin_step(7)
    first = torch.rand(3)
    policy.vision.features(list(played(policy, [(1,)]).pictures.values()))
    learner.begin_step(7)
    assert torch.equal(torch.rand(3), first)
    assert len(policy.vision.cache) == 0


def test_a_step_that_became_overdue_is_undone_while_no_weight_has_changed():
    policy, other = tiny_policy(), tiny_policy()
    batch = played(policy, REWARDS)
    asked = chain([False], repeat(True))
    learner, straight = (learner_of(p, batch=BatchConfig(max_tokens=40)) for p in (policy, other))
    before = weights(policy)
    learner.overdue = lambda: next(asked)
    with pytest.raises(StepUndone):
        step(learner, batch)
    learner.undo_step()
    assert all(torch.equal(before[name], p) for name, p in weights(policy).items())
    assert learner.state()["optimizer"]["state"] == {} and policy.version == 0 and learner.episodes == 0
    learner.overdue = lambda: False
    assert step(learner, batch) == step(straight, batch)
    assert all(torch.equal(p, weights(other)[name]) for name, p in weights(policy).items())


def test_a_step_that_changed_weights_is_finished_however_overdue():
    policy, other = tiny_policy(), tiny_policy()
    batch = played(policy, REWARDS)
    learner, straight = (learner_of(p, batch=BatchConfig(num_substeps=2)) for p in (policy, other))
    asked = []
    learner.overdue = lambda: asked.append(None) or len(asked) > 1
    assert step(learner, batch) == step(straight, batch)
    assert len(asked) == 1, "asked no more once weights had changed"
    assert all(torch.equal(p, weights(other)[name]) for name, p in weights(policy).items())


def test_activations_to_keep_are_refused_where_none_are_computed_again():
    with pytest.raises(ConfigError, match="activation_gib has no effect here"):
        Learner(tiny_policy(), LearnerConfig(activation_gib=1.0))
    Learner(tiny_policy(), LearnerConfig(gradient_checkpointing=True, activation_gib=1.0))
