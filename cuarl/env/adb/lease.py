"""Devices on the ledger.

Each is lent to one process at a time, with what must be undone on it should that be killed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from cuarl.env.adb.transport import Device, client
from cuarl.env.leases import SWEEPERS, Lease, Ledger, finish
from cuarl.env.shell_checks.reads import run_all
from cuarl.errors import EnvError
from cuarl.run.owner import Owner

logger = logging.getLogger(__name__)

KIND = "adb"


def name_of(adb: Any, serial: str) -> str:
    """What the ledger calls a device: its serial number, and the server that sees it."""
    return f"{serial}@{adb.host}:{adb.port}"


def in_use(ledger: Ledger, adb: Any, serial: str) -> bool:
    """Whether another process that lives, or that can't be seen from here, has the device."""
    name, me = name_of(adb, serial), Owner.me()
    held = (one for one in ledger.leases() if one.kind == KIND and one.id == name and one.record.owner != me)
    return any(one.state != "orphaned" for one in held)


async def claim(ledger: Ledger, adb: Any, serial: str) -> Lease | None:
    """The device for this process alone, with what a killed one left on it undone.

    None if another process has it, or if what is left can't be undone.
    """
    name = name_of(adb, serial)
    for left in ledger.leases():
        if left.kind == KIND and left.id == name and left.state == "orphaned":
            try:
                await finish(left, end)
            except EnvError as error:
                logger.warning("device %s is left alone: %s", serial, error)
                return None
    return ledger.claim(KIND, name, {"host": str(adb.host), "port": str(adb.port), "serial": serial})


def note_undo(lease: Lease, commands: Sequence[str]) -> None:
    """Put on record what ends the present episode on the device; nothing if ``commands`` is empty."""
    lease.note(undo=json.dumps(list(commands)))


async def end(lease: Lease) -> None:
    """Undo what an episode that was killed had begun. Raises EnvError if the device does not answer."""
    undo = json.loads(lease.detail.get("undo", "[]"))
    if undo:
        adb = client(lease.detail["host"], int(lease.detail["port"]))
        await run_all(undo, Device(adb, lease.detail["serial"], reconnect_s=0).shell)


SWEEPERS[KIND] = lambda lease, settings: end(lease)
