"""Each algorithm's loss and advantages against a slow reference, one float at a time, written from the papers'
formulas."""

import math
import random
import statistics
from dataclasses import replace

import pytest
import torch

from cuarl.errors import TrainError
from cuarl.train.advantage import batch_advantages, group_advantages
from cuarl.train.batch import BatchConfig, policy_updates, rejection_updates
from cuarl.train.estimation import CreditConfig, estimate_advantages
from cuarl.train.gigpo import AnchorCredit, gigpo_credit
from cuarl.train.loss import LossConfig, Tokens, kl_estimate, policy_loss
from cuarl.train.rejection import Rejection
from cuarl.train.rows import policy_rows
from cuarl.train.shaping import Shaping, overlong_cost, shaped
from cuarl.train.value import CriticConfig, gae, value_loss
from cuarl.types import ImageRef

from .episodes import group, sampled, trajectory


def batch(seed=0, turns=4):
    """Logprobs of answers of varied length: new, proximal, behaviour, advantages, and which answer each token is of."""
    rng = random.Random(seed)
    lengths = [rng.randint(1, 5) for _ in range(turns)]
    of = [i for i, n in enumerate(lengths) for _ in range(n)]
    mu = [rng.uniform(-3, -0.1) for _ in of]
    prox = [m + rng.gauss(0, 0.3) for m in mu]
    new = [p + rng.gauss(0, 0.3) for p in prox]
    return new, prox, mu, [rng.gauss(0, 1) for _ in of], of


def slow_loss(new, prox, mu, advantages, of, config):
    old = prox if config.decoupled else mu

    def level(a, b, t):
        if config.ratio == "token":
            return a[t] - b[t]
        mine = [u for u in range(len(of)) if of[u] == of[t]]
        return sum(a[u] - b[u] for u in mine) / len(mine)

    total = 0.0
    for t, a in enumerate(advantages):
        ratio = math.exp(level(new, old, t))
        clipped = min(max(ratio, 1 - config.clip_low), 1 + config.clip_high)
        value = -clipped * a * new[t] if config.surrogate == "weights" else -min(ratio * a, clipped * a)
        if config.decoupled:
            weight = math.exp(level(prox, mu, t))
            value *= min(weight, config.importance_cap) if config.importance_cap else weight
        total += value / len(of)
    return total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(LossConfig(clip_high=0.28), id="dapo"),
        pytest.param(LossConfig(ratio="answer", clip_low=0.03, clip_high=0.04), id="gspo"),
        pytest.param(LossConfig(surrogate="weights", clip_low=1.0, clip_high=0.3), id="cispo"),
        pytest.param(LossConfig(decoupled=True), id="decoupled"),
        pytest.param(LossConfig(decoupled=True, importance_cap=1.1), id="truncated importance sampling"),
        pytest.param(LossConfig(decoupled=True, importance_cap=1.1, ratio="answer"), id="gspo, decoupled"),
        pytest.param(LossConfig(decoupled=True, surrogate="weights"), id="cispo, decoupled"),
    ],
)
def test_losses_equal_a_loop_over_the_tokens(config, seed):
    new, prox, mu, advantages, of = batch(seed)
    t = [torch.tensor(c, dtype=torch.float64) for c in (new, prox, mu, advantages)]
    tokens = Tokens(t[2], t[3], torch.full_like(t[2], 1 / len(of)), torch.tensor(of), t[1])
    loss = policy_loss(t[0], tokens, config, entropy=torch.zeros_like(t[0]))
    assert loss.total.item() == pytest.approx(slow_loss(new, prox, mu, advantages, of, config), abs=1e-9)


def test_clipped_weights_leave_every_token_a_gradient():
    new, _, mu, advantages, of = batch(1)
    logprobs = torch.tensor(new, requires_grad=True)
    tokens = Tokens(torch.tensor(mu), torch.tensor(advantages), torch.ones(len(of)))
    config = LossConfig(surrogate="weights", clip_low=0.01, clip_high=0.01)
    policy_loss(logprobs, tokens, config, entropy=torch.zeros(len(of))).total.backward()
    weights = (torch.tensor(new) - torch.tensor(mu)).exp().clamp(0.99, 1.01)
    assert torch.allclose(logprobs.grad, -weights * torch.tensor(advantages), atol=1e-6)


@pytest.mark.parametrize(
    ("config", "missing"), [(LossConfig(ratio="answer"), "form one"), (LossConfig(decoupled=True), "proximal")]
)
def test_what_a_loss_needs_and_does_not_get_is_an_error(config, missing):
    one = torch.ones(1)
    with pytest.raises(ValueError, match=missing):
        policy_loss(one, Tokens(one, one, one), config, entropy=one)


@pytest.mark.parametrize(
    ("estimator", "value"),
    [("k1", lambda x: -x), ("k2", lambda x: x * x / 2), ("k3", lambda x: math.exp(x) - 1 - x)],
)
def test_divergences_are_those_of_the_formula(estimator, value):
    xs = [-1.5, -0.1, 0.0, 0.7]
    got = kl_estimate(estimator, torch.tensor(xs, dtype=torch.float64)).tolist()
    assert got == pytest.approx([value(x) for x in xs], abs=1e-12)


