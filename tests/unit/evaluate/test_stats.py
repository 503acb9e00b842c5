from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from cuarl.evaluate import stats

Z = 1.959963984540054


@pytest.mark.parametrize(("share", "n"), [(0.5, 10), (0.1, 30), (0.93, 200), (0.0, 20), (1.0, 20), (0.97, 61.5)])
def test_wilson_ends_are_the_shares_whose_score_test_just_rejects(share, n):
    for end in stats.wilson(share, n):
        if 0 < end < 1:
            assert abs(share - end) == pytest.approx(Z * math.sqrt(end * (1 - end) / n), abs=1e-9)
        else:
            assert end == share


def test_wilson_of_no_trials_says_nothing():
    assert stats.wilson(0.0, 0) == (0.0, 1.0)


def test_wilson_agrees_with_published_values():
    assert stats.wilson(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    assert stats.wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=5e-5)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228), (30, 2.042), (120, 1.980)],
)
def test_student_t_agrees_with_the_tables(degrees, quantile):
    assert stats.student_t(degrees) == pytest.approx(quantile, abs=6e-4)


def sandwich(units):
    """Variance of the intercept of a regression on a constant, cluster-robust, by matrices."""
    y = np.concatenate([np.asarray(u, float) for u in units])
    x = np.ones((len(y), 1))
    bread = np.linalg.inv(x.T @ x)
    residual, meat, start = y - y.mean(), np.zeros((1, 1)), 0
    for u in units:
        score = x[start : start + len(u)].T @ residual[start : start + len(u)]
        meat += np.outer(score, score)
        start += len(u)
    g = len(units)
    return float((bread @ meat @ bread)[0, 0] * g / (g - 1))


def test_clustered_variance_is_the_sandwich_estimator():
    rng = np.random.default_rng(3)
    units = [list(rng.integers(0, 2, size=rng.integers(1, 6))) for _ in range(9)]
    assert stats.clustered_variance(units) == pytest.approx(sandwich(units), rel=1e-12)


def test_clustered_variance_of_single_episodes_is_the_usual_one():
    values = [1, 0, 0, 1, 1, 1, 0]
    usual = float(np.var(values, ddof=1)) / len(values)
    assert stats.clustered_variance([[v] for v in values]) == pytest.approx(usual)


def test_interval_is_wider_when_tasks_differ_than_when_episodes_do():
    same = stats.clustered_rate({f"t{i}": [1, 1, 1, 0] for i in range(10)})
    mixed = stats.clustered_rate({f"t{i}": [1.0] * 4 if i < 7.5 else [0.0] * 4 for i in range(10)})
    assert same.value == pytest.approx(0.75)
    assert mixed.high - mixed.low > 1.5 * (same.high - same.low)
    assert (same.n, same.tasks) == (40, 10)


def test_episodes_that_only_repeat_their_task_are_worth_no_more_than_their_tasks():
    units = [[float(i < 20)] * 5 for i in range(40)]
    assert stats.effective_n(units) == pytest.approx(40)
    assert stats.clustered_rate({str(i): u for i, u in enumerate(units)})[1:3] == pytest.approx(stats.wilson(0.5, 40))


def test_effective_number_of_episodes_is_corrected_for_few_tasks():
    rng = np.random.default_rng(2)
    units = [list((rng.random(8) < p).astype(float)) for p in rng.beta(1, 1, size=10)]
    design_effect = sandwich(units) / (np.mean(units) * (1 - np.mean(units)) / 80)
    assert design_effect > 1
    assert stats.effective_n(units) == pytest.approx(80 / design_effect * (Z / 2.2622) ** 2, rel=1e-4)


def test_rate_is_certain_of_nothing_when_all_succeed():
    rate = stats.clustered_rate({f"t{i}": [1.0] * 5 for i in range(40)})
    assert rate.value == rate.high == 1.0
    assert rate.low == pytest.approx(stats.wilson(1.0, 200 * (Z / 2.0227) ** 2)[0], rel=1e-4)
    few = stats.clustered_rate({"a": [0.0] * 10, "b": [0.0] * 10})
    assert few.high == pytest.approx(stats.wilson(0.0, 2)[1])


