"""Tasks of a gym server: what its listings look like, and which are for training and which for evaluation. Pure.

Servers word tasks differently, so several names of each field are read; ``MEANINGS`` has them all.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean
from cuarl.tasks.select import Count, require_some, sample
from cuarl.tasks.suites import Role
from cuarl.tasks.task import CATEGORIES, Category, Difficulty, Task, placeholders

ENV = "gym"
MANY_STEPS = 1000
"""A gym's task does not bound its turns unless it says so: the experiment's ``max_turns`` does."""

MEANINGS: Mapping[str, tuple[str, ...]] = {
    "id": ("task_id", "id", "meta.id"),
    "number": ("task_number", "meta.number"),
    "name": ("name", "display_name", "task_name", "meta.displayName", "meta.name"),
    "description": ("description", "meta.description"),
    "goal": ("instruction", "meta.instruction", "description", "meta.description"),
    "tags": ("tags", "meta.tags"),
    "category": ("category", "meta.category"),
    "max_steps": ("max_steps", "maxSteps", "meta.max_steps", "meta.maxSteps"),
}
"""Where each fact may stand; the first that is there counts."""

_DIFFICULTIES: Mapping[str, Difficulty] = {"easy": "easy", "normal": "medium", "medium": "medium", "hard": "hard"}
_RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class GymTask:
    """A task with its number, by which ranges pick."""

    task: Task
    number: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which tasks train.

    With ``eval_range`` those numbered in it measure and the others train; else ``ratio`` train.
    """

    ratio: float = 0.8
    seed: int = 42
    eval_range: str | None = None

    def share(self, tasks: Sequence[GymTask], role: Role) -> list[GymTask]:
        """The share of a role, in the order of ``tasks``."""
        if self.eval_range is not None:
            bounds = read_range(self.eval_range)
            return [t for t in tasks if (t.number is not None and t.number in bounds) == (role == "eval")]
        ids = sorted(t.task.id for t in tasks)
        random.Random(self.seed).shuffle(ids)
        training = set(ids[: round(len(ids) * self.ratio)])
        return [t for t in tasks if (t.task.id in training) == (role == "train")]


def read_range(text: str) -> range:
    """``001-032``, both ends included. Raises TaskError."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or int(found[1]) > int(found[2]):
        raise TaskError(f'"{text}" is no range of task numbers', hint="001-032")
    return range(int(found[1]), int(found[2]) + 1)


def read_listing(body: Any, where: str) -> list[Mapping[str, Any]]:
    """The tasks of a listing: a list, or an object with ``tasks``. Raises TaskError for anything else."""
    found = body.get("tasks") if isinstance(body, Mapping) else body
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise TaskError("the gym's list of tasks is neither a list nor an object with tasks", where=where)
    return found


def whole(body: Any) -> Mapping[str, Any]:
    """One task as a gym gives it alone: the object, or one wrapped in ``task``."""
    inner = body.get("task") if isinstance(body, Mapping) else None
    found = inner if isinstance(inner, Mapping) else body
    return found if isinstance(found, Mapping) else {}


def is_summary(raw: Mapping[str, Any]) -> bool:
    """Whether an entry of a listing lacks what an agent is told, so that the task has to be asked for by itself."""
    return not _fact(raw, "goal")


def id_of(raw: Mapping[str, Any], where: str) -> str:
    """A task's id. Raises TaskError if it has none."""
    found = _fact(raw, "id")
    if found is None or not str(found).strip():
        raise TaskError(f"a task of the gym has no id (one of {', '.join(MEANINGS['id'])})", where=where)
    return str(found).strip()


def read_task(raw: Mapping[str, Any], where: str) -> GymTask:
    """A task in any of the known wordings. Raises TaskError if it has no id or says nothing to do."""
    task_id = id_of(raw, where)
    goal = str(_fact(raw, "goal") or "").strip()
    if not goal:
        raise TaskError("a task of the gym has neither instruction nor description", where=f"{where}, task {task_id}")
    tags = _fact(raw, "tags") or ()
    words = tuple(str(tag) for tag in ([tags] if isinstance(tags, str) else tags))
    steps = _fact(raw, "max_steps")
    task = Task(
        id=task_id,
        description=goal,
        name=str(_fact(raw, "name") or ""),
        difficulty=_difficulty(raw, words),
        category=_category(raw),
        max_steps=steps if isinstance(steps, int) and steps > 0 else MANY_STEPS,
        env=ENV,
        tags=words,
        suite=ENV,
        params=_kept_braces(goal),
    )
    return GymTask(task, _number(raw, task_id))


