"""The tensor code against plain loops over floats, and against values computed by hand."""

import math
import random

import pytest
import torch

from cuarl.train.loss import LossConfig, Tokens, cross_entropy, kl_k3, policy_loss, surrogate


def tensor(*values):
    return torch.tensor(values, dtype=torch.float32)


def slow_policy_loss(new, old, advantages, weights, entropy, reference, config):
    """Written from the papers' formulas, one float at a time."""
    total = 0.0
    for n, o, a, w, h, r in zip(new, old, advantages, weights, entropy, reference, strict=True):
        ratio = math.exp(n - o)
        clipped = min(max(ratio, 1 - config.clip_low), 1 + config.clip_high)
        kl = math.exp(r - n) - (r - n) - 1
        total += w * (-min(ratio * a, clipped * a) - config.entropy_coef * h + config.kl_penalty_coef * kl)
    return total


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(LossConfig(), id="plain"),
        pytest.param(LossConfig(clip_low=0.1, clip_high=0.28), id="asymmetric clip"),
        pytest.param(LossConfig(kl_penalty_coef=0.1, entropy_coef=0.01), id="penalties"),
    ],
)
def test_policy_loss_equals_a_loop_over_the_tokens(config, seed):
    rng = random.Random(seed)
    columns = [[rng.uniform(-3, 0) for _ in range(17)] for _ in range(2)]
    columns += [[rng.gauss(0, 1) for _ in range(17)], [rng.random() / 17 for _ in range(17)]]
    columns += [[rng.uniform(0, 2) for _ in range(17)], [rng.uniform(-3, 0) for _ in range(17)]]
    new, old, advantages, weights, entropy, reference = (torch.tensor(c, dtype=torch.float64) for c in columns)
    loss = policy_loss(new, Tokens(old, advantages, weights), config, entropy=entropy, reference=reference)
    assert loss.total.item() == pytest.approx(slow_policy_loss(*columns, config), abs=1e-6)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "low", "high"),
    [
        pytest.param(1.0, 2.0, -2.0, -2.0, False, False, id="on policy the gradient is the advantage"),
        pytest.param(1.5, 1.0, -1.2, 0.0, False, True, id="better and already likelier: clipped"),
        pytest.param(0.5, 1.0, -0.5, -0.5, False, False, id="better but less likely: pulled back"),
        pytest.param(0.5, -1.0, 0.8, 0.0, True, False, id="worse and already less likely: clipped"),
        pytest.param(1.5, -1.0, 1.5, 1.5, False, False, id="worse but likelier: pushed down"),
    ],
)
def test_clipping_takes_the_gradient_away_only_beyond_the_bound(ratio, advantage, loss, gradient, low, high):
    logprob = tensor(-1.0).requires_grad_()
    s = surrogate(logprob, tensor(-1.0 - math.log(ratio)), tensor(advantage), LossConfig())
    s.loss.sum().backward()
    assert s.loss.item() == pytest.approx(loss, abs=1e-6)
    assert logprob.grad.item() == pytest.approx(gradient, abs=1e-6)
    assert (s.clipped_low.item(), s.clipped_high.item()) == (low, high)


def test_c36_an_absurd_log_ratio_is_clamped_and_counted():
    logprobs = tensor(-0.1, -1.0).requires_grad_()
    tokens = Tokens(tensor(-200.1, -1.0), tensor(-1.0, 1.0), tensor(0.5, 0.5))
    loss = policy_loss(logprobs, tokens, LossConfig(), entropy=tensor(0.0, 0.0))
    loss.total.backward()
    assert torch.isfinite(loss.total)
    assert torch.isfinite(logprobs.grad).all()
    assert all(torch.isfinite(v) for v in loss.sums.values())
    assert loss.sums["clamped"] == 1


def test_c36_the_ratio_needs_one_distribution_on_both_sides():
    logits = tensor(2, 1, 0)
    at_half = torch.log_softmax(logits / 0.5, 0)[0]
    full = torch.log_softmax(logits, 0)[0]
    nucleus = torch.log_softmax(logits[:2], 0)[0]  # top_p 0.9 keeps two of the three tokens
    assert at_half.item() == pytest.approx(-0.1429, abs=1e-4)
    assert full.item() == pytest.approx(-0.4076, abs=1e-4)
    mixed = surrogate(full[None], nucleus[None], tensor(1.0), LossConfig())
    assert mixed.ratio.item() == pytest.approx(0.91, abs=1e-2)
    same = surrogate(full[None], full[None].clone(), tensor(1.0), LossConfig())
    assert same.ratio.item() == 1.0


