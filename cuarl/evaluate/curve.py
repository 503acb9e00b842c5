"""Learning curves: the evaluations of a run in the order of its steps, and of several runs together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cuarl.evaluate.stats import Comparison, student_t
from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Summary, compare


class Point(NamedTuple):
    """One evaluation of a curve."""

    step: int
    overall: Summary
    since_first: Comparison | None
    """Against the curve's first evaluation, paired by task and seed; None for that itself, and where no instance is shared."""


class Curve(NamedTuple):
    """The evaluations of one run on one selection of tasks, oldest step first."""

    run: str
    label: str
    points: tuple[Point, ...]


class Together(NamedTuple):
    """What several runs, of the same experiment with other seeds, reached at a step."""

    label: str
    step: int
    runs: int
    mean: float
    low: float
    high: float
    """95 % interval of the mean over runs (Student's t)."""


def curves(run: str, evaluations: Iterable[Evaluation]) -> list[Curve]:
    """A curve for each selection of tasks; of several evaluations of a step the last one made counts."""
    newest: dict[tuple[str, int], Evaluation] = {}
    for evaluation in sorted(evaluations, key=lambda e: e.started_at):
        newest[evaluation.label, evaluation.step] = evaluation
    found: dict[str, list[Evaluation]] = {}
    for (label, _), evaluation in sorted(newest.items()):
        found.setdefault(label, []).append(evaluation)
    return [Curve(run, label, tuple(_points(each))) for label, each in found.items()]


def _points(evaluations: Sequence[Evaluation]) -> Iterable[Point]:
    first = evaluations[0]
    known = _instances(first)
    for evaluation in evaluations:
        shared = evaluation is not first and known & _instances(evaluation)
        since = compare(first.outcomes, evaluation.outcomes) if shared else None
        yield Point(evaluation.step, evaluation.overall, since)


def _instances(evaluation: Evaluation) -> set[tuple[str, int]]:
    return {(o.task_id, o.seed) for o in evaluation.outcomes if o.success is not None}


def together(found: Iterable[Curve]) -> list[Together]:
    """Mean success of all runs at each step at which more than one was measured."""
    rates: dict[tuple[str, int], list[float]] = {}
    for curve in found:
        for point in curve.points:
            if point.overall.success_rate is not None:
                rates.setdefault((curve.label, point.step), []).append(point.overall.success_rate)
    return [Together(*key, len(values), *_mean(values)) for key, values in sorted(rates.items()) if len(values) > 1]


def _mean(values: Sequence[float]) -> tuple[float, float, float]:
    n = len(values)
    mean = math.fsum(values) / n
    half = student_t(n - 1) * math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return mean, max(0.0, mean - half), min(1.0, mean + half)
