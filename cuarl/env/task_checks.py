"""What backends ask of all tasks of a run, before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakValueDictionary

from cuarl.env.presets import preset_problem
from cuarl.errors import ConfigError, TaskError
from cuarl.tasks.task import Task

_settable: WeakValueDictionary[int, Task] = WeakValueDictionary()
"""Tasks that were looked at, by their identity: a run's parts ask for the same ones, of which there may be many."""


def settable(tasks: Sequence[Task]) -> None:
    """Raise TaskError for a task that its device can't be set up for."""
    for task in tasks:
        if _settable.get(id(task)) is task:
            continue
        if problem := preset_problem(task.instantiate(0)):
            raise TaskError(problem, where=f"task {task.id}", hint=f"cuarl tasks show {task.id}")
        _settable[id(task)] = task


def only(env: str, tasks: Sequence[Task]) -> None:
    """Raise ConfigError if one of the tasks is for another environment than ``env``."""
    stranger = next((task for task in tasks if task.env != env), None)
    if stranger is not None:
        raise ConfigError(
            f"task {stranger.id} is for {stranger.env}, and the environment is {env}",
            where="--env",
            hint=f"cuarl tasks list --env {env}",
        )
