"""Which backend runs the episodes of a command: the one table of what ``--env`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from inspect import isawaitable, signature

from cuarl import objects
from cuarl.config.load import did_you_mean
from cuarl.config.schema import ExperimentConfig
from cuarl.env.base import Env
from cuarl.errors import ConfigError, TaskError
from cuarl.rollout.spec import EpisodeSpec
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow.backend import Backend, MakeBackend


def _sim(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    from cuarl.env.sim.make import SIMULATED, make_sim

    strangers = sorted({task.env for task in tasks} - set(SIMULATED))
    if strangers:
        first = next(task.id for task in tasks if task.env == strangers[0])
        raise ConfigError(
            f"the simulator has no {strangers[0]}, which task {first} needs", hint=f"cuarl tasks show {first}"
        )

    _settable(tasks)

    async def make(spec: EpisodeSpec) -> Env:
        return make_sim(spec.task.env, config.profile, clutter=config.clutter)

    return Backend(make)


def _linux(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    from cuarl.env.leases import Ledger
    from cuarl.env.linux.env import LinuxEnv
    from cuarl.env.linux.programs import programs_of, require

    _only("linux", config, tasks)
    _settable(tasks)
    # a task may draw its applications, so that a few of its instances are looked at
    drawn = [task.instantiate(seed) for task in tasks for seed in range(16 if task.params else 1)]
    require(name for instance in drawn for name in programs_of(instance.preset))
    width, height = map(int, config.linux_screen.split("x"))
    ledger = Ledger(settings.sessions_folder)

    async def make(spec: EpisodeSpec) -> Env:
        return LinuxEnv(ledger, (width, height), settle_ms=config.linux_settle_ms)

    return Backend(make, at_most=config.linux_displays)


def _browser(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    from cuarl.env.browser.browser import Browser
    from cuarl.env.browser.make import check_tasks, factory, paced, page_options
    from cuarl.env.leases import Ledger

    _only("browser", config, tasks)
    check_tasks(tasks)
    at_once = min(config.browser_contexts, config.max_concurrent_rollouts)
    browser = Browser(Ledger(settings.sessions_folder), settings.browser, paced=paced(tasks, at_once))
    make_env = factory(browser, page_options(config, tasks), mask=config.browser_instruction == "mask")

    async def make(spec: EpisodeSpec) -> Env:
        return make_env(spec.task)

    return Backend(make, close=browser.close, at_most=config.browser_contexts)


def _gbox(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    import anyio

    from cuarl.env.gbox.env import GBoxEnv
    from cuarl.env.gbox.make import boxes, check_tasks, options
    from cuarl.env.leases import Ledger

    check_tasks(tasks)
    chosen = options(config)
    service = boxes(settings)
    ledger = Ledger(settings.sessions_folder)
    starting: list[anyio.CapacityLimiter] = []  # made where the event loop is

    async def start() -> None:
        starting[:] = [anyio.CapacityLimiter(config.gbox_starting)]

    async def make(spec: EpisodeSpec) -> Env:
        return GBoxEnv(service, ledger, spec.task.env, chosen, starting=starting[0])

    return Backend(make, start=start, close=service.close, at_most=config.gbox_boxes)


def _adb(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    from cuarl.env.adb.make import Devices, check_tasks, choose, options
    from cuarl.env.adb.transport import client
    from cuarl.env.leases import Ledger

    how = options(config)
    check_tasks(tasks, how)
    adb, ledger = client(settings.adb_host, settings.adb_port), Ledger(settings.sessions_folder)
    wanted = [serial.strip() for serial in (settings.adb_serials or "").split(",") if serial.strip()]
    found = choose(adb, wanted, ledger)
    devices = Devices(adb, found, ledger, how, reconnect_s=config.adb_reconnect_seconds)

    async def make(spec: EpisodeSpec) -> Env:
        return await devices.env(spec.task)

    return Backend(make, start=devices.start, close=devices.close, at_most=len(found))


def _gym(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    from cuarl.workflow import gym

    return gym.backend(config, tasks, settings)


def _pods(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    import anyio

    from cuarl.env.leases import Ledger
    from cuarl.env.pods import make as parts
    from cuarl.env.pods.env import PodEnv

    parts.check_tasks(tasks)
    chosen = parts.options(config)
    pods, ledger = parts.pods(settings, config.pods_namespace), Ledger(settings.sessions_folder)
    ways = parts.Ways(pods, settings.pods_proxy_url, chosen.template.port)
    starting: list[anyio.CapacityLimiter] = []  # made where the event loop is

    async def start() -> None:
        starting[:] = [anyio.CapacityLimiter(config.pods_starting)]

    async def make(spec: EpisodeSpec) -> Env:
        kind = spec.task.env
        return PodEnv(pods, ledger, ways.connect(kind), chosen, kind, starting[0])

    return Backend(make, start=start, close=ways.close, at_most=config.pods_at_once)


def _own(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """An environment of one's own: whatever its function or class makes of a task, or of nothing if it takes nothing."""
    factory = objects.get(config.env, "environment")
    if not callable(factory):
        raise ConfigError(f'the environment "{config.env}" is neither a class nor a function', where="--env")
    takes_task = bool(signature(factory).parameters)

    async def make(spec: EpisodeSpec) -> Env:
        made = factory(spec.task) if takes_task else factory()
        env: Env = await made if isawaitable(made) else made
        return env

    return Backend(make)


