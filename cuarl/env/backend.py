"""What runs the environments of a command's episodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuarl.config.schema import ExperimentConfig
from cuarl.env.base import Env
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance


async def nothing() -> None:
    """There is nothing to do."""


MakeEnv = Callable[[TaskInstance], Awaitable[Env]]


def unsolved(task: Task) -> bool:
    """``may_solve`` of an environment without oracle."""
    return False


@dataclass(frozen=True, slots=True)
class Backend:
    """How the environment of an episode is made, and what is started before the first and released after the last."""

    make_env: MakeEnv
    start: Callable[[], Awaitable[None]] = nothing
    close: Callable[[], Awaitable[None]] = nothing
    at_most: int | None = None
    """Most episodes at the same time that it bears; None for no limit of its own."""
    in_step: bool = True
    """Whether episodes ask their policy in their own loop, so that a sampler that batches may wait for all of them."""
    alone: str = ""
    """Why one process has to make all of its environments, for people; empty where any number of processes may."""
    may_solve: Callable[[Task], bool] = lambda task: True
    """Whether its oracle may know how a task is solved; where it says no, no episode need be begun to find out."""

    def concurrent(self, wanted: int) -> int:
        """How many episodes to run at the same time where ``wanted`` are asked for."""
        return wanted if self.at_most is None else min(wanted, self.at_most)


MakeBackend = Callable[[Any, ExperimentConfig, Sequence[Task], Settings], Backend]
"""Of a backend's options, all of the configuration, the tasks and the settings."""
