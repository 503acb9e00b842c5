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

if TYPE_CHECKING:
    import anyio

    from cuarl.env.base import Env
    from cuarl.env.gym.client import Gym
    from cuarl.env.gym.devices import Devices
    from cuarl.env.gym.follow import Conversation
    from cuarl.env.leases import Ledger
    from cuarl.integrations.mini_agent import RunOptions
    from cuarl.policy.sampler import Sampler, SamplingParams
    from cuarl.serve.hosted import Address, Host

_MODEL = "cuarl"
"""What gbox-mini-agent asks the model for, which it is the only one of."""


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

    hosts, agent, how = _Hosts(_address(options, settings)), MiniAgent.of(settings), _run_options(options, config)

    def make_env(gym: Gym, ledger: Ledger, devices: Devices, starting: anyio.CapacityLimiter) -> Env:
        return MiniAgentEnv(gym, ledger, devices, starting, agent, hosts.talk, how)

    made = executions(options, tasks, settings, make_env)

    async def close() -> None:
        for one in (hosts, made, agent):
            await one.close()

    return replace(made, close=close, in_step=False)


class _Hosts:
    """The servers of policies, one for each sampler that gbox-mini-agent is to ask."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._hosts: dict[int, Host] = {}

    def talk(self, sampler: Sampler, params: SamplingParams, seed: int) -> Conversation:
        """A session with ``sampler``."""
        from cuarl.serve.hosted import Host

        if id(sampler) not in self._hosts:
            self._hosts[id(sampler)] = Host(sampler, _MODEL, params, self._address)
        return self._hosts[id(sampler)].conversation(seed)

    async def close(self) -> None:
        """Serve no more."""
        hosts, self._hosts = self._hosts, {}
        for host in hosts.values():
            await host.close()


def _address(options: Options, settings: Settings) -> Address:
    from cuarl.serve.hosted import Address

    host, _, port = options.listen.rpartition(":")
    return Address(
        host=host.strip("[]"),
        port=int(port),
        url=options.model_url,
        token=settings.serve_token.get_secret_value() if settings.serve_token else None,
        picture_hosts=options.picture_hosts,
    )


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
