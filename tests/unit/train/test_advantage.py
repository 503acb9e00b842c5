import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.train.advantage import group_advantages

REWARDS = st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=2, max_size=12)


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        pytest.param([1, 0, None, None], [0.5, -0.5, None, None], id="two verdicts missing"),
        pytest.param([1, None, None, None], [0, None, None, None], id="one verdict alone gives no signal"),
        pytest.param([-1, -1, None, None], [0, 0, None, None], id="a missing verdict is not better than a failure"),
        pytest.param([None, None], [None, None], id="no verdict at all"),
        pytest.param([3, 1, 1, 1], [1.5, -0.5, -0.5, -0.5], id="by hand"),
    ],
)
def test_c30_rewards_are_centred_over_the_scored_attempts_only(rewards, expected):
    assert list(group_advantages(rewards, normalise="none").advantages) == expected


@pytest.mark.parametrize("normalise", ["std", "none"])
@pytest.mark.parametrize(
    "rewards", [[1, 1, 1, 1], [0.1, 0.1, 0.1], [0, 0, 0, 0], [0.1 + 0.2, 0.3], [-2.0, None, -2.0], [1e6, 1e6]]
)
def test_c28_advantages_are_exactly_zero_when_rewards_are_equal(rewards, normalise):
    group = group_advantages(rewards, normalise=normalise, eps=1e-4)
    assert all(a in (0.0, None) for a in group.advantages)
    assert not group.mixed


def test_std_normalised_values_agree_with_a_computation_by_hand():
    # one success in eight: mean 1/8, std sqrt(7)/8, so A = 7/sqrt(7) and -1/sqrt(7)
    got = group_advantages([1, 0, 0, 0, 0, 0, 0, 0], eps=0.0).advantages
    assert got[0] == pytest.approx(math.sqrt(7), rel=1e-12)
    assert got[1] == pytest.approx(-1 / math.sqrt(7), rel=1e-12)


@given(REWARDS)
def test_std_normalised_advantages_agree_with_the_statistics_module(rewards):
    group = group_advantages(rewards, eps=1e-4)
    if not group.mixed:
        return
    mean, std = statistics.fmean(rewards), statistics.pstdev(rewards)
    assert group.advantages == pytest.approx([(r - mean) / (std + 1e-4) for r in rewards], abs=1e-6)
    assert (group.mean, group.std) == (pytest.approx(mean, abs=1e-9), pytest.approx(std, abs=1e-9))
    assert sum(a for a in group.advantages if a is not None) == pytest.approx(0, abs=1e-6)


def test_statistics_are_absent_when_nothing_was_scored():
    group = group_advantages([None, None])
    assert (group.scored, group.mean, group.std, group.mixed) == (0, None, None, False)


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_not_finite_is_refused(reward):
    with pytest.raises(ValueError, match="finite"):
        group_advantages([1.0, reward])
