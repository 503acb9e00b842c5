"""Generated tasks as files, kept clear of the evaluation suites, and how near any tasks come to those."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cuarl.errors import ConfigError
from cuarl.run.atomic import write_text
from cuarl.sim.phone.generator.generate import generate
from cuarl.tasks.build import bindings
from cuarl.tasks.changes import content
from cuarl.tasks.nearest import Nearest
from cuarl.tasks.review import MOST_BINDINGS
from cuarl.tasks.source import load
from cuarl.tasks.suites import load_suites
from cuarl.tasks.task import Task, TaskInstance

SUFFIXES = (".jsonl", ".ndjson")
"""Of the files that tasks are written to, one a line, so that no more than one is held at a time."""


def write_generated(folders: Sequence[Path], count: int, seed: int, path: Path) -> None:
    """Write ``count`` tasks drawn by ``seed`` to a file, whole or not at all. Raises ConfigError, TaskError."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f'generated tasks are written one a line, not to a file that ends in "{path.suffix}"',
            where=f"--out {path}",
            hint=f"--out {path.with_suffix(SUFFIXES[0])}",
        )
    try:
        write_text(path, generated_lines(folders, count, seed))
    except OSError as error:
        raise ConfigError(f"the file can't be written: {error.strerror}", where=f"--out {path}") from error


def generated_lines(folders: Sequence[Path], count: int, seed: int) -> Iterator[str]:
    """Tasks as lines of a JSON-lines file; only what is not at its default is written."""
    for task in generate(count, seed, evaluated(folders)):
        yield json.dumps(content(task), ensure_ascii=False, separators=(",", ":")) + "\n"


def evaluated(folders: Sequence[Path]) -> list[TaskInstance]:
    """What the evaluation suites in some folders ask for, with all values of their parameters. Raises TaskError."""
    suites = [suite for suite in load_suites(folders) if suite.suite.role == "eval"]
    return [i for suite in suites for task in suite.tasks for i in bindings(task, MOST_BINDINGS)]


class Pair(NamedTuple):
    """A goal and the evaluation goal that is nearest to it."""

    similarity: float
    task_id: str
    goal: str
    evaluation_id: str
    evaluation_goal: str


def nearest_pairs(folders: Sequence[Path], selectors: Sequence[str], limit: int) -> list[Pair]:
    """The ``limit`` pairs that are nearest, the nearest first. Raises TaskError."""
    known = evaluated(folders)
    nearest = Nearest([instance.goal for instance in known])
    tasks = load(selectors, role=None, folders=folders).tasks
    return heapq.nlargest(limit, _pairs(tasks, known, nearest), key=lambda pair: pair.similarity)


def _pairs(tasks: Sequence[Task], known: Sequence[TaskInstance], nearest: Nearest) -> Iterator[Pair]:
    for task in tasks:
        for instance in bindings(task, MOST_BINDINGS):
            match = nearest.of(instance.goal)
            if match.position is not None:
                other = known[match.position]
                yield Pair(match.similarity, instance.task_id, instance.goal, other.task_id, other.goal)
