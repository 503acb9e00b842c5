"""Whether a device can be set up as a task says: asked before anything starts, of each environment by its own rules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from cuarl.errors import TaskError
from cuarl.tasks.task import TaskInstance


def preset_problem(task: TaskInstance) -> str:
    """What is wrong with the preset of a task, in words.

    Empty if nothing is, or if only the environment itself can tell.
    """
    try:
        _CHECKS.get(task.env, _nothing)(task)
    except TaskError as error:
        return f"{error.what}; {error.hint}" if error.hint else error.what
    return ""


def _nothing(task: TaskInstance) -> None:
    """The preset is another program's affair."""


def _simulated(task: TaskInstance) -> None:
    from cuarl.env.sim.devices import make_sim

    make_sim(task.env).start(task, 0)


def _linux(task: TaskInstance) -> None:
    from cuarl.env.linux.home import Home

    # as it is done for an episode: everything that programs read is written
    with tempfile.TemporaryDirectory() as folder:
        Home(Path(folder) / "desktop").create(0, task.preset)


def _browser(task: TaskInstance) -> None:
    from cuarl.env.browser.preset import check_preset

    check_preset(task)


def _adb(task: TaskInstance) -> None:
    from cuarl.env.adb.preset import preset_of

    preset_of(task, snapshot="of the run")


def _gbox(task: TaskInstance) -> None:
    from cuarl.env.shell_checks.reads import check_task

    check_task(task)


_CHECKS: Mapping[str, Callable[[TaskInstance], None]] = {
    "phone": _simulated,
    "desktop": _simulated,
    "linux": _linux,
    "browser": _browser,
    "adb": _adb,
    "gbox": _gbox,
}
