"""From tasks to devices: what is checked before anything starts, and which episode gets which device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from cuarl.config.schema import ExperimentConfig
from cuarl.env.adb.env import AdbEnv, AdbOptions
from cuarl.env.adb.lease import claim, in_use, note_undo
from cuarl.env.adb.preset import preset_of
from cuarl.env.adb.transport import Device, serials
from cuarl.env.leases import Lease, Ledger
from cuarl.errors import ConfigError, EnvError, PrerequisiteError
from cuarl.tasks.task import Task, TaskInstance

TASKS_FOR = ("adb", "phone")
"""What ``env`` of a task that a device can run says; ``phone`` needs the program ``cuarl-device`` on it."""
WHO = "cuarl sessions list --kind adb"


def options(config: ExperimentConfig) -> AdbOptions:
    """How a run's devices are brought to a start, and looked at."""
    return AdbOptions(config.adb_settle_ms, config.adb_reset, config.adb_snapshot or "", config.adb_rotation)


def check_tasks(tasks: Sequence[Task], options: AdbOptions) -> None:
    """Raise ConfigError for a task of another environment, TaskError for a preset that no device has."""
    resets = set()
    for task in tasks:
        if task.env not in TASKS_FOR:
            raise ConfigError(
                f"task {task.id} is for {task.env}, and adb runs those for {' and '.join(TASKS_FOR)}",
                where="--env adb",
                hint=f"cuarl tasks show {task.id}",
            )
        if task.env == "adb":
            resets.add(preset_of(task.instantiate(0), options.reset, options.snapshot).reset)
    if options.snapshot and "snapshot" not in resets:
        raise ConfigError(
            "--adb-snapshot has no effect, since no task is reset by a snapshot", hint="--adb-reset snapshot"
        )


def choose(adb: Any, wanted: Sequence[str], ledger: Ledger) -> list[str]:
    """The devices of a run: those that are ready, or the ``wanted`` ones of them, that no other run has.

    Raises PrerequisiteError if none is left, or if one that is wanted can't be had.
    """
    ready = serials(adb)
    lost = [serial for serial in wanted if serial not in ready]
    if lost or not ready:
        what = f"adb sees no device {', '.join(lost)}" if lost else "adb sees no device"
        raise PrerequisiteError(f"{what} that is ready", hint="adb devices -l")
    taken = [serial for serial in wanted or ready if in_use(ledger, adb, serial)]
    if wanted and taken:
        raise PrerequisiteError(f"device {taken[0]} is in use by another run", hint=WHO)
    free = [serial for serial in wanted or ready if serial not in taken]
    if not free:
        raise PrerequisiteError(f"all {len(ready)} devices are in use by other runs", hint=WHO)
    return free


class Devices:
    """The devices of a run, held for all of it and lent to one episode each at a time.

    ``start`` takes them into possession, ``close`` gives them back.
    """

    def __init__(
        self, adb: Any, serials: Sequence[str], ledger: Ledger, options: AdbOptions, *, reconnect_s: float
    ) -> None:
        self._adb, self._wanted, self._ledger, self._options = adb, tuple(serials), ledger, options
        self._reconnect_s = reconnect_s
        self._leases: dict[str, Lease] = {}
        self._free: list[str] = []
        self._lending, self._returned = anyio.Lock(), anyio.Event()

    async def start(self) -> None:
        """Claim the devices. Raises PrerequisiteError if another run has come first to every one of them."""
        for serial in self._wanted:
            lease = await claim(self._ledger, self._adb, serial)
            if lease is not None:
                self._leases[serial] = lease
        self._free = list(self._leases)
        if not self._leases:
            raise PrerequisiteError("another run has taken the devices", hint=WHO)

    async def env(self, task: TaskInstance) -> AdbEnv:
        """An environment on a device that is free and ready, waited for. Raises EnvError if none is left that could be."""
        serial = await self._lend()
        device = Device(self._adb, serial, reconnect_s=self._reconnect_s)
        return AdbEnv(
            device, self._options, managed=task.env == "phone", note_undo=partial(note_undo, self._leases[serial]),
            release=partial(self._take_back, serial),
        )  # fmt: skip

    async def close(self) -> None:
        """Give the devices back."""
        while self._leases:
            self._leases.popitem()[1].release()

    async def _lend(self) -> str:
        while True:
            returned = self._returned
            async with self._lending:
                ready = await self._ready()
                chosen = next((serial for serial in self._free if serial in ready), None)
                if chosen is not None:
                    self._free.remove(chosen)
                    return chosen
            if len(self._free) == len(self._leases):
                raise EnvError("no device of this run is ready any more", hint="adb devices -l")
            await returned.wait()

    async def _ready(self) -> list[str]:
        try:
            return await to_thread.run_sync(serials, self._adb, abandon_on_cancel=True)
        except PrerequisiteError as error:  # at the start it was there: a failure of this episode, not of the run's
            raise EnvError(error.what, hint=error.hint) from error

    def _take_back(self, serial: str) -> None:
        self._free.append(serial)
        self._returned.set()
        self._returned = anyio.Event()
