"""From a run's options and this machine's settings to boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import BOX_TYPES, GBoxEnv
from cuarl.env.gbox.options import Options
from cuarl.env.gbox.plan import ABILITIES
from cuarl.env.leases import Ledger
from cuarl.env.plans.devices import read_plan
from cuarl.env.shell_checks.reads import check_task
from cuarl.env.shell_checks.stock import by_shell, in_these_words, left_out
from cuarl.errors import ConfigError, MissingSecret
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

TASKS_FOR = ("gbox", *BOX_TYPES)
"""What ``env`` of a task that a box can run says."""


def check_tasks(tasks: Sequence[Task], options: Options) -> None:
    """Raise ConfigError for a task that a box can't run, TaskError for a plan that it can't follow."""
    for task in tasks:
        if task.env not in TASKS_FOR:
            raise ConfigError(
                f"task {task.id} is for {task.env}, and a box runs those for {', '.join(TASKS_FOR)}",
                where="--env gbox",
                hint=f"cuarl tasks show {task.id}",
            )
        if task.env == "gbox" and not in_these_words(task.instantiate(0)):
            check_task(task.instantiate(0))
        if task.env == "gbox":
            read_plan(task.instantiate(0).plan, ABILITIES[options.box_type])


def check_options(options: Options, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    if all(task.env != "phone" for task in tasks):
        refuse_idle(options, ["state"], "the tasks are not of the simulated phone")
    if all(task.env in BOX_TYPES for task in tasks):
        refuse_idle(options, ["box_type"], "the tasks are for a phone or a desktop, which says what box they get")


def unfit(options: Options, tasks: Sequence[Task]) -> dict[str, str]:
    """Why tasks are left out, by their ids."""
    return left_out(tasks, options.state)


def accounts(settings: Settings) -> list[GBox]:
    """The accounts, one or several. Raises MissingSecret without a key."""
    if not settings.gbox_keys:
        raise MissingSecret("boxes need the key of a GBox account", hint="export GBOX_API_KEY=KEY")
    return [GBox(settings.gbox_base_url, key) for key in settings.gbox_keys]


def boxes(settings: Settings) -> GBox:
    """The only account. Raises MissingSecret without a key, and ConfigError for several."""
    found = accounts(settings)
    if len(found) > 1:
        raise ConfigError(f"these boxes are of one account, and there are keys of {len(found)}", where="GBOX_API_KEY")
    return found[0]


@dataclass(slots=True)
class _Lender:
    """An account, and how many of its boxes episodes have, or are getting."""

    boxes: GBox
    starting: anyio.CapacityLimiter
    lent: int = 0

    def back(self) -> None:
        self.lent -= 1


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    check_tasks(tasks, options)
    services, ledger = accounts(settings), Ledger(settings.sessions_folder)
    lenders: list[_Lender] = []  # made where the event loop is

    async def start() -> None:
        lenders[:] = [_Lender(service, anyio.CapacityLimiter(options.starting)) for service in services]

    async def make(task: TaskInstance) -> Env:
        # never more than an account's boxes, since there are no more episodes at the same time than all have
        lender = min(lenders, key=lambda one: one.lent)
        lender.lent += 1
        return GBoxEnv(
            lender.boxes,
            ledger,
            task.env,
            options,
            starting=lender.starting,
            by_shell=by_shell(task, options.state),
            plan=task.plan,
            release=lender.back,
        )

    async def close() -> None:
        for service in services:
            await service.close()

    def may_solve(task: Task) -> bool:
        # the shell alone judges a phone's task, and knows no way to solve it; a desktop always has its program
        return bool(task.plan) if task.env == "gbox" else task.env == "desktop" or options.state == "program"

    alone = "one process counts what each account has lent" if len(services) > 1 else ""
    at_most = options.boxes * len(services)
    return Backend(make, start=start, close=close, at_most=at_most, alone=alone, may_solve=may_solve)