def test_the_baseline_of_an_attempt_leaves_it_out():
    rewards = [1.0, 0.0, None, 0.5, 0.2]
    got = group_advantages(rewards, leave_one_out=True).advantages
    for i, r in enumerate(rewards):
        others = [x for j, x in enumerate(rewards) if x is not None and j != i]
        assert got[i] == (None if r is None else pytest.approx(r - statistics.fmean(others), abs=1e-12))


def test_values_are_normalised_over_all_tokens_of_the_batch():
    rows = [[1.0, 2.0], [4.0], [0.5, 0.5, 0.0]]
    flat = [v for row in rows for v in row]
    mean, std = statistics.fmean(flat), statistics.pstdev(flat)
    assert batch_advantages(rows, eps=0.0) == [pytest.approx([(v - mean) / std for v in row]) for row in rows]
    assert batch_advantages([[0.1], [0.1, 0.1]]) == [[0.0], [0.0, 0.0]]


def with_screens(reward, screens, episode):
    t = trajectory(reward, *[(7,)] * len(screens), episode=episode)
    shown = [ImageRef(digest=s * 64, width=4, height=4) for s in screens]
    return t.model_copy(
        update={"turns": tuple(x.model_copy(update={"screenshot": s}) for x, s in zip(t.turns, shown, strict=True))}
    )


@pytest.mark.parametrize("normalise", ["std", "none"])
def test_gigpo_adds_the_advantage_among_turns_of_the_same_state(normalise):
    attempts = {"abca": 1.0, "ab": 0.0, "acd": 1.0, "aab": 0.0}
    g = group(*(with_screens(r, s, s) for s, r in attempts.items()))
    config = AnchorCredit(weight=0.5, discount=0.9)

    def compare(values, v):
        spread = statistics.pstdev(values)
        if spread == 0:
            return 0.0
        return (v - statistics.fmean(values)) / (spread + 1e-4 if normalise == "std" else 1.0)

    returns = {(s, t): 0.9 ** (len(s) - 1 - t) * r for s, r in attempts.items() for t in range(len(s))}
    for (s, r), got in zip(attempts.items(), gigpo_credit(g, config, normalise), strict=True):
        for t, state in enumerate(s):
            same = [v for (other, u), v in returns.items() if other[u] == state]
            wanted = compare(list(attempts.values()), r) + 0.5 * compare(same, returns[s, t])
            assert got[t] == pytest.approx(wanted, abs=1e-9)


def test_b40_the_limit_on_turns_is_part_of_the_task_for_the_critic():
    """Nothing is expected behind the last turn, whichever way the episode ended: its reward says what there was to
    get."""
    advantages, returns = gae([0.0, 0.0, 0.0], [0.4, 0.5, 0.6], [1.0, 1.0, 1.0], 1.0)
    assert advantages == pytest.approx([-0.4, -0.5, -0.6]) and returns == pytest.approx([0.0, 0.0, 0.0])
    one = [group(trajectory(0.0, (7,), (8,), stop=stop)) for stop in ("max_turns", "done")]
    config = BatchConfig(baseline="critic", advantage="none", critic=CriticConfig(trace_lambda=1.0))
    rows = ([replace(r, values=(0.5,)) for r in policy_rows([g])] for g in one)
    cut, ended = ([r.advantages for r in estimate_advantages([g], r, config)] for g, r in zip(one, rows, strict=True))
    assert cut == ended == [(-0.5,), (-0.5,)]


def test_gigpo_by_text_needs_text():
    with pytest.raises(TrainError, match="no text"):
        gigpo_credit(group(1.0, 0.0), AnchorCredit(anchor="text"), "std")


@pytest.mark.parametrize("lam", [0.0, 0.7, 1.0])
def test_generalised_advantages_equal_the_double_sum(lam):
    rng = random.Random(3)
    n = 6
    rewards, values = ([rng.gauss(0, 1) for _ in range(n)] for _ in range(2))
    discounts = [rng.uniform(0.8, 1) for _ in range(n)]
    ahead = [*values[1:], 0.0]
    deltas = [r + d * v - u for r, d, v, u in zip(rewards, discounts, ahead, values, strict=True)]
    wanted = [sum(math.prod(d * lam for d in discounts[k:j]) * deltas[j] for j in range(k, n)) for k in range(n)]
    advantages, returns = gae(rewards, values, discounts, lam)
    assert advantages == pytest.approx(wanted, abs=1e-12)
    assert returns == pytest.approx([a + v for a, v in zip(wanted, values, strict=True)], abs=1e-12)


@pytest.mark.parametrize("clip", [0.0, 0.2])
def test_the_critics_loss_equals_a_loop(clip):
    rng = random.Random(0)
    v, old, goal, w = ([rng.gauss(0, 0.5) for _ in range(20)] for _ in range(4))
    total = 0.0
    for a, b, r, x in zip(v, old, goal, w, strict=True):
        near = min(max(a, b - clip), b + clip) if clip else a
        total += x * max((a - r) ** 2, (near - r) ** 2) / 2
    got = value_loss(*(torch.tensor(c, dtype=torch.float64) for c in (v, old, goal, w)), clip)
    assert got.total.item() == pytest.approx(total, abs=1e-9)