def test_single_task_is_judged_by_its_episodes():
    rate = stats.clustered_rate({"t": [1, 0, 1, 1, 1, 0, 1, 1, 1, 1]})
    assert (rate.n, rate.tasks) == (10, 1)
    assert rate.low < 0.8 < rate.high
    assert rate == stats.clustered_rate({"t": [1, 0, 1, 1, 1, 0, 1, 1, 1, 1], "empty": []})


def test_no_episode_gives_no_rate():
    rate = stats.clustered_rate({})
    assert math.isnan(rate.value)
    assert rate[1:] == (0.0, 1.0, 0, 0)


@pytest.mark.parametrize(("mean", "strength"), [(0.9, 10.0), (0.5, 1.0)])
def test_interval_covers_the_truth_as_often_as_it_says_when_tasks_vary(mean, strength):
    rng, trials, covered = np.random.default_rng(11), 150, 0
    for _ in range(trials):
        shares = rng.beta(mean * strength, (1 - mean) * strength, size=40)
        rate = stats.clustered_rate({str(i): list(rng.random(5) < p) for i, p in enumerate(shares)})
        covered += rate.low <= mean <= rate.high
    assert covered / trials > stats.LEVEL - 3 * math.sqrt(stats.LEVEL * (1 - stats.LEVEL) / trials)


@pytest.mark.parametrize(("n", "c", "k"), [(8, 3, 2), (8, 0, 4), (8, 8, 4), (5, 2, 5), (6, 1, 1)])
def test_pass_at_k_and_pass_hat_k_count_all_choices(n, c, k):
    attempts = [1] * c + [0] * (n - c)
    choices = list(combinations(attempts, k))
    assert stats.pass_at_k(n, c, k) == pytest.approx(sum(any(x) for x in choices) / len(choices))
    assert stats.pass_hat_k(n, c, k) == pytest.approx(sum(all(x) for x in choices) / len(choices))


def test_sign_flip_p_value_counts_every_assignment_when_there_are_few():
    sums = [1.0, 2.0, -0.5, 3.0, 0.25, 1.0]
    extreme = [abs(sum(s * v for s, v in zip(signs, sums, strict=True))) for signs in product((1, -1), repeat=6)]
    assert stats.sign_flip_p(sums) == sum(e >= abs(sum(sums)) - 1e-9 for e in extreme) / 64


def test_sign_flip_p_value_of_drawn_assignments_is_close_to_the_exact_one():
    sums = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0]
    # sign test: 10 of 14 or more extreme, both sides
    exact = 2 * sum(math.comb(14, i) for i in range(10, 15)) / 2**14
    assert stats.sign_flip_p(sums) == pytest.approx(exact, abs=0.012)
    assert stats.sign_flip_p(sums) == stats.sign_flip_p(sums)


def test_comparison_pairs_by_task_and_seed_and_drops_the_rest():
    a = {("t", 1): [1, 0], ("t", 2): [0], ("u", 1): [0], ("only a", 1): [1]}
    b = {("t", 1): [1, 1], ("t", 2): [1], ("u", 1): [0], ("only b", 1): [1]}
    found = stats.compare(a, b)
    assert (found.pairs, found.tasks) == (3, 2)
    assert found.difference == pytest.approx((0.5 + 1 + 0) / 3)
    assert found.difference == -stats.compare(b, a).difference
    assert found.low < found.difference < found.high


def test_comparison_interval_is_students_over_tasks():
    rng = np.random.default_rng(5)
    a = {(f"t{i}", j): [float(rng.random() < 0.5)] for i in range(12) for j in range(3)}
    b = {(f"t{i}", j): [float(rng.random() < 0.8)] for i in range(12) for j in range(3)}
    found = stats.compare(a, b)
    units = [[b[f"t{i}", j][0] - a[f"t{i}", j][0] for j in range(3)] for i in range(12)]
    half = 2.201 * math.sqrt(sandwich(units))
    assert found.high - found.difference == pytest.approx(half, rel=1e-3)


def test_comparison_with_itself_finds_nothing():
    a = {(f"t{i}", 0): [i % 2] for i in range(20)}
    found = stats.compare(a, a)
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_comparison_of_strangers_is_refused():
    with pytest.raises(ValueError, match="same seed"):
        stats.compare({("t", 1): [1]}, {("t", 2): [1]})
