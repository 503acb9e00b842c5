import statistics

import pytest

from cuarl.evaluate import stats
from cuarl.evaluate.curve import Curve, Point, curves, together
from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Outcome, Summary, summarise
from cuarl.types import StopReason


def evaluation(step: int, *successes: bool, label: str = "suite", made: float = 0.0, first_seed: int = 0) -> Evaluation:
    outcomes = tuple(
        Outcome(episode_id=f"{step}.{i}", task_id=f"t{i % 5}", seed=first_seed + i, success=s, stop=StopReason.DONE)
        for i, s in enumerate(successes)
    )
    return Evaluation(label=label, step=step, overall=summarise(outcomes), outcomes=outcomes, started_at=made)


def test_a_curve_has_a_selections_evaluations_by_step_and_the_newest_of_each() -> None:
    made = [
        evaluation(16, True, True, made=5), evaluation(0, False, True), evaluation(16, False, False, made=1),
        evaluation(0, True, label="other"), evaluation(8, False, True),
    ]  # fmt: skip
    other, suite = curves("run", made)
    assert (other.label, [p.step for p in other.points]) == ("other", [0])
    assert [(p.step, p.overall.success_rate) for p in suite.points] == [(0, 0.5), (8, 0.5), (16, 1.0)]
    assert suite.run == "run"


def test_each_point_is_compared_with_the_first_pair_by_pair() -> None:
    first, later = [False] * 10, [True] * 8 + [False] * 2
    (curve,) = curves("run", [evaluation(0, *first), evaluation(8, *later)])
    found = curve.points[1].since_first
    assert curve.points[0].since_first is None
    assert found is not None and (found.pairs, found.tasks) == (10, 5)
    assert found.difference == pytest.approx(0.8)
    assert found.p_value == pytest.approx(2 / 2**5), "of 2^5 ways to swap tasks only two are as extreme"


def test_without_a_shared_instance_nothing_is_compared() -> None:
    (curve,) = curves("run", [evaluation(0, True), evaluation(8, False, first_seed=99)])
    assert curve.points[1].since_first is None


def point(step: int, rate: float | None) -> Point:
    return Point(step, Summary(n=10, tasks=5, success_rate=rate), None)


def test_runs_together_have_a_mean_with_students_interval_at_the_steps_that_they_share() -> None:
    rates = [0.5, 0.6, 0.85]
    found = [Curve(f"r{i}", "suite", (point(0, 0.1), point(8, r))) for i, r in enumerate(rates)]
    found.append(Curve("r3", "suite", (point(0, None), point(16, 0.9))))
    at0, at8 = together(found)
    half = stats.student_t(2) * statistics.stdev(rates) / 3**0.5
    assert (at8.step, at8.runs) == (8, 3)
    assert (at8.mean, at8.low, at8.high) == pytest.approx((0.65, 0.65 - half, min(1.0, 0.65 + half)))
    assert (at0.runs, at0.mean, at0.low, at0.high) == pytest.approx((3, 0.1, 0.1, 0.1))