def two_episodes():
    g = group(trajectory(1.0, (7, 8), (9,), episode="a"), trajectory(0.0, (5, 5, 5), episode="b"))
    references, values = [(-0.7, -0.2), (-0.5,), (-1.0,) * 3], [(0.1, 0.2), (0.6,), (0.3,) * 3]
    rows = zip(policy_rows([g]), references, values, strict=True)
    return [g], [replace(row, reference=base, values=critic) for row, base, critic in rows]


def assigned(**fields):
    rows = estimate_advantages(*two_episodes(), CreditConfig(advantage="none", **fields))
    return [list(r.advantages) for r in rows], rows


# k1 at each token: logprob −0.5 of the sampler, less that of the base
K = [[0.2, -0.3], [0.0], [0.5, 0.5, 0.5]]


def test_a_penalty_in_the_reward_is_centred_over_the_batch_for_groups():
    got, _ = assigned(kl_coef=0.1)
    mean = sum(map(sum, K)) / 6
    wanted = [[a - 0.1 * (k - mean) for k in ks] for a, ks in zip([0.5, 0.5, -0.5], K, strict=True)]
    assert got == [pytest.approx(w) for w in wanted]


def test_a_penalty_in_the_reward_is_summed_before_leaving_one_out():
    got, _ = assigned(kl_coef=0.1, baseline="leave-one-out")
    a, b = 1.0 - 0.1 * (0.2 - 0.3), 0.0 - 0.1 * 1.5
    assert got == [pytest.approx([a - b] * 2), pytest.approx([a - b]), pytest.approx([b - a] * 3)]


def test_a_penalty_in_the_reward_is_summed_to_the_end_for_the_batch():
    got, _ = assigned(kl_coef=0.1, baseline="batch")
    to_go = [[1 - 0.1 * (0.2 - 0.3), 1 + 0.1 * 0.3], [1.0], [-0.15, -0.1, -0.05]]
    mean = sum(map(sum, to_go)) / 6
    assert got == [pytest.approx([v - mean for v in row]) for row in to_go]


def test_the_critic_values_turns_or_tokens():
    config = CriticConfig(trace_lambda=0.5, discount=0.9)
    got, rows = assigned(baseline="critic", critic=config)
    last = 1.0 - 0.6
    first = 0.9 * 0.6 - 0.1 + 0.9 * 0.5 * last
    assert got == [pytest.approx([first] * 2), pytest.approx([last]), pytest.approx([-0.3] * 3)]
    assert [r.returns for r in rows] == [pytest.approx((first + 0.1,)), pytest.approx((1.0,)), pytest.approx((0.0,))]
    got, rows = assigned(baseline="critic", critic=config.model_copy(update={"level": "token"}), kl_coef=0.1)
    a2 = 1.0 - 0.6
    a1 = 0.1 * 0.3 + 0.9 * 0.6 - 0.2 + 0.9 * 0.5 * a2
    a0 = -0.1 * 0.2 + 0.2 - 0.1 + 0.5 * a1
    assert got[:2] == [pytest.approx([a0, a1]), pytest.approx([a2])]
    assert [len(r.returns) for r in rows] == [2, 1, 3]


def test_detours_and_long_answers_cost_reward():
    quick, slow = trajectory(1.0, (1,), (1,)), trajectory(1.0, (1,), (1,), (1,), (1,))
    g = shaped(group(quick, slow, 0.0, None), Shaping(shortest_path=0.5))
    assert g.rewards == [1.0, pytest.approx(1 - 0.5 * 2 / 4), 0.0, None]
    config = Shaping(overlong_buffer=4, overlong_penalty=2.0, max_tokens=10)
    costs = [overlong_cost(trajectory(1.0, (1,) * n), config) for n in (6, 7, 10)]
    assert costs == pytest.approx([0.0, 0.5, 2.0])


@pytest.mark.parametrize(("rule", "kept"), [("threshold", ["g/0#0", "long#0", "long#1"]), ("best-of-group", ["g/0#0"])])
def test_rejection_keeps_what_passes_or_the_best_and_no_equal_reward(rule, kept):
    g = group(1.0, 0.5, None, trajectory(1.0, (1,), (2,), episode="long"))
    (update,) = rejection_updates([g, group(0.0, 0.5)], BatchConfig(), Rejection(rule=rule, threshold=0.5))
    assert [r.name for r in update] == kept


def test_each_pass_over_the_batch_repeats_its_updates():
    cut = trajectory(0.0, sampled((1,), stop="length"), episode="cut")
    updates = policy_updates([group(1.0, cut), group(1.0, 0.0)], BatchConfig(num_substeps=2, num_epochs=3))
    assert [round(1 / u[0].weight) for u in updates] == [3, 4] * 3