def _foreign(name: str) -> MakeBackend:
    """A backend of ``workflow.foreign``, which is loaded once it is used."""

    def make(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
        from cuarl.workflow import foreign

        made: Backend = getattr(foreign, name)(config, tasks, settings)
        return made

    return make


def _settable(tasks: Sequence[Task]) -> None:
    """Raise TaskError for a task that its device can't be set up for."""
    from cuarl.env.presets import preset_problem

    for task in tasks:
        if problem := preset_problem(task.instantiate(0)):
            raise TaskError(problem, where=f"task {task.id}", hint=f"cuarl tasks show {task.id}")


def _only(env: str, config: ExperimentConfig, tasks: Sequence[Task]) -> None:
    """Raise ConfigError if one of the tasks is for another environment than ``env``."""
    stranger = next((task for task in tasks if task.env != env), None)
    if stranger is not None:
        raise ConfigError(
            f"task {stranger.id} is for {stranger.env}, and the environment is {config.env}",
            where="--env", hint=f"cuarl tasks list --env {env}",
        )  # fmt: skip


BACKENDS: Mapping[str, MakeBackend] = {
    "sim": _sim,
    "adb": _adb,
    "linux": _linux,
    "browser": _browser,
    "gbox": _gbox,
    "pods": _pods,
    "gym": _gym,
    "gymnasium": _foreign("gymnasium"),
    "browsergym": _foreign("browsergym"),
    "openenv": _foreign("openenv"),
}
"""By the name that ``--env`` takes. Each checks the tasks and the machine, and raises before anything starts."""


WITH_TASKS = ("adb", "browser", "gbox", "gymnasium", "pods")
"""Environments with options that some tasks leave without effect."""


def check(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> None:
    """See, before anything starts, that the environment is there for all tasks of a run, and that they can honour its options.

    Raises CuarlError for what is missing, and ConfigError for an option that none of ``tasks`` can honour.
    """
    backend(config, tasks, settings)
    if config.env in WITH_TASKS:
        import_module(f"cuarl.env.{config.env}.make").check_options(config, tasks)


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """The backend that ``config`` names. Raises ConfigError if there is none, or if one of ``tasks`` needs another."""
    if ":" in config.env:
        return _own(config, tasks, settings)
    if config.env not in BACKENDS:
        raise ConfigError(
            f'there is no environment "{config.env}"{did_you_mean(config.env, tuple(BACKENDS))}',
            where="--env", hint=f"--env {next(iter(BACKENDS))}",
        )  # fmt: skip
    return BACKENDS[config.env](config, tasks, settings)
