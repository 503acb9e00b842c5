import statistics

import pytest

from cuarl.evaluate import stats
from cuarl.evaluate.curve import Curve, Point, curves, distinctions, together
from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Outcome, Summary, summarise
from cuarl.types import StopReason


def evaluation(
    step: int,
    *successes: bool,
    label: str = "suite",
    made: float = 0.0,
    first_seed: int = 0,
    seed: int = 0,
    limited: str = "",
    **settings: object,
) -> Evaluation:
    outcomes = tuple(
        Outcome(episode_id=f"{step}.{i}", task_id=f"t{i % 5}", seed=first_seed + i, success=s, stop=StopReason.DONE)
        for i, s in enumerate(successes)
    )
    return Evaluation(
        label=label,
        step=step,
        overall=summarise(outcomes),
        outcomes=outcomes,
        started_at=made,
        seed=seed,
        limited=limited,
        settings={"episodes": 2, **settings},
    )


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


def test_a_curve_joins_only_what_was_measured_alike() -> None:
    made = [
        evaluation(0, False, True), evaluation(8, True, True), evaluation(8, False, False, temperature=1.0),
        evaluation(4, True, True, seed=7), evaluation(8, False, True, episodes=50),
    ]  # fmt: skip
    found = curves("run", made)
    assert sorted(len(c.points) for c in found) == [1, 1, 1, 2]
    assert [p.overall.success_rate for p in found[0].points] == [0.5, 1.0]
    assert distinctions(found)[0] == "episodes 2, seed 0, temperature unset"
    assert set(distinctions(found)[1:]) == {
        "episodes 2, seed 0, temperature 1.0",
        "episodes 2, seed 7, temperature unset",
        "episodes 50, seed 0, temperature unset",
    }


def test_runs_of_other_seeds_are_put_together_and_told_apart_by_name_alone() -> None:
    found = [*curves("a", [evaluation(8, True, False)]), *curves("b", [evaluation(8, True, True, seed=1)])]
    assert [m.runs for m in together(found)] == [2]
    assert distinctions(found) == ["", ""]


def test_runs_that_were_measured_otherwise_are_not_put_together() -> None:
    found = [*curves("a", [evaluation(8, True, False)]), *curves("b", [evaluation(8, True, True, max_turns=5)])]
    assert together(found) == []
    assert distinctions(found) == ["max_turns unset", "max_turns 5"]


@pytest.mark.parametrize(("limited", "runs"), [("a sample of 2 of 9 tasks", [2]), ("", [])])
def test_tasks_that_the_seed_draws_may_differ_between_runs(limited: str, runs: list[int]) -> None:
    found = [
        *curves("a", [evaluation(8, True, False, limited=limited, tasks="a1")]),
        *curves("b", [evaluation(8, True, True, seed=1, limited=limited, tasks="b2")]),
    ]
    assert [m.runs for m in together(found)] == runs
