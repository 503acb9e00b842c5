"""What can be wrong with tasks that load.

Goals that leak into the evaluation, that start solved, or that nobody can judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from cuarl.tasks.build import bindings
from cuarl.tasks.files import Located
from cuarl.tasks.paths import same
from cuarl.tasks.suites import Role
from cuarl.tasks.task import TaskInstance

MOST_BINDINGS = 500
"""Of a task with more values of its parameters, so many instances are looked at."""


class Finding(NamedTuple):
    """Something about a task that should be fixed (error) or checked (warning)."""

    level: Literal["error", "warning"]
    task_id: str
    where: str
    text: str


class Judged(NamedTuple):
    """A task to review, with the role of its suite."""

    located: Located
    role: Role | None


def review(judged: Sequence[Judged]) -> list[Finding]:
    """Findings over all given tasks, those of each task and those between them."""
    findings = [finding for one in judged for finding in _alone(one.located)]
    return [*findings, *_leaks(judged)]


def _alone(located: Located) -> Iterable[Finding]:
    task = located.task
    if not task.scorable:
        yield Finding("error", task.id, located.where, "it has no checks, so it can't be scored")
    if any(_starts_solved(instance) for instance in bindings(task, MOST_BINDINGS)):
        yield Finding("error", task.id, located.where, "its preset already fulfils all its checks")


def _starts_solved(instance: TaskInstance) -> bool:
    return bool(instance.checks) and all(
        check.op == "equals" and check.path in instance.preset and same(instance.preset[check.path], check.value)
        for check in instance.checks
    )


def _leaks(judged: Sequence[Judged]) -> Iterable[Finding]:
    """Goals of evaluation tasks that a training task has too: by their words (error) or by their checks (warning)."""
    words: dict[str, str] = {}
    checks: dict[str, str] = {}
    for instance in _instances(judged, "train"):
        words.setdefault(goal_words(instance), instance.task_id)
        checks.setdefault(_checks(instance), instance.task_id)
    where = {one.located.task.id: one.located.where for one in judged if one.role == "eval"}
    told = set()
    for instance in _instances(judged, "eval"):
        same_words, same_checks = words.get(goal_words(instance)), checks.get(_checks(instance))
        twin = same_words or (same_checks if instance.checks else None)
        if twin and instance.task_id not in told:
            told.add(instance.task_id)
            text = f"the training task {twin} has the same {'goal' if same_words else 'checks'}"
            yield Finding("error" if same_words else "warning", instance.task_id, where[instance.task_id], text)


def _instances(judged: Sequence[Judged], role: Role) -> Iterable[TaskInstance]:
    return (i for one in judged if one.role == role for i in bindings(one.located.task, MOST_BINDINGS))


def goal_words(instance: TaskInstance) -> str:
    """What two instances share that ask for the same: the goal without case, spaces and punctuation."""
    return "".join(c for c in instance.goal.casefold() if c.isalnum())


def _checks(instance: TaskInstance) -> str:
    return "\n".join(sorted(json.dumps(check.model_dump(), sort_keys=True) for check in instance.checks))
