"""From tasks to devices: what is checked before anything starts, and which episode gets which device."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

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
SICK = 2
"""Episodes in a row for which a device could not be brought up, from which on it rests while others can be had."""
REST_S = 60.0
"""How long it rests: it fails faster than others succeed, and would have most episodes of a run."""
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


class Phone(NamedTuple):
    """A device, and the adb server that sees it."""

    adb: Any
    serial: str

    @property
    def name(self) -> str:
        """What the ledger calls it: ``SERIAL@HOST:PORT``."""
        return name_of(self.adb, self.serial)


def choose(servers: Sequence[Any], wanted: Sequence[str], ledger: Ledger) -> list[Phone]:
    """The devices of a run: those that are ready, or the ``wanted`` ones of them, that no other run has.

    A device is wanted by its serial number, or as ``SERIAL@HOST:PORT`` where several servers have one of that number.
    Raises PrerequisiteError if none is left, or if one that is wanted, or a server, can't be had.
    """
    ready = [Phone(adb, serial) for adb in servers for serial in serials(adb)]
    if not ready:
        raise PrerequisiteError("adb sees no device that is ready", hint="adb devices -l")
    mine = _share(_named(ready, wanted) if wanted else ready)
    taken = [phone for phone in mine if in_use(ledger, phone.adb, phone.serial)]
    if wanted and taken:
        raise PrerequisiteError(f"device {taken[0].serial} is in use by another run", hint=WHO)
    free = [phone for phone in mine if phone not in taken]
    if not free:
        raise PrerequisiteError(f"all {len(mine)} devices are in use by other runs", hint=WHO)
    return free


def _named(ready: Sequence[Phone], wanted: Sequence[str]) -> list[Phone]:
    found = {name: [phone for phone in ready if name in (phone.serial, phone.name)] for name in wanted}
    lost = [name for name, phones in found.items() if not phones]
    if lost:
        raise PrerequisiteError(f"adb sees no device {', '.join(lost)} that is ready", hint="adb devices -l")
    for name, phones in found.items():
        if len(phones) > 1:
            names = ",".join(phone.name for phone in phones)
            raise PrerequisiteError(
                f"{len(phones)} servers have a device {name}", hint=f"export ANDROID_SERIAL={names}"
            )
    return [phones[0] for phones in found.values()]


def _share(phones: list[Phone]) -> list[Phone]:
    """What of the devices falls to this process, where several on this machine train together."""
    rank, processes = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if len(phones) < processes:
        raise PrerequisiteError(
            f"{processes} processes need a device each, and there are {len(phones)}",
            hint=f"--processes {len(phones)}",
        )
    return phones[rank::processes]


@dataclass(slots=True)
class _Held:
    """A device that this process has, for all of its ``users``; who has the lock has an episode on it."""

    lease: Lease
    lock: Lock = field(default_factory=Lock)
    users: int = 1
    failed: int = 0
    """Episodes in a row for which it could not be brought up."""
    failed_at: float = 0.0

    def give_back(self, sound: bool) -> None:
        """Its episode is over."""
        self.failed = 0 if sound else self.failed + 1
        self.failed_at = time.monotonic()
        self.lock.release()

    @property
    def rests(self) -> bool:
        """Whether others should be taken in its place."""
        return self.failed >= SICK and time.monotonic() < self.failed_at + REST_S


_HELD: dict[tuple[Path, str], _Held] = {}
"""By ledger and name: training and the evaluations beside it, in threads of one process, use the same devices in
turn."""


class Devices:
    """The devices of a run, held for all of it and lent to one episode each at a time.

    ``start`` takes them into possession, ``close`` gives them back; both may be called again.
    """

    def __init__(self, phones: Sequence[Phone], ledger: Ledger, options: Options) -> None:
        self._wanted, self._ledger, self._options = tuple(phones), ledger, options
        self._held: dict[Phone, _Held] = {}

    async def start(self) -> None:
        """Claim the devices. Raises PrerequisiteError if another run has come first to every one of them."""
        for phone in self._wanted:
            held = self._join(phone)
            if held is None:
                lease = await claim(self._ledger, phone.adb, phone.serial)
                # None may also mean that a thread of this process was faster
                held = self._join(phone) if lease is None else _HELD.setdefault(self._key(phone), _Held(lease))
            if held is not None:
                self._held[phone] = held
        if not self._held:
            raise PrerequisiteError("another run has taken the devices", hint=WHO)

    async def env(self, task: TaskInstance) -> AdbEnv:
        """An environment on a device that is free and ready, waited for.

        Raises EnvError if none is left that could be.
        """
        phone = await self._lend()
        held = self._held[phone]
        device = Device(phone.adb, phone.serial, reconnect_s=self._options.reconnect_seconds)
        return AdbEnv(
            device,
            self._options,
            managed=task.env == "phone" and self._options.state == "program",
            by_shell=by_shell(task, self._options.state),
            plan=task.plan if task.env == "adb" else (),
            note_undo=partial(note_undo, held.lease),
            release=held.give_back,
        )

    async def close(self) -> None:
        """Give the devices back."""
        while self._held:
            phone, held = self._held.popitem()
            held.users -= 1
            if not held.users:
                del _HELD[self._key(phone)]
                held.lease.release()

    def _key(self, phone: Phone) -> tuple[Path, str]:
        return self._ledger.folder, phone.name

    def _join(self, phone: Phone) -> _Held | None:
        held = _HELD.get(self._key(phone))
        if held is not None:
            held.users += 1
        return held

    async def _lend(self) -> Phone:
        while True:
            ready = await self._ready()
            there = {phone: held for phone, held in self._held.items() if phone in ready}
            fit = {phone: held for phone, held in there.items() if not held.rests}
            for phone, held in (fit or there).items():
                if held.lock.acquire(blocking=False):
                    return phone
            if not any(held.lock.locked() for held in self._held.values()):
                raise EnvError("no device of this run is ready any more", hint="adb devices -l")
            await anyio.sleep(POLL_S)

    async def _ready(self) -> list[Phone]:
        """What the servers see that answer. Raises EnvError if none does."""
        found: list[Phone] = []
        gone: list[PrerequisiteError] = []
        servers = list({id(phone.adb): phone.adb for phone in self._held}.values())
        for adb in servers:
            try:
                there = await to_thread.run_sync(serials, adb, abandon_on_cancel=True)
                found += [Phone(adb, serial) for serial in there]
            except PrerequisiteError as error:
                gone.append(error)
        if gone and len(gone) == len(servers):  # at the start it was there: a failure of this episode, not of the run's
            raise EnvError(gone[0].what, hint=gone[0].hint) from gone[0]
        return found


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    check_tasks(tasks, options)
    servers, ledger = [client(host, port) for host, port in settings.adb_places], Ledger(settings.sessions_folder)
    wanted = [serial.strip() for serial in (settings.adb_serials or "").split(",") if serial.strip()]
    found = choose(servers, wanted, ledger)
    devices = Devices(found, ledger, options)

    async def make(task: TaskInstance) -> Env:
        return await devices.env(task)

    def may_solve(task: Task) -> bool:
        return bool(task.plan) if task.env == "adb" else options.state == "program"

    alone = "one process holds the devices, and lends them to its episodes"
    return Backend(make, start=devices.start, close=devices.close, at_most=len(found), alone=alone, may_solve=may_solve)