def test_c36_token_ratios_stay_near_one_where_their_product_does_not():
    log_ratio = torch.full((100,), 0.012)
    s = surrogate(log_ratio, torch.zeros(100), torch.ones(100), LossConfig())
    assert s.ratio.prod().item() == pytest.approx(3.32, abs=1e-2)
    assert not (s.clipped_low | s.clipped_high).any()


def test_a_split_into_parts_changes_neither_loss_nor_sums():
    generator = torch.Generator().manual_seed(0)
    new, old, a, w, h = torch.rand(5, 12, generator=generator, dtype=torch.float64)
    config = LossConfig(entropy_coef=0.1)
    whole = policy_loss(-new, Tokens(-old, a, w), config, entropy=h)
    parts = [policy_loss(-new[i], Tokens(-old[i], a[i], w[i]), config, entropy=h[i]) for i in torch.arange(12).split(5)]
    assert sum(p.total.item() for p in parts) == pytest.approx(whole.total.item(), abs=1e-12)
    for name, value in whole.sums.items():
        assert sum(p.sums[name].item() for p in parts) == pytest.approx(value.item(), abs=1e-5), name


def test_c31_nothing_trained_gives_zero_and_not_nan():
    empty = torch.zeros(0)
    loss = policy_loss(empty, Tokens(empty, empty, empty), LossConfig(), entropy=empty)
    assert loss.total.item() == 0.0
    assert loss.sums["tokens"] == 0


@pytest.mark.parametrize(("beta", "gradient"), [(0.0, 0.0), (0.04, 0.04 * (1 - math.exp(-0.5)))])
def test_c28_a_flat_group_is_moved_by_the_kl_penalty_alone(beta, gradient):
    logprob = tensor(-1.0).requires_grad_()
    tokens = Tokens(tensor(-1.0), tensor(0.0), tensor(1.0))
    config = LossConfig(kl_penalty_coef=beta)
    policy_loss(logprob, tokens, config, entropy=tensor(0.0), reference=tensor(-1.5)).total.backward()
    # d/dx [exp(r − x) − (r − x) − 1] = 1 − exp(r − x)
    assert logprob.grad.item() == pytest.approx(gradient, abs=1e-7)
    assert config.uses_flat_groups == (beta > 0)


def test_a_kl_penalty_without_reference_is_refused():
    config = LossConfig(kl_penalty_coef=0.1)
    with pytest.raises(ValueError, match="reference"):
        policy_loss(tensor(-1.0), Tokens(tensor(-1.0), tensor(1.0), tensor(1.0)), config, entropy=tensor(0.0))


def test_k3_estimates_the_divergence_without_bias():
    p, q = torch.tensor([0.7, 0.2, 0.1]), torch.tensor([0.5, 0.3, 0.2])
    exact = (q * (q / p).log()).sum()
    # the expectation over tokens drawn from q, in full
    assert (q * kl_k3((p / q).log())).sum().item() == pytest.approx(exact.item(), abs=1e-6)


@pytest.mark.parametrize(("log_ratio", "moves"), [(95.0, False), (300.0, False), (3.0, True), (-300.0, False)])
def test_b35_a_penalty_far_from_the_reference_stays_finite(log_ratio, moves):
    """exp(95) overflows a float32: beyond the clamp the penalty is as large as at it, and has no gradient."""
    logprob = tensor(-301.0).requires_grad_()
    tokens = Tokens(tensor(-301.0), tensor(0.0), tensor(1.0))
    config = LossConfig(kl_penalty_coef=0.04)
    loss = policy_loss(logprob, tokens, config, entropy=tensor(0.0), reference=tensor(-301.0 + log_ratio))
    loss.total.backward()
    expected = max(-20.0, min(20.0, log_ratio))
    assert loss.total.item() == pytest.approx(0.04 * (math.expm1(expected) - expected), rel=1e-4)
    gradient = 0.04 * -math.expm1(log_ratio) if moves else 0.0
    assert logprob.grad.item() == pytest.approx(gradient, rel=1e-4)


def test_cross_entropy_is_the_weighted_negative_log_likelihood():
    loss = cross_entropy(tensor(-0.5, -2.0), tensor(0.5, 0.5), entropy=tensor(1.0, 1.0))
    assert loss.total.item() == pytest.approx(1.25)
    assert loss.sums["nll"].item() == pytest.approx(2.5)
