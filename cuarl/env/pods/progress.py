"""What ``/progress`` tells, in both of the forms that session servers have used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuarl.errors import EnvError

STEP_COST = 0.01
"""What a step without a new correct submission costs, as in UI-RL."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session's task is. ``rows`` are the submitted rows, sorted; None where the server only counts."""

    correct: int
    incorrect: int
    rows: tuple[int, ...] | None = None

    def state(self) -> dict[str, Any]:
        """What checks read, by the protocol's own names."""
        told = {"num_correct_submissions": self.correct, "num_incorrect_submissions": self.incorrect}
        return told if self.rows is None else {**told, "submitted_row_indices": list(self.rows)}

    def reward_since(self, earlier: Progress) -> float:
        """The reward of the step in between: new correct submissions, or the cost of a step without any."""
        return float(self.correct - earlier.correct) if self.correct > earlier.correct else -STEP_COST


def read(body: Mapping[str, Any]) -> Progress:
    """An answer: ``num_correct_submissions`` (before November 2025) or ``submitted_row_indices``. Raises EnvError."""
    rows, correct = body.get("submitted_row_indices"), body.get("num_correct_submissions")
    if rows is not None and not (isinstance(rows, list) and all(_is_count(row) for row in rows)):
        raise EnvError(f"/progress tells submitted_row_indices that are no list of row numbers: {rows!r:.100}")
    if rows is not None and correct is None:
        correct = len(rows)
    incorrect = body.get("num_incorrect_submissions", 0)
    if correct is None or not _is_count(correct) or not _is_count(incorrect):
        raise EnvError(
            f"/progress tells neither num_correct_submissions nor submitted_row_indices: {dict(body)!r:.200}"
        )
    return Progress(correct, incorrect, None if rows is None else tuple(sorted(rows)))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
