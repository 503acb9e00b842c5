"""What generated tasks keep clear of: whatever evaluation tasks ask for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from cuarl.tasks.check import ANSWER
from cuarl.tasks.nearest import BAR, Nearest
from cuarl.tasks.task import Check, TaskInstance

SHOWN = ("ui.current_activity", "ui.page")


class Avoided:
    """Settings and pages that evaluation tasks are about, and the goals that are too near to theirs."""

    def __init__(self, instances: Sequence[TaskInstance]) -> None:
        checks = [check for instance in instances for check in instance.checks]
        self.paths = frozenset(check.path for check in checks)
        self.pages = frozenset(str(check.value) for check in checks if check.path in SHOWN)
        self._goals = Nearest([instance.goal for instance in instances])
        self._asked: dict[str, list[frozenset[str]]] = {}
        for instance in instances:
            told = frozenset(_told(instance.checks))
            if told:
                self._asked.setdefault(min(told), []).append(told)

    def covers(self, goal: str, checks: Iterable[Check]) -> bool:
        """Whether a task asks for all that an evaluation task asks for, or says nearly the same."""
        told = set(_told(checks))
        same = any(asked <= told for check in told for asked in self._asked.get(check, ()))
        return same or self._goals.of(goal).similarity >= BAR


def _told(checks: Iterable[Check]) -> Iterable[str]:
    """Checks as text; answers say little of what was asked, so they are left out."""
    return (json.dumps(check.model_dump(), sort_keys=True) for check in checks if check.path != ANSWER)
