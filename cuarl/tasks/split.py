"""Which training tasks are kept aside to choose checkpoints by.

They are drawn by the seed, and no goal of theirs is trained on or evaluated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cuarl.errors import TaskError
from cuarl.tasks.build import bindings
from cuarl.tasks.review import MOST_BINDINGS, goal_words
from cuarl.tasks.task import Task


class Split(NamedTuple):
    """Training tasks in two parts, each in the order of the whole."""

    training: list[Task]
    validation: list[Task]


def kept_aside(tasks: Sequence[Task], share: float, seed: int, evaluated: Sequence[Task] = ()) -> Split:
    """About ``share`` of ``tasks`` for validation, at least one; tasks with a goal in common stay together.

    A task that shares a goal with an ``evaluated`` one is never drawn. The draw ranks by a digest of seed and id, so
    that a task more or less changes little of it. Raises TaskError where the tasks can't be parted so.
    """
    if not share:
        return Split(list(tasks), [])
    seen = {goal for task in evaluated for goal in _goals(task)}
    bundles = [bundle for bundle in _bundles(tasks) if not any(_goals(task) & seen for task in bundle)]
    if not bundles:
        raise _impossible("every training task has a goal that is evaluated on, too")
    wanted, drawn = max(1, round(share * len(tasks))), set[str]()
    for bundle in sorted(bundles, key=lambda one: hashlib.sha256(f"validation/{seed}/{one[0].id}".encode()).digest()):
        if len(drawn) < wanted and len(drawn) + len(bundle) < len(tasks):
            drawn |= {task.id for task in bundle}
    if not drawn:
        raise _impossible("all training tasks have goals in common")
    return Split([t for t in tasks if t.id not in drawn], [t for t in tasks if t.id in drawn])


def _impossible(why: str) -> TaskError:
    return TaskError(f"no task can be kept for validation: {why}", where="--validation-split", hint="cuarl tasks list")


def _goals(task: Task) -> frozenset[str]:
    return frozenset(goal_words(instance) for instance in bindings(task, MOST_BINDINGS))


def _bundles(tasks: Iterable[Task]) -> list[list[Task]]:
    """Tasks that share goals, directly or by way of others, in one list each."""
    owner: dict[str, int] = {}
    bundles: dict[int, list[Task]] = {}
    for number, task in enumerate(tasks):
        goals, bundle = set(_goals(task)), [task]
        for one in sorted({owner[goal] for goal in goals if goal in owner}):
            goals |= {goal for other in bundles[one] for goal in _goals(other)}
            bundle = bundles.pop(one) + bundle
        bundles[number] = bundle
        owner.update(dict.fromkeys(goals, number))
    return list(bundles.values())
