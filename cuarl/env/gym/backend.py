"""From a run's options and this machine's settings to executions of a gym."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio

from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.gbox.backend import boxes
from cuarl.env.gym.client import Gym
from cuarl.env.gym.devices import Devices
from cuarl.env.gym.env import GymEnv
from cuarl.env.gym.options import Options
from cuarl.env.gym.plan import ABILITIES
from cuarl.env.leases import Ledger
from cuarl.env.plans.devices import read_plan
from cuarl.env.plans.steps import Line
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

MakeExecution = Callable[[Gym, Ledger, Devices, anyio.CapacityLimiter, Sequence[Line]], Env]
"""The environment of an execution, as ``GymEnv`` is one: its starts are bounded, and the last of these is its plan."""


def executions(
    options: Options, tasks: Sequence[Task], settings: Settings, make_env: MakeExecution = GymEnv
) -> Backend:
    """Executions of the gym. Raises ConfigError for tasks of another environment, TaskError for a plan."""
    stranger = next((task for task in tasks if task.env != "gym"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for a gym", where="--env gym")
    for task in tasks:
        read_plan(task.instantiate(0).plan, ABILITIES[options.action_space])
    gym, ledger = Gym.of(options, settings), Ledger(settings.sessions_folder)
    devices = Devices(
        ledger,
        partial(boxes, settings),
        partial(_adb, settings),
        space=options.action_space,
        settle_ms=options.settle_ms,
    )
    starting: list[anyio.CapacityLimiter] = []  # made where the event loop is

    async def start() -> None:
        starting[:] = [anyio.CapacityLimiter(options.creates)]

    async def make(task: TaskInstance) -> Env:
        return make_env(gym, ledger, devices, starting[0], task.plan)

    async def close() -> None:
        await devices.close()
        await gym.close()

    return Backend(make, start=start, close=close, at_most=options.executions, may_solve=_has_plan)


def _has_plan(task: Task) -> bool:
    return bool(task.plan)


def _adb(settings: Settings) -> Any:
    from cuarl.env.adb.transport import client

    return client(settings.adb_host, settings.adb_port)
