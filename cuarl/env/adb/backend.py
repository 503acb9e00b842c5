"""From tasks to devices: what is checked before anything starts, and which episode gets which device."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import anyio
from anyio import to_thread

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.lease import claim, in_use, name_of, note_undo
from cuarl.env.adb.options import Options
from cuarl.env.adb.preset import Preset, preset_of
from cuarl.env.adb.transport import Device, client, serials
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.leases import Lease, Ledger
from cuarl.env.shell_checks.stock import by_shell, in_these_words, left_out
from cuarl.errors import ConfigError, EnvError, PrerequisiteError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance

TASKS_FOR = ("adb", "phone")
"""What ``env`` of a task that a device can run says; ``phone`` needs the program ``cuarl-device`` on it."""
POLL_S = 0.2
"""How often is looked whether a device has become free."""
WHO = "cuarl sessions list --kind adb"


def check_tasks(tasks: Sequence[Task], options: Options) -> None:
    """Raise ConfigError for a task of another environment, TaskError for a preset that no device has."""
    for task in tasks:
        if task.env not in TASKS_FOR:
            raise ConfigError(
                f"task {task.id} is for {task.env}, and adb runs those for {' and '.join(TASKS_FOR)}",
                where="--env adb",
                hint=f"cuarl tasks show {task.id}",
            )
        if task.env == "adb" and not in_these_words(task.instantiate(0)):
            _preset(task.instantiate(0), options)


def check_options(options: Options, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    mine = [one for one in (task.instantiate(0) for task in tasks if task.env == "adb") if not in_these_words(one)]
    if all(task.env != "phone" for task in tasks):
        refuse_idle(options, ["state"], "the tasks are not of the simulated phone")
    if options.snapshot and all(_preset(task, options).reset != "snapshot" for task in mine):
        raise ConfigError(
            "--adb-snapshot has no effect, since no task is reset by a snapshot", hint="--adb-reset snapshot"
        )


def unfit(options: Options, tasks: Sequence[Task]) -> dict[str, str]:
    """Why tasks are left out, by their ids."""
    return left_out(tasks, options.state)


def _preset(task: TaskInstance, options: Options) -> Preset:
    return preset_of(task, options.reset, options.snapshot or "")


def choose(adb: Any, wanted: Sequence[str], ledger: Ledger) -> list[str]:
    """The devices of a run: those that are ready, or the ``wanted`` ones of them, that no other run has.

    Raises PrerequisiteError if none is left, or if one that is wanted can't be had.
    """
    ready = serials(adb)
    lost = [serial for serial in wanted if serial not in ready]
    if lost or not ready:
        what = f"adb sees no device {', '.join(lost)}" if lost else "adb sees no device"
        raise PrerequisiteError(f"{what} that is ready", hint="adb devices -l")
    mine = _share(list(wanted or ready))
    taken = [serial for serial in mine if in_use(ledger, adb, serial)]
    if wanted and taken:
        raise PrerequisiteError(f"device {taken[0]} is in use by another run", hint=WHO)
    free = [serial for serial in mine if serial not in taken]
    if not free:
        raise PrerequisiteError(f"all {len(mine)} devices are in use by other runs", hint=WHO)
    return free


def _share(serials: list[str]) -> list[str]:
    """What of the devices falls to this process, where several on this machine train together."""
    rank, processes = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if len(serials) < processes:
        raise PrerequisiteError(
            f"{processes} processes need a device each, and there are {len(serials)}",
            hint=f"--processes {len(serials)}",
        )
    return serials[rank::processes]


@dataclass(slots=True)
class _Held:
    """A device that this process has, for all of its ``users``; who has the lock has an episode on it."""

    lease: Lease
    lock: Lock = field(default_factory=Lock)
    users: int = 1


_HELD: dict[tuple[Path, str], _Held] = {}
"""By ledger and name: training and the evaluations beside it, in threads of one process, use the same devices in
turn."""


class Devices:
    """The devices of a run, held for all of it and lent to one episode each at a time.

    ``start`` takes them into possession, ``close`` gives them back; both may be called again.
    """

    def __init__(self, adb: Any, serials: Sequence[str], ledger: Ledger, options: Options) -> None:
        self._adb, self._wanted, self._ledger, self._options = adb, tuple(serials), ledger, options
        self._held: dict[str, _Held] = {}

    async def start(self) -> None:
        """Claim the devices. Raises PrerequisiteError if another run has come first to every one of them."""
        for serial in self._wanted:
            held = self._join(serial)
            if held is None:
                lease = await claim(self._ledger, self._adb, serial)
                # None may also mean that a thread of this process was faster
                held = self._join(serial) if lease is None else _HELD.setdefault(self._key(serial), _Held(lease))
            if held is not None:
                self._held[serial] = held
        if not self._held:
            raise PrerequisiteError("another run has taken the devices", hint=WHO)

    async def env(self, task: TaskInstance) -> AdbEnv:
        """An environment on a device that is free and ready, waited for.

        Raises EnvError if none is left that could be.
        """
        serial = await self._lend()
        held = self._held[serial]
        device = Device(self._adb, serial, reconnect_s=self._options.reconnect_seconds)
        return AdbEnv(
            device,
            self._options,
            managed=task.env == "phone" and self._options.state == "program",
            by_shell=by_shell(task, self._options.state),
            note_undo=partial(note_undo, held.lease),
            release=held.lock.release,
        )

    async def close(self) -> None:
        """Give the devices back."""
        while self._held:
            serial, held = self._held.popitem()
            held.users -= 1
            if not held.users:
                del _HELD[self._key(serial)]
                held.lease.release()

    def _key(self, serial: str) -> tuple[Path, str]:
        return self._ledger.folder, name_of(self._adb, serial)

    def _join(self, serial: str) -> _Held | None:
        held = _HELD.get(self._key(serial))
        if held is not None:
            held.users += 1
        return held

    async def _lend(self) -> str:
        while True:
            ready = await self._ready()
            for serial, held in self._held.items():
                if serial in ready and held.lock.acquire(blocking=False):
                    return serial
            if not any(held.lock.locked() for held in self._held.values()):
                raise EnvError("no device of this run is ready any more", hint="adb devices -l")
            await anyio.sleep(POLL_S)

    async def _ready(self) -> list[str]:
        try:
            return await to_thread.run_sync(serials, self._adb, abandon_on_cancel=True)
        except PrerequisiteError as error:  # at the start it was there: a failure of this episode, not of the run's
            raise EnvError(error.what, hint=error.hint) from error


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    check_tasks(tasks, options)
    adb, ledger = client(settings.adb_host, settings.adb_port), Ledger(settings.sessions_folder)
    wanted = [serial.strip() for serial in (settings.adb_serials or "").split(",") if serial.strip()]
    found = choose(adb, wanted, ledger)
    devices = Devices(adb, found, ledger, options)

    async def make(task: TaskInstance) -> Env:
        return await devices.env(task)

    alone = "one process holds the devices, and lends them to its episodes"
    return Backend(make, start=devices.start, close=devices.close, at_most=len(found), alone=alone)
