"""Filters over tasks: pure functions, applied in a fixed order, each of which says how many tasks it left."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean
from cuarl.tasks.task import CATEGORIES, DIFFICULTIES, SPLITS, Task

_CONDITION = re.compile(r"(?P<field>\w+)\s*(?P<op>!=|~=|=)\s*(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """``field=value``, ``field!=value`` or ``field~=value`` (a regular expression found in it, case ignored).

    A list field holds a value if one of its items does. Case does not count in ``=`` and ``!=`` either.
    """

    field: str
    op: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition as typed. Raises TaskError for a bad shape, field or expression."""
        found = _CONDITION.fullmatch(text.strip())
        if not found:
            raise TaskError(
                f'"{text}" is not a condition', where="-F", hint="-F key=value, -F key!=value or -F key~=expression"
            )
        if found["field"] not in Task.model_fields:
            near = did_you_mean(found["field"], Task.model_fields)
            raise TaskError(f'tasks have no field "{found["field"]}"{near}', where="-F", hint="cuarl tasks schema")
        if found["op"] == "~=":
            try:
                re.compile(found["value"])
            except re.error as error:
                raise TaskError(f'"{found["value"]}" is not a regular expression: {error}', where="-F") from error
        return cls(found["field"], found["op"], found["value"])

    def holds(self, task: Task) -> bool:
        """Whether the task has it."""
        held = getattr(task, self.field)
        texts = [_as_text(item) for item in held] if isinstance(held, tuple) else [_as_text(held)]
        if self.op == "~=":
            return any(re.search(self.value, text, re.IGNORECASE) for text in texts)
        equal = any(text.casefold() == self.value.strip().casefold() for text in texts)
        return equal == (self.op == "=")

    def __str__(self) -> str:
        return f"{self.field}{self.op}{self.value}"


@dataclass(frozen=True, slots=True)
class Filters:
    """What to keep. Several values of one kind are alternatives; different kinds must all hold."""

    suites: tuple[str, ...] = ()
    envs: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Globs."""
    where: tuple[Condition, ...] = ()
    limit: int | None = None
    seed: int | None = None
    """Draws the tasks that ``limit`` keeps; without it the first ones are kept."""


class Count(NamedTuple):
    """How many tasks were left after a filter, described as it was typed."""

    filter: str
    left: int


def apply(tasks: Iterable[Task], filters: Filters) -> tuple[list[Task], list[Count]]:
    """Tasks that pass, in their order, and the count after each filter.

    Raises TaskError for a category, difficulty or split that does not exist, or a limit below one.
    """
    _check_names("category", filters.categories, CATEGORIES)
    _check_names("difficulty", filters.difficulties, DIFFICULTIES)
    _check_names("split", filters.splits, SPLITS)
    if filters.limit is not None and filters.limit < 1:
        raise TaskError(f"limit must be at least 1, not {filters.limit}", where="--limit")
    kept, counts = list(tasks), []
    for label, keeps in _steps(filters):
        kept = [task for task in kept if keeps(task)]
        counts.append(Count(label, len(kept)))
    if filters.limit is not None:
        kept = sample(kept, filters.limit, filters.seed)
        counts.append(Count(f"limit {filters.limit}", len(kept)))
    return kept, counts


def sample(tasks: Sequence[Task], limit: int, seed: int | None) -> list[Task]:
    """At most ``limit`` tasks in their order: the first, or with a seed a random choice.

    A choice ranks the ids by a digest with the seed. So a larger limit keeps what a smaller one chose, and a task that
    is added to a suite changes at most one place.
    """
    if seed is None or limit >= len(tasks):
        return list(tasks[:limit])
    ranked = sorted(tasks, key=lambda task: hashlib.sha256(f"{seed}/{task.id}".encode()).digest())
    chosen = {task.id for task in ranked[:limit]}
    return [task for task in tasks if task.id in chosen]


def require_some(kept: Sequence[Task], counts: Sequence[Count], start: int) -> None:
    """Raise TaskError naming the filter that left nothing, if nothing is left of ``start`` tasks."""
    if kept:
        return
    path = " → ".join([f"{start} selected", *(f"{name}: {left}" for name, left in counts)])
    emptied = next((count.filter for count in counts if not count.left), None)
    if emptied is None or not start:
        raise TaskError("no task was selected", hint="cuarl tasks list")
    raise TaskError(f'no task is left: "{emptied}" leaves none', where=path, hint="cuarl tasks list")


def require_checks(tasks: Iterable[Task]) -> None:
    """Raise TaskError if nobody could tell whether one of the tasks is done: then there is nothing to learn from."""
    unscorable = [task.id for task in tasks if not task.scorable]
    if unscorable:
        raise TaskError(
            f"tasks without checks can't be scored: {some(unscorable)}",
            hint=f"give them checks (docs/guides/tasks.md), or --reward judge   # cuarl tasks show {unscorable[0]}",
        )


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _steps(filters: Filters) -> Iterator[tuple[str, Callable[[Task], bool]]]:
    if filters.suites:
        yield _label("suite", filters.suites), lambda task: _is_in(task.suite, filters.suites)
    if filters.envs:
        yield _label("env", filters.envs), lambda task: _is_in(task.env, filters.envs)
    if filters.categories:
        yield _label("category", filters.categories), lambda task: _is_in(task.category, filters.categories)
    if filters.difficulties:
        yield _label("difficulty", filters.difficulties), lambda task: _is_in(task.difficulty, filters.difficulties)
    if filters.splits:
        yield _label("split", filters.splits), lambda task: _is_in(task.split or "", filters.splits)
    if filters.tags:
        yield _label("tag", filters.tags), lambda task: any(_is_in(tag, filters.tags) for tag in task.tags)
    if filters.ids:
        yield _label("id", filters.ids), lambda task: any(fnmatchcase(task.id, glob) for glob in filters.ids)
    for condition in filters.where:
        yield f"-F {condition}", condition.holds


def _label(kind: str, values: Sequence[str]) -> str:
    return f"{kind} {','.join(values)}"


def _is_in(value: str, wanted: Sequence[str]) -> bool:
    return value.casefold() in (name.strip().casefold() for name in wanted)


def _check_names(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name.strip().casefold() not in known:
            near = did_you_mean(name.strip(), known)
            raise TaskError(f'unknown {kind} "{name}"{near}', hint=f"choose from {', '.join(known)}")


def _as_text(value: object) -> str:
    return "" if value is None else str(value)
