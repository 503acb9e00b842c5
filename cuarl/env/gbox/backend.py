"""From a run's options and this machine's settings to boxes."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import BOX_TYPES, GBoxEnv
from cuarl.env.gbox.options import Options
from cuarl.env.leases import Ledger
from cuarl.env.shell_checks.reads import check_task
from cuarl.env.shell_checks.stock import by_shell, in_these_words, left_out
from cuarl.errors import ConfigError, MissingSecret
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

TASKS_FOR = ("gbox", *BOX_TYPES)
"""What ``env`` of a task that a box can run says."""


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise ConfigError for a task that a box can't run."""
    for task in tasks:
        if task.env not in TASKS_FOR:
            raise ConfigError(
                f"task {task.id} is for {task.env}, and a box runs those for {', '.join(TASKS_FOR)}",
                where="--env gbox",
                hint=f"cuarl tasks show {task.id}",
            )
        if task.env == "gbox" and not in_these_words(task.instantiate(0)):
            check_task(task.instantiate(0))


def check_options(options: Options, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    if all(task.env != "phone" for task in tasks):
        refuse_idle(options, ["state"], "the tasks are not of the simulated phone")
    if all(task.env in BOX_TYPES for task in tasks):
        refuse_idle(options, ["box_type"], "the tasks are for a phone or a desktop, which says what box they get")


def unfit(options: Options, tasks: Sequence[Task]) -> dict[str, str]:
    """Why tasks are left out, by their ids."""
    return left_out(tasks, options.state)


def boxes(settings: Settings) -> GBox:
    """The account. Raises MissingSecret without a key."""
    if settings.gbox_api_key is None:
        raise MissingSecret("boxes need the key of a GBox account", hint="export GBOX_API_KEY=KEY")
    return GBox(settings.gbox_base_url, settings.gbox_api_key.get_secret_value())


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    check_tasks(tasks)
    service = boxes(settings)
    ledger = Ledger(settings.sessions_folder)
    starting: list[anyio.CapacityLimiter] = []  # made where the event loop is

    async def start() -> None:
        starting[:] = [anyio.CapacityLimiter(options.starting)]

    async def make(task: TaskInstance) -> Env:
        shell = by_shell(task, options.state)
        return GBoxEnv(service, ledger, task.env, options, starting=starting[0], by_shell=shell)

    return Backend(make, start=start, close=service.close, at_most=options.boxes)
