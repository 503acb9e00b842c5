"""Which backend runs the episodes of a command: the one table of what ``--env`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isawaitable, signature
from types import ModuleType

from cuarl import objects
from cuarl.config.load import did_you_mean
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance


def _own(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """An environment of one's own: whatever its function or class makes of a task, or of nothing if it takes nothing."""
    factory = objects.get(config.env, "environment")
    if not callable(factory):
        raise ConfigError(f'the environment "{config.env}" is neither a class nor a function', where="--env")
    takes_task = bool(signature(factory).parameters)

    async def make(task: TaskInstance) -> Env:
        made = factory(task) if takes_task else factory()
        env: Env = await made if isawaitable(made) else made
        return env

    return Backend(make)


BACKENDS: Mapping[str, str] = {
    "sim": "cuarl.env.sim.backend",
    "adb": "cuarl.env.adb.backend",
    "linux": "cuarl.env.linux.backend",
    "browser": "cuarl.env.browser.backend",
    "gbox": "cuarl.env.gbox.backend",
    "pods": "cuarl.env.pods.backend",
    "gym": "cuarl.workflow.gym",
    "gymnasium": "cuarl.env.gymnasium.backend",
    "browsergym": "cuarl.env.browsergym.backend",
    "openenv": "cuarl.env.openenv.backend",
}
"""The module of each backend, by the name that ``--env`` takes.

A module offers ``backend(config, tasks, settings)``, which checks the tasks and the machine and raises before anything starts,
and ``check_options(config, tasks)`` where some tasks leave an option without effect. Packages that are installed add theirs
by entry points of the group ``cuarl.environments``: a name and a module.
"""
GROUP = "cuarl.environments"


def named() -> dict[str, str]:
    """All backends that are installed, ours first; what others call by one of our names is not theirs to take."""
    return {one.name: one.value for one in entry_points(group=GROUP)} | dict(BACKENDS)


def check(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> None:
    """See, before anything starts, that the environment is there for all tasks of a run, and that they can honour its options.

    Raises CuarlError for what is missing, and ConfigError for an option that none of ``tasks`` can honour.
    """
    backend(config, tasks, settings)
    if ":" not in config.env and (check_options := getattr(_module(config.env), "check_options", None)):
        check_options(config, tasks)


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """The backend that ``config`` names. Raises ConfigError if there is none, or if one of ``tasks`` needs another."""
    if ":" in config.env:
        return _own(config, tasks, settings)
    made: Backend = _module(config.env).backend(config, tasks, settings)
    return made


def _module(name: str) -> ModuleType:
    known = named()
    if name not in known:
        raise ConfigError(
            f'there is no environment "{name}"{did_you_mean(name, tuple(known))}',
            where="--env", hint=f"--env {next(iter(BACKENDS))}",
        )  # fmt: skip
    return import_module(known[name])
