"""From a run's options and this machine's settings to executions of a gym.

Serving the policy that gbox-mini-agent asks is the business of a layer above, so whoever calls ``backend`` hands it in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.gbox.backend import boxes
from cuarl.env.gym.client import Gym
from cuarl.env.gym.devices import Devices
from cuarl.env.gym.env import GymEnv
from cuarl.env.gym.mini_agent import MiniAgentEnv, RunOptions, Talk
from cuarl.env.gym.options import Options
from cuarl.env.gym.runs import MiniAgent
from cuarl.env.leases import Ledger
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance


def backend(
    options: Options,
    config: ExperimentConfig,
    tasks: Sequence[Task],
    settings: Settings,
    *,
    talk: Talk,
    hang_up: Callable[[], Awaitable[None]],
) -> Backend:
    """Executions of the gym; ``talk`` begins a session with a served policy, ``hang_up`` ends the serving.

    Raises ConfigError for tasks of another environment.
    """
    stranger = next((task for task in tasks if task.env != "gym"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for a gym", where="--env gym")
    gym, agent, ledger = Gym.of(options, settings), MiniAgent.of(settings), Ledger(settings.sessions_folder)
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
        if options.actor == "cuarl":
            return GymEnv(gym, ledger, devices, starting[0])
        return MiniAgentEnv(gym, ledger, devices, starting[0], agent, talk, _run_options(options, config))

    async def close() -> None:
        await hang_up()
        for one in (devices, agent, gym):
            await one.close()

    return Backend(make, start=start, close=close, at_most=options.executions, in_step=options.actor == "cuarl")


def _adb(settings: Settings) -> Any:
    from cuarl.env.adb.transport import client

    return client(settings.adb_host, settings.adb_port)


def _run_options(options: Options, config: ExperimentConfig) -> RunOptions:
    return RunOptions(
        agent=options.agent,
        action_space=options.action_space,
        max_turns=config.max_turns,
        max_run_s=config.max_task_time_seconds,
        max_step_s=config.max_turn_time_seconds,
        poll_s=options.poll_seconds,
        picture_hosts=options.picture_hosts,
    )
