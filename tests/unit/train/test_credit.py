"""Advantages by turn from shared screens."""

from __future__ import annotations

import pytest

from cuarl.train.credit import ScreenCredit, episode_credit, screen_credit
from cuarl.trajectory import Group, Trajectory, Turn
from cuarl.types import ImageRef, StopReason


def attempt(number: int, screens: str, reward: float | None) -> Trajectory:
    turns = tuple(Turn(index=i, screenshot=ImageRef(digest=s, width=8, height=8)) for i, s in enumerate(screens))
    return Trajectory(
        episode_id=f"e{number}", task_id="t", goal="g", turns=turns, stop=StopReason.DONE, reward=reward, attempt=number
    )


def group(*attempts: tuple[str, float | None]) -> Group:
    made = tuple(attempt(i, screens, reward) for i, (screens, reward) in enumerate(attempts))
    return Group(group_id="g", task_id="t", trajectories=made)


def reference(g: Group, lam: float, discount: float) -> list[list[float]]:
    """The formulas of the module, written as the slow double sums they are."""

    def go(t: Trajectory, i: int) -> float:
        return discount ** (len(t.turns) - 1 - i) * float(t.reward or 0)

    def value(screen: str) -> float:
        seen = []
        for t in g.trajectories:
            visits = [i for i, turn in enumerate(t.turns) if turn.screenshot.digest == screen]
            if visits:
                seen.append(go(t, visits[0]))
        return sum(seen) / len(seen)

    out = []
    for t in g.trajectories:
        v = [value(turn.screenshot.digest) for turn in t.turns]
        deltas = [discount * v[i + 1] - v[i] for i in range(len(v) - 1)] + [float(t.reward or 0) - v[-1]]
        n = len(deltas)
        out.append([sum((discount * lam) ** (k - i) * deltas[k] for k in range(i, n)) for i in range(n)])
    return out


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_traces_equal_the_written_out_sums(lam: float, discount: float) -> None:
    g = group(("abcd", 1.0), ("abe", 0.0), ("aab", 0.5), ("afa", 0.0), ("bc", 1.0))
    ours = screen_credit(g, ScreenCredit(trace_lambda=lam, discount=discount), "none")
    for mine, theirs in zip(ours, reference(g, lam, discount), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-12)


def test_a_right_step_is_praised_although_the_attempt_failed_later() -> None:
    g = group(("ab", 1.0), ("ab", 0.0), ("ax", 0.0), ("ax", 0.0))
    credit = screen_credit(g, ScreenCredit(trace_lambda=0.0), "none")
    assert credit[1] == pytest.approx([0.5 - 0.25, 0.0 - 0.5])
    assert credit[2] == pytest.approx([0.0 - 0.25, 0.0])
    whole = episode_credit(g, "none")
    assert whole[1] == pytest.approx([-0.25, -0.25])


def test_full_traces_are_the_return_against_the_screens_value() -> None:
    g = group(("ab", 1.0), ("ab", 0.0), ("ax", 0.0))
    credit = screen_credit(g, ScreenCredit(trace_lambda=1.0), "none")
    assert credit[0] == pytest.approx([1 - 1 / 3, 1 - 1 / 2])


def test_attempts_without_reward_have_no_credit_and_no_say() -> None:
    g = group(("ab", 1.0), ("ab", None), ("ac", 0.0))
    credit = screen_credit(g, ScreenCredit(), "none")
    assert credit[1] is None
    assert credit == screen_credit(g, ScreenCredit(), "none")
    assert screen_credit(group(("ab", 1.0), ("ac", 0.0)), ScreenCredit(), "none") == [credit[0], credit[2]]


def test_equal_rewards_teach_nothing() -> None:
    credit = screen_credit(group(("ab", 1.0), ("cd", 1.0)), ScreenCredit(), "std")
    assert credit == [[0.0, 0.0], [0.0, 0.0]]
