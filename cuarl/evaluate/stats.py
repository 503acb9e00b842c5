"""Statistics of evaluations. Pure functions of numbers; every formula says where it is from.

Episodes of one task resemble each other, so 200 episodes of 10 tasks say less than 200 of 200 tasks. All intervals here
therefore treat the task as the sampling unit (the cluster). With a single task its episodes are the units, and the
result speaks of that task only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
"""Coverage of all intervals."""

_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_EXACT_TASKS = 12
_DRAWS = 10_000

Clusters = Mapping[str, Sequence[float]]
"""Values of episodes by task."""


class Rate(NamedTuple):
    """A share with its interval; never without the numbers of episodes and tasks that it rests on."""

    value: float
    low: float
    high: float
    n: int
    tasks: int


class Comparison(NamedTuple):
    """B minus A over the instances that both have met."""

    difference: float
    low: float
    high: float
    p_value: float
    pairs: int
    tasks: int


# --- proportions ---------------------------------------------------------------------------------------------------


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's score interval of a proportion observed in ``n`` (effective) trials; (0, 1) if there were none.

    Wilson 1927, J. Am. Stat. Assoc. 22, p. 209.
    """
    if n <= 0:
        return 0.0, 1.0
    centre = (share + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
    half = _Z / (1 + _Z * _Z / n) * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n))
    # The ends are exact at shares 0 and 1, where rounding may leave them on the wrong side.
    return (0.0 if share == 0 else max(0.0, centre - half)), (1.0 if share == 1 else min(1.0, centre + half))


def clustered_rate(outcomes: Clusters) -> Rate:
    """Share of ones among 0/1 outcomes by task, with an interval that allows for the tasks' differences.

    Wilson's interval at the effective sample size of ``effective_n`` (Korn & Graubard 1998, Survey Methodology 24, p.
    193; for a comparison of such intervals see Franco et al. 2019, J. Surv. Stat. Methodol. 7, p. 334).
    """
    units = _units(outcomes)
    values = [v for u in units for v in u]
    if not values:
        return Rate(math.nan, 0.0, 1.0, 0, 0)
    share = math.fsum(values) / len(values)
    tasks = len([u for u in outcomes.values() if len(u)])
    return Rate(share, *wilson(share, effective_n(units)), len(values), tasks)


def effective_n(units: Sequence[Sequence[float]]) -> float:
    """How many independent 0/1 episodes are worth as much as these, which come in clusters.

    n / deff, where deff compares the cluster-robust variance of the mean with that of independent episodes, times
    (z / t)² for few clusters. Not more than n; and not less than n² / sum(m²) with clusters of m episodes (Kish 1965,
    Survey Sampling), which it is if all episodes of a cluster end alike: a share can't vary more than that. If all
    outcomes are equal they show no clustering, and deff is taken to be 1.
    """
    n, sizes = sum(map(len, units)), [len(u) for u in units]
    if len(units) < 2:
        return float(n)
    share = math.fsum(v for u in units for v in u) / n
    independent = share * (1 - share) / n
    effect = max(1.0, clustered_variance(units) / independent) if independent > 0 else 1.0
    return max(n / effect * (_Z / student_t(len(units) - 1)) ** 2, n * n / sum(m * m for m in sizes))


def clustered_variance(units: Sequence[Sequence[float]]) -> float:
    """Cluster-robust variance of the mean over all values; needs two clusters or more.

    Liang & Zeger 1986, Biometrika 73, p. 13, with the G / (G - 1) correction; for evaluations of language models see
    Miller 2024, arXiv:2411.00640, on clustered standard errors.
    """
    n, g = sum(map(len, units)), len(units)
    mean = math.fsum(v for u in units for v in u) / n
    residuals = [math.fsum(v - mean for v in u) for u in units]
    return g / (g - 1) * math.fsum(r * r for r in residuals) / n**2


@lru_cache(maxsize=4096)  # asked again for each step of a run whose steps have as many tasks
def student_t(degrees: int) -> float:
    """Two-sided quantile at ``LEVEL`` of Student's t: the t with P(|T| <= t) = LEVEL."""
    low, high = 0.0, 1e3
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, degrees) < LEVEL else (low, middle)
    return (low + high) / 2


def _t_within(t: float, degrees: int) -> float:
    """P(|T| <= t). Abramowitz & Stegun 1964, 26.7.3 (odd degrees) and 26.7.4 (even)."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    if degrees == 1:
        total = 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _units(outcomes: Clusters) -> list[Sequence[float]]:
    units = [values for values in outcomes.values() if len(values)]
    return [[v] for v in units[0]] if len(units) == 1 else units


# --- repeated attempts ---------------------------------------------------------------------------------------------


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Chance that at least one of ``k`` of the ``n`` attempts is a success.

    Chen et al. 2021, arXiv:2107.03374, eq. 1.
    """
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """Chance that all of ``k`` of the ``n`` attempts are successes. Yao et al. 2024, arXiv:2406.12045."""
    return math.comb(successes, k) / math.comb(n, k)


# --- comparisons ---------------------------------------------------------------------------------------------------


def compare(a: Mapping[tuple[str, int], Sequence[float]], b: Mapping[tuple[str, int], Sequence[float]]) -> Comparison:
    """Mean difference B - A over the (task, seed) instances in common, attempts at an instance averaged first.

    The interval is Student's with cluster-robust variance over tasks; the p-value is that of the paired permutation
    test which swaps A and B task by task (Fisher 1935, The Design of Experiments, section 21), exact up to 12 tasks,
    else from 10,000 draws with a fixed seed and counted as Phipson & Smyth 2010 do. Raises ValueError if nothing is in
    common.
    """
    common = sorted(set(a) & set(b))
    if not common:
        raise ValueError("no task was met with the same seed in both")
    by_task: dict[str, list[float]] = {}
    for key in common:
        by_task.setdefault(key[0], []).append(math.fsum(b[key]) / len(b[key]) - math.fsum(a[key]) / len(a[key]))
    units = _units(by_task)
    n = len(common)
    mean = math.fsum(d for u in units for d in u) / n
    if len(units) > 1:
        half = student_t(len(units) - 1) * math.sqrt(clustered_variance(units))
        low, high = max(-1.0, mean - half), min(1.0, mean + half)
    else:
        low, high = -1.0, 1.0
    return Comparison(mean, low, high, sign_flip_p([math.fsum(u) for u in units]), n, len(by_task))


def sign_flip_p(sums: Sequence[float]) -> float:
    """Two-sided p-value of the sum of ``sums`` when the sign of each is a matter of chance."""
    values = np.asarray(sums, dtype=np.float64)
    observed = abs(values.sum()) - 1e-12
    if len(values) <= _EXACT_TASKS:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(values))))
        return float(np.mean(np.abs(signs @ values) >= observed))
    signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(_DRAWS, len(values)))
    return float((1 + np.count_nonzero(np.abs(signs @ values) >= observed)) / (1 + _DRAWS))
