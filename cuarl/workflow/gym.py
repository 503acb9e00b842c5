"""A gym server for commands: its tasks, asked for beforehand, and the policy that gbox-mini-agent asks, served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.gym.options import Options
from cuarl.settings import Settings
from cuarl.tasks.gym import GymTask
from cuarl.tasks.source import Selection
from cuarl.tasks.suites import Role
from cuarl.tasks.task import Task
from cuarl.workflow import signals
from cuarl.workflow.served_policy import Hosts, address

if TYPE_CHECKING:
    import anyio

    from cuarl.env.base import Env
    from cuarl.env.gym.client import Gym
    from cuarl.env.gym.devices import Devices
    from cuarl.env.leases import Ledger
    from cuarl.env.plans.steps import Line
    from cuarl.integrations.mini_agent import RunOptions


def select(options: Options, config: ExperimentConfig, settings: Settings, role: Role) -> Selection:
    """The gym's tasks for training or for evaluation.

    Raises TaskError, PrerequisiteError if the server can't be asked.
    """
    from cuarl.env.gym import tasks

    return tasks.select(listed(options, settings), options, config, role)


def listed(options: Options, settings: Settings) -> list[GymTask]:
    """All tasks of the gym. Raises PrerequisiteError if the server can't be asked."""
    from cuarl.env.gym import tasks

    return signals.run(partial(tasks.listed, options, settings))


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Executions of the gym, in which cuarl or gbox-mini-agent acts.

    Raises ConfigError for tasks of another environment.
    """
    from cuarl.env.gym.backend import executions

    if options.actor == "cuarl":
        return executions(options, tasks, settings)
    from cuarl.env.gym.runs import MiniAgent
    from cuarl.integrations.mini_agent import MiniAgentEnv

    where = address(options.listen, options.model_url, options.picture_hosts, settings)
    hosts, agent, how = Hosts(where), MiniAgent.of(settings), _run_options(options, config)

    def make_env(
        gym: Gym, ledger: Ledger, devices: Devices, starting: anyio.CapacityLimiter, plan: Sequence[Line]
    ) -> Env:
        return MiniAgentEnv(gym, ledger, devices, starting, agent, hosts.talk, how, plan)

    made = executions(options, tasks, settings, make_env)

    async def close() -> None:
        for one in (hosts, made, agent):
            await one.close()

    alone = "gbox-mini-agent asks the process whose episode it acts in"
    return replace(made, close=close, in_step=False, alone=alone)


def _run_options(options: Options, config: ExperimentConfig) -> RunOptions:
    from cuarl.integrations.mini_agent import RunOptions

    return RunOptions(
        agent=options.agent,
        action_space=options.action_space,
        max_turns=config.max_turns,
        max_run_s=config.max_task_time_seconds,
        max_step_s=config.max_turn_time_seconds,
        poll_s=options.poll_seconds,
        picture_hosts=options.picture_hosts,
    )
