"""Linux desktops of this machine as the backend of a run."""

from __future__ import annotations

from collections.abc import Sequence

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.leases import Ledger
from cuarl.env.linux.env import LinuxEnv
from cuarl.env.linux.options import Options
from cuarl.env.linux.programs import programs_of, require
from cuarl.env.task_checks import only, settable
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    only("linux", tasks)
    settable(tasks)
    # a task may draw its applications, so that a few of its instances are checked
    drawn = [task.instantiate(seed) for task in tasks for seed in range(16 if task.params else 1)]
    require(name for instance in drawn for name in programs_of(instance.preset))
    width, height = map(int, options.screen.split("x"))
    ledger = Ledger(settings.sessions_folder)

    async def make(task: TaskInstance) -> Env:
        return LinuxEnv(ledger, (width, height), settle_ms=options.settle_ms)

    return Backend(make, at_most=options.displays, may_solve=lambda task: bool(task.plan))
