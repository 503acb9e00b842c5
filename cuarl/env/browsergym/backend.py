"""From options and tasks to environments of BrowserGym: what is checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend, unsolved
from cuarl.env.base import Env
from cuarl.env.browser.browser import find_program
from cuarl.env.browsergym.env import CHILD, BrowserGymEnv, calls
from cuarl.env.browsergym.options import Options
from cuarl.env.gymnasium.env import Source
from cuarl.env.leases import Ledger
from cuarl.env.workers.pool import Pool
from cuarl.errors import ConfigError, MissingExtra, TaskError
from cuarl.settings import Settings
from cuarl.tasks.asked import made_task, read_arguments, read_check
from cuarl.tasks.task import Check, Task, TaskInstance

PRESETS = ("task", "kwargs", "task_kwargs")
DEFAULTS = {"slow_mo": 0}
"""BrowserGym's own default waits a second after each event, for people to watch."""
SUCCESS = (Check(path="return", op="ge", value=1),)
MAX_STEPS = 1000
"""Of a task that options make: ``max_turns`` is lower."""


def require_browsergym() -> None:
    """Raise MissingExtra if BrowserGym is not installed (it is found without being imported)."""
    if find_spec("browsergym") is None or find_spec("browsergym.core") is None:
        raise MissingExtra("BrowserGym is not installed", hint="pip install 'cuarl[browsergym]'")


def option_tasks(options: Options) -> list[Task]:
    """The tasks that ``env.tasks`` and its companions say; none if it is not set. Raises ConfigError."""
    if not options.tasks and (options.kwargs or options.success):
        raise ConfigError("env.kwargs and env.success need env.tasks", hint="--browsergym-tasks miniwob.click-test")
    hint = "--browsergym-success 'return ge 1'"
    checks = [read_check(text, where="env.success", hint=hint) for text in options.success]
    given = read_arguments(options.kwargs, "env.kwargs")
    of_task = {key.removeprefix("task."): value for key, value in given.items() if key.startswith("task.")}
    of_env = {key: value for key, value in given.items() if not key.startswith("task.")}
    return [
        made_task(
            f"browsergym.{name}",
            "browsergym",
            "",
            checks or SUCCESS,
            {"task": name.replace("browsergym/", ""), "kwargs": of_env, "task_kwargs": of_task},
            max_steps=MAX_STEPS,
        )
        for name in options.tasks
    ]


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise ConfigError or TaskError for a task that no environment can be made of."""
    for task in tasks:
        if task.env != "browsergym":
            raise ConfigError(
                f"task {task.id} is for {task.env}, and not for browsergym",
                where="--env browsergym",
                hint=f"cuarl tasks show {task.id}, or --browsergym-tasks",
            )
        preset = task.instantiate(0).preset
        unknown = sorted(set(preset) - set(PRESETS))
        if unknown or not isinstance(preset.get("task"), str):
            what = f"presets {', '.join(unknown)}" if unknown else "has no name of a task of BrowserGym"
            raise TaskError(f"task {task.id} {what}", hint=f"its preset has {', '.join(PRESETS)}")
        if not task.checks:
            raise TaskError(f"task {task.id} has no checks", hint="checks: [{path: return, op: ge, value: 1}]")


def source(options: Options, task: TaskInstance, browser: Path | None) -> Source:
    """The environment of a task, shown by ``browser``."""
    kwargs: dict[str, Any] = {**DEFAULTS, **task.preset.get("kwargs", {})}
    if task.preset.get("task_kwargs"):
        kwargs["task_kwargs"] = task.preset["task_kwargs"]
    device = options.actions
    return Source(
        task.preset["task"], kwargs, actions=calls(device), device=device, beside={"browser": browser and str(browser)}
    )


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Tasks of BrowserGym, each in a worker with browsers of its own."""
    require_browsergym()
    check_tasks(tasks)
    browser = find_program(settings.browser)
    pool = Pool(Ledger(settings.sessions_folder), CHILD)

    async def make(task: TaskInstance) -> Env:
        return await BrowserGymEnv.opened(pool, source(options, task, browser))

    return Backend(make, close=pool.close, at_most=options.processes, may_solve=unsolved)
