"""A gym server for commands: its tasks, executions as environments, and gbox-mini-agent with the policy that it asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.gym.options import Options
from cuarl.errors import ConfigError, PrerequisiteError, RolloutError
from cuarl.settings import Settings
from cuarl.tasks.gym import GymTask, Split, narrow, pick
from cuarl.tasks.recipe import TaskSource, read_sources
from cuarl.tasks.source import Selection, split
from cuarl.tasks.suites import Role
from cuarl.tasks.task import Task, TaskInstance
from cuarl.workflow import signals

if TYPE_CHECKING:
    from pydantic import SecretStr

    from cuarl.env.gym.client import Gym
    from cuarl.env.gym.follow import Conversation
    from cuarl.env.gym.mini_agent import RunOptions
    from cuarl.env.gym.runs import MiniAgent
    from cuarl.policy.sampler import Sampler, SamplingParams
    from cuarl.serve.hosted import Address, Host

_MODEL = "cuarl"
"""What gbox-mini-agent asks the model for, which it is the only one of."""


# --- tasks ---------------------------------------------------------------------------------------------------------


def select(options: Options, config: ExperimentConfig, settings: Settings, role: Role) -> Selection:
    """The gym's tasks for training or for evaluation. Raises TaskError, PrerequisiteError if the server can't be asked.

    Names mean those tasks, whatever their role; without any, the role's share is meant.
    """
    tasks = listed(options, settings)
    selectors = split(config.eval_tasks or config.tasks if role == "eval" else config.tasks)
    names = [one.text for one in selectors if not one.is_json and one.text != "all"]
    sources = [source for one in selectors if one.is_json for source in read_sources(one.text)]
    how = Split(ratio=options.train_ratio, seed=options.seed, eval_range=options.eval_number_range)
    found = pick(tasks, names) if names else []
    if role == "eval" and not config.eval_tasks:  # the other share of the training tasks
        sources = [s.model_copy(update={"split_type": "eval"}) if s.split_type == "train" else s for s in sources]
    for source in sources:
        found += [task for task in _of_source(tasks, source, how) if task not in found]
    found = found if names or sources else how.share(tasks, role)
    return Selection(
        narrow(
            found, tags=options.tags, categories=config.category, difficulties=config.difficulty, limit=config.limit,
            seed=config.seed if config.limit else None,
        )
    )  # fmt: skip


def listed(options: Options, settings: Settings) -> list[GymTask]:
    """All tasks of the gym. Raises PrerequisiteError if the server can't be asked."""

    async def ask() -> list[GymTask]:
        gym = _gym(options, settings)
        try:
            return await gym.tasks()
        finally:
            await gym.close()

    try:
        return signals.run(ask)
    except RolloutError as error:
        raise PrerequisiteError(
            f"the gym's tasks can't be listed: {error.what}", where=error.where, hint="export GYM_BASE_URL=URL"
        ) from error


def _of_source(tasks: Sequence[GymTask], source: TaskSource, how: Split) -> Sequence[GymTask]:
    """The seeds' JSON objects, whose split is by their own ratio and seed if they have any."""
    if source.source_type not in ("gym", "genv_umetrip"):
        raise ConfigError(
            f'source_type "{source.source_type}" names no tasks of a gym', where="--env gym",
            hint='{"source_type": "gym", "split_type": "train"}',
        )  # fmt: skip
    given = source.model_fields_set
    own = Split(ratio=source.train_ratio, seed=source.seed) if {"train_ratio", "seed"} & given else how
    found = tasks if source.split_type == "none" else own.share(tasks, source.split_type)
    if source.task_names:
        found = pick(found, source.task_names.split(","))
    kept = narrow(
        found, categories=(source.category,) if source.category else (),
        difficulties=(source.difficulty,) if source.difficulty else (), limit=source.limit, seed=source.seed,
    )  # fmt: skip
    ids = {task.id for task in kept}
    return [task for task in found if task.task.id in ids]


# --- environments --------------------------------------------------------------------------------------------------


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Executions of the gym. Raises ConfigError for tasks of another environment."""
    from cuarl.env.gbox.backend import boxes
    from cuarl.env.gym.devices import Devices
    from cuarl.env.gym.env import GymEnv
    from cuarl.env.gym.mini_agent import MiniAgentEnv
    from cuarl.env.leases import Ledger

    stranger = next((task for task in tasks if task.env != "gym"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for a gym", where="--env gym")
    gym, agent, ledger = _gym(options, settings), _mini_agent(settings), Ledger(settings.sessions_folder)
    devices = Devices(
        ledger,
        partial(boxes, settings),
        partial(_adb, settings),
        space=options.action_space,
        settle_ms=options.settle_ms,
    )
    hosts = _Hosts(_address(options, settings))
    starting: list[anyio.CapacityLimiter] = []  # made where the event loop is

    async def start() -> None:
        starting[:] = [anyio.CapacityLimiter(options.creates)]

    async def make(task: TaskInstance) -> Env:
        if options.actor == "cuarl":
            return GymEnv(gym, ledger, devices, starting[0])
        return MiniAgentEnv(gym, ledger, devices, starting[0], agent, hosts.talk, _run_options(options, config))

    async def close() -> None:
        for one in (hosts, devices, agent, gym):
            await one.close()

    return Backend(
        make, start=start, close=close, at_most=options.executions, in_step=options.actor == "cuarl"
    )  # fmt: skip


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


def _gym(options: Options, settings: Settings) -> Gym:
    from cuarl.env.gym.client import Gym

    return Gym(settings.gym_base_url, options.id, _key(settings.gym_api_key))


def _mini_agent(settings: Settings) -> MiniAgent:
    from cuarl.env.gym.runs import MiniAgent

    return MiniAgent(settings.mini_agent_base_url, _key(settings.mini_agent_api_key))


def _key(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None


def _adb(settings: Settings) -> Any:
    from cuarl.env.adb.transport import client

    return client(settings.adb_host, settings.adb_port)


def _address(options: Options, settings: Settings) -> Address:
    from cuarl.serve.hosted import Address

    host, _, port = options.listen.rpartition(":")
    return Address(
        host=host.strip("[]"), port=int(port), url=options.model_url, token=_key(settings.serve_token),
        picture_hosts=options.picture_hosts,
    )  # fmt: skip


def _run_options(options: Options, config: ExperimentConfig) -> RunOptions:
    from cuarl.env.gym.mini_agent import RunOptions

    return RunOptions(
        agent=options.agent, action_space=options.action_space, max_turns=config.max_turns,
        max_run_s=config.max_task_time_seconds, max_step_s=config.max_turn_time_seconds,
        poll_s=options.poll_seconds, picture_hosts=options.picture_hosts,
    )  # fmt: skip
