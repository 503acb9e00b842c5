"""Simulated phones and desktops as the backend of a run."""

from __future__ import annotations

from collections.abc import Sequence

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.sim.devices import SIMULATED, load, make_sim
from cuarl.env.sim.options import Options
from cuarl.env.task_checks import settable
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

PHONES_ONLY = ("astray", "oracle_opens")
"""Options that no other simulated device has."""


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    strangers = sorted({task.env for task in tasks} - set(SIMULATED))
    if strangers:
        first = next(task.id for task in tasks if task.env == strangers[0])
        raise ConfigError(
            f"the simulator has no {strangers[0]}, which task {first} needs", hint=f"--env {strangers[0]}"
        )

    more = {name: value for name in PHONES_ONLY if (value := getattr(options, name))}
    if more and any(task.env != "phone" for task in tasks):
        name = next(iter(more))
        first = next(task.id for task in tasks if task.env != "phone")
        raise ConfigError(
            f"{name} is of simulated phones, and task {first} is for another device",
            where=f"--{name.replace('_', '-')}",
            hint="leave it out, or --tasks phone",
        )
    settable(tasks)
    for kind in {task.env for task in tasks}:
        load(kind)

    async def make(task: TaskInstance) -> Env:
        return make_sim(task.env, options.profile, clutter=options.clutter, **more)

    return Backend(make)
