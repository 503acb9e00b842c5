"""Whether an environment can follow a task's ``plan``: asked before anything starts, of each by its own rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from cuarl.env.plans.devices import Abilities, read_plan
from cuarl.errors import TaskError
from cuarl.tasks.task import Task, TaskInstance

UNPLANNED = ("gymnasium", "openenv", "browsergym", "program", "grounding")
"""Environments that follow no plan. One of an installed package, or of one's own, may have its own use for it."""


def plan_problem(task: TaskInstance) -> str:
    """What is wrong with the plan of a task, in words; empty if nothing is, or if there is none."""
    if not task.plan:
        return ""
    if task.env in UNPLANNED:
        return f"it has a plan, and the environment {task.env} can't follow one; leave it out"
    try:
        _CHECKS.get(task.env, _nothing)(task)
    except TaskError as error:
        return error.what
    return ""


def check_plans(tasks: Iterable[Task]) -> None:
    """Raise TaskError for a plan that can't be followed."""
    for task in tasks:
        if problem := plan_problem(task.instantiate(0)):
            raise TaskError(problem, where=f"task {task.id}", hint="cuarl tasks validate FILE")


def _nothing(task: TaskInstance) -> None:
    """The plan is another program's affair."""


def _browser(task: TaskInstance) -> None:
    from cuarl.env.browser.plan import read_plan as read_page_plan

    if "page" in task.preset:
        raise TaskError("it has a plan, and pages of MiniWoB++ are solved by their own oracles; leave it out")
    read_page_plan(task.plan)


def _known(keys: Sequence[str]) -> Callable[[TaskInstance], None]:
    """Of an environment whose lines are read one by one while they are followed: each needs one of its words."""

    def check(task: TaskInstance) -> None:
        for number, line in enumerate(task.plan, start=1):
            if not any(key in line for key in keys):
                raise TaskError(f"step {number} of the plan, {dict(line)}, has none of {', '.join(keys)}")

    return check


def _linux(task: TaskInstance) -> None:
    from cuarl.env.linux.plan import KEYS

    _known(KEYS)(task)


def _phone(task: TaskInstance) -> None:
    from cuarl.sim.phone.script import KEYS

    _known(KEYS)(task)


def _desktop(task: TaskInstance) -> None:
    from cuarl.sim.desktop.script import KEYS

    _known(KEYS)(task)


def _adb(task: TaskInstance) -> None:
    from cuarl.env.adb.plan import ON_PHONES

    read_plan(task.plan, ON_PHONES)


def _gbox(task: TaskInstance) -> None:
    from cuarl.env.gbox.plan import ABILITIES

    _by_one_of(task, ABILITIES.values())


def _gym(task: TaskInstance) -> None:
    from cuarl.env.gym.plan import ABILITIES

    _by_one_of(task, ABILITIES.values())


def _pods(task: TaskInstance) -> None:
    from cuarl.env.pods.plan import IN_SESSIONS

    read_plan(task.plan, IN_SESSIONS)


def _by_one_of(task: TaskInstance, devices: Iterable[Abilities]) -> None:
    """Which of the devices it will be is for the run to say. Raises TaskError, of the first, if none can do it."""
    problems: list[TaskError] = []
    for abilities in devices:
        try:
            read_plan(task.plan, abilities)
        except TaskError as error:
            problems.append(error)
        else:
            return
    raise problems[0]


_CHECKS: Mapping[str, Callable[[TaskInstance], None]] = {
    "browser": _browser,
    "linux": _linux,
    "phone": _phone,
    "desktop": _desktop,
    "adb": _adb,
    "gbox": _gbox,
    "gym": _gym,
    "pods": _pods,
}
