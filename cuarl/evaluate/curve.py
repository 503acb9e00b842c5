"""Learning curves: the evaluations of a run in the order of its steps, and of several runs together. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from cuarl.evaluate.stats import Comparison, student_t
from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Summary, compare


class Point(NamedTuple):
    """One evaluation of a curve."""

    step: int
    overall: Summary
    since_first: Comparison | None
    """Against the curve's first evaluation, paired by task and seed; None for that itself, and where no instance is
    shared."""


class Curve(NamedTuple):
    """The evaluations of one run on one selection of tasks under equal conditions, oldest step first."""

    run: str
    label: str
    points: tuple[Point, ...]
    conditions: Mapping[str, Any] = MappingProxyType({})
    """The settings of all of its points."""

    @property
    def shared(self) -> str:
        """What runs of other seeds must share to be put together.

        All but the seed, and but the tasks where it draws them.
        """
        drawn = {"seed", "tasks"} if self.conditions.get("limited") else {"seed"}
        return json.dumps({k: v for k, v in self.conditions.items() if k not in drawn}, sort_keys=True)


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
    """A curve for each selection of tasks and its conditions.

    Of several evaluations of a step the last one made counts.
    """
    newest: dict[tuple[str, str, int], Evaluation] = {}
    for evaluation in sorted(evaluations, key=lambda e: e.started_at):
        newest[evaluation.label, evaluation.key, evaluation.step] = evaluation
    found: dict[tuple[str, str], list[Evaluation]] = {}
    for (label, key, _), evaluation in sorted(newest.items()):
        found.setdefault((label, key), []).append(evaluation)
    made = [Curve(run, label, tuple(_points(each)), each[0].conditions) for (label, _), each in found.items()]
    # the longest first: it is the one that training made
    return sorted(made, key=lambda curve: (curve.label, -len(curve.points)))


def distinctions(found: Sequence[Curve]) -> list[str]:
    """For each curve what tells it from others of its label, such as ``episodes 50``.

    Empty where there is nothing to tell.
    """
    return [_distinction(curve, [other for other in found if other.label == curve.label]) for curve in found]


def _distinction(curve: Curve, alike: Sequence[Curve]) -> str:
    names = sorted({name for c in alike for name in c.conditions})
    differing = [name for name in names if len({json.dumps(c.conditions.get(name)) for c in alike}) > 1]
    if len({c.shared for c in alike}) == 1:  # runs of other seeds are alike, two curves of one run are not
        differing = ["seed"] if any(c.run == curve.run for c in alike if c is not curve) else []
    return ", ".join(_named(name, curve) for name in differing)


def _named(name: str, curve: Curve) -> str:
    value = curve.conditions.get(name)
    return f"{name} {'unset' if value in (None, '') else value}"


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
    """Mean success of all runs at each step at which more than one was evaluated under the same conditions."""
    rates: dict[tuple[str, str, int], list[float]] = {}
    for curve in found:
        for point in curve.points:
            if point.overall.success_rate is not None:
                rates.setdefault((curve.label, curve.shared, point.step), []).append(point.overall.success_rate)
    several = [(label, step, values) for (label, _, step), values in sorted(rates.items()) if len(values) > 1]
    return [Together(label, step, len(values), *_mean(values)) for label, step, values in several]


def _mean(values: Sequence[float]) -> tuple[float, float, float]:
    n = len(values)
    mean = math.fsum(values) / n
    half = student_t(n - 1) * math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return mean, max(0.0, mean - half), min(1.0, mean + half)
