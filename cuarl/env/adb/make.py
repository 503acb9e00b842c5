"""From tasks to devices: what is checked before anything starts, and which episode gets which device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.transport import Device
from cuarl.env.shell_checks.reads import check_preset
from cuarl.errors import ConfigError, EnvError
from cuarl.tasks.task import Task, TaskInstance

TASKS_FOR = ("adb", "phone")
"""What ``env`` of a task that a device can run says; ``phone`` needs the program ``cuarl-device`` on it."""


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise ConfigError for a task of another environment, TaskError for a preset that no shell has."""
    for task in tasks:
        if task.env not in TASKS_FOR:
            raise ConfigError(
                f"task {task.id} is for {task.env}, and adb runs those for {' and '.join(TASKS_FOR)}",
                where="--env adb",
                hint=f"cuarl tasks show {task.id}",
            )
        if task.env == "adb":
            check_preset(task.id, task.instantiate(0).preset)


class Devices:
    """Devices lent to one episode each at a time."""

    def __init__(self, adb: Any, serials: Sequence[str]) -> None:
        self._adb, self._free = adb, list(serials)

    def env(self, task: TaskInstance) -> AdbEnv:
        """An environment on a device that is free. Raises EnvError if all are lent."""
        if not self._free:
            raise EnvError("every device of adb is in use", hint="adb devices -l")
        serial = self._free.pop(0)
        device = Device(self._adb, serial)
        return AdbEnv(device, managed=task.env == "phone", release=lambda: self._free.append(serial))
