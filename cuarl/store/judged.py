"""Evaluations by the verdicts that hold: what is shown and published of one when people have overruled its episodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from cuarl.store.pages import Judged, Pages
from cuarl.store.records import EvaluationRecord


class Interval(Protocol):
    """A share with its interval."""

    @property
    def value(self) -> float:
        """The share."""
        ...

    @property
    def low(self) -> float:
        """Lower end."""
        ...

    @property
    def high(self) -> float:
        """Upper end."""
        ...

    @property
    def n(self) -> int:
        """Verdicts that it rests on."""
        ...


Rate = Callable[[Mapping[str, Sequence[float]]], Interval]
"""The share of successes among outcomes (ones and zeros) by task."""


def judged(pages: Pages, records: Sequence[EvaluationRecord], rate: Rate) -> list[EvaluationRecord]:
    """``records``, of which those that people have overruled an episode of are measured anew.

    Success with its interval and false claims are what holds; pass@k, which would take the attempts, is left out. The
    store keeps what was recorded.
    """
    found = pages.overruled_outcomes([one.id for one in records])
    return [
        one.model_copy(update={"metrics": _measured(one.metrics, found[one.id], rate)}) if found.get(one.id) else one
        for one in records
    ]


def _measured(metrics: Mapping[str, float], episodes: Sequence[Judged], rate: Rate) -> dict[str, float]:
    by_task: dict[str, list[float]] = defaultdict(list)
    for one in episodes:
        by_task[one.task_id].append(float(one.success))
    found = rate(by_task)
    claims = sum(one.claimed and not one.success for one in episodes) / len(episodes)
    kept = {name: value for name, value in metrics.items() if not name.startswith(("pass@", "pass^"))}
    return {
        **kept,
        "success_rate": found.value,
        "ci_low": found.low,
        "ci_high": found.high,
        "n": float(found.n),
        "false_completion_rate": claims,
    }