def unique(tasks: Iterable[GymTask], where: str) -> list[GymTask]:
    """The same tasks. Raises TaskError if two have one id."""
    found: dict[str, GymTask] = {}
    for task in tasks:
        if task.task.id in found:
            raise TaskError(f'two tasks of the gym have the id "{task.task.id}"', where=where)
        found[task.task.id] = task
    return list(found.values())


def pick(tasks: Sequence[GymTask], names: Sequence[str]) -> list[GymTask]:
    """Those that ``names`` mean: ids or names, in full or their beginning, numbers, or ranges of numbers.

    Raises TaskError for one that means nothing.
    """
    chosen: dict[str, GymTask] = {}
    for name in names:
        found = _called(tasks, name.strip())
        if not found:
            known = [word for t in tasks for word in (t.task.id, t.task.name) if word]
            raise TaskError(f'no task of the gym is called "{name}"{did_you_mean(name, known)}', hint="cuarl tasks gym")
        chosen |= {t.task.id: t for t in found}
    return [t for t in tasks if t.task.id in chosen]


def narrow(
    tasks: Sequence[GymTask],
    *,
    tags: Sequence[str] = (),
    categories: Sequence[str] = (),
    difficulties: Sequence[str] = (),
    limit: int | None = None,
    seed: int | None = None,
) -> tuple[Task, ...]:
    """Those with any of the tags, in these categories and difficulties, at most ``limit`` drawn by ``seed``.

    Raises TaskError naming the filter that left nothing.
    """
    kept, counts = [t.task for t in tasks], []
    steps: tuple[tuple[str, Sequence[str], Callable[[Task, set[str]], bool]], ...] = (
        ("tag", tags, lambda task, wanted: any(tag.casefold() in wanted for tag in task.tags)),
        ("category", categories, lambda task, wanted: task.category in wanted),
        ("difficulty", difficulties, lambda task, wanted: task.difficulty in wanted),
    )
    for kind, names, holds in steps:
        if names:
            wanted = {name.strip().casefold() for name in names}
            kept = [task for task in kept if holds(task, wanted)]
            counts.append(Count(f"{kind} {','.join(names)}", len(kept)))
    require_some(kept, counts, len(tasks))
    return tuple(sample(kept, limit, seed) if limit else kept)


def _called(tasks: Sequence[GymTask], name: str) -> list[GymTask]:
    exact = [t for t in tasks if name in (t.task.id, t.task.name)]
    if exact:
        return exact
    if name.isdecimal():
        return [t for t in tasks if t.number == int(name)]
    if _RANGE.fullmatch(name):
        return [t for t in tasks if t.number is not None and t.number in read_range(name)]
    folded = name.casefold()
    return [t for t in tasks if folded and t.task.id.casefold().startswith(folded)] or [
        t for t in tasks if folded and t.task.name.casefold().startswith(folded)
    ]


def _fact(raw: Mapping[str, Any], what: str) -> Any:
    for path in MEANINGS[what]:
        found: Any = raw
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None and found != "":
            return found
    return None


def _number(raw: Mapping[str, Any], task_id: str) -> int | None:
    given = _fact(raw, "number")
    if isinstance(given, int) or (isinstance(given, str) and given.strip().isdecimal()):
        return int(given)
    digits = re.search(r"\d+", task_id)
    return int(digits[0]) if digits else None


def _difficulty(raw: Mapping[str, Any], tags: Sequence[str]) -> Difficulty:
    words = [str(raw.get("difficulty") or ""), *tags]
    return next((_DIFFICULTIES[w.casefold()] for w in words if w.casefold() in _DIFFICULTIES), "medium")


def _category(raw: Mapping[str, Any]) -> Category:
    given = str(_fact(raw, "category") or "").casefold()
    return next((category for category in CATEGORIES if category == given), "app")


def _kept_braces(goal: str) -> dict[str, tuple[Any, ...]]:
    """Parameters by which ``{name}`` in a goal stays as it is: a gym's texts are no templates."""
    found: dict[str, Any] = {}
    for name, part in placeholders(goal):
        if part is None:
            found.setdefault(name, f"{{{name}}}")
        else:
            fields = found[name] if isinstance(found.get(name), dict) else {}
            found[name] = {**fields, part: f"{{{name}.{part}}}"}
    return {name: (value,) for name, value in found.items()}
