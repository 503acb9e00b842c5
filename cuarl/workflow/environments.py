"""Which backend runs the episodes of a command: what ``env`` names, in the one table of ``cuarl.config.backends``."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isawaitable, signature
from types import ModuleType

from cuarl import objects
from cuarl.config import backends
from cuarl.config.keys import value_of
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.plans.check import check_plans
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance
from cuarl.workflow.judged import with_judge
from cuarl.workflow.watcher import Note


def _own(path: str) -> Backend:
    """An environment of one's own: what its function or class makes of a task, or of nothing if it takes nothing."""
    factory = objects.get(path, "environment")
    if not callable(factory):
        raise ConfigError(f'the environment "{path}" is neither a class nor a function', where="--env")
    takes_task = bool(signature(factory).parameters)

    async def make(task: TaskInstance) -> Env:
        made = factory(task) if takes_task else factory()
        env: Env = await made if isawaitable(made) else made
        return env

    return Backend(make)


def check(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """See, before anything starts, that the environment is there for a run's tasks, and that they honour its options.

    Raises CuarlError for what is missing, and ConfigError for an option that none of ``tasks`` can honour.
    """
    made = backend(config, tasks, settings)
    if ":" not in config.env.type and (check_options := getattr(_module(config.env.type), "check_options", None)):
        check_options(config.env, tasks)
    _check_workers(config, made)
    return made


def _check_workers(config: ExperimentConfig, backend: Backend) -> None:
    """Raise ConfigError if the episodes can't be run by workers."""
    if config.workers is None:
        return
    if backend.alone:
        raise ConfigError(
            f"env {config.env.type} can't be shared out to workers: {backend.alone}",
            where=f"--workers {config.workers}",
            hint="leave --workers out",
        )
    for field in ("reward", "env"):
        path = value_of(config, field)
        if objects.is_held(path):
            raise ConfigError(
                f"the {field} {path} is an object that only this process has, so workers can't share it",
                hint="put it into a module that can be imported, and pass it from there",
            )


def fitting(config: ExperimentConfig, tasks: Sequence[Task], note: Note) -> tuple[Task, ...]:
    """Those of ``tasks`` that the environment, as it is configured, can set up and judge; the others are told.

    Raises ConfigError if there are others alone.
    """
    unfit = None if ":" in config.env.type else getattr(_module(config.env.type), "unfit", None)
    why: dict[str, str] = unfit(config.env, tasks) if unfit else {}
    if not why:
        return tuple(tasks)
    name, needs = next(iter(why.items()))
    told = f"{len(why)} of {len(tasks)} tasks need more than the device's shell, such as {name}: {needs}"
    if len(why) == len(tasks):
        raise ConfigError(told, where=f"--env {config.env.type}", hint=f"--{config.env.type}-state program")
    note(f"{told}; they are left out")
    return tuple(task for task in tasks if task.id not in why)


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """The backend that ``config`` names. Raises ConfigError if there is none, or if one of ``tasks`` needs another."""
    if ":" in config.env.type:
        return with_judge(_own(config.env.type), config, settings)
    check_plans(tasks)
    return with_judge(_module(config.env.type).backend(config.env, config, tasks, settings), config, settings)


def _module(name: str) -> ModuleType:
    try:
        return backends.module_of(name)
    except ValueError as error:
        raise ConfigError(str(error), where="--env") from error
