"""Simulated phones behind a local adb server, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.options import Options as AdbOptions
from cuarl.env.adb.transport import Device, client
from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone
from cuarl.tasks.task import Check, TaskInstance

TASK = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))
"""For the simulated phone itself."""


def shell_task(*checks: Check, **preset: object) -> TaskInstance:
    """A task that is set up and read by the device's shell."""
    return TaskInstance(task_id="t", goal="g", env="adb", preset=preset, checks=checks)


def env_of(port: int, serial: str, *, reconnect_s: float = 2.0, **more: object) -> AdbEnv:
    """An environment on a phone of the server; ``options`` are quick unless given."""
    options = more.pop("options", AdbOptions(settle_ms=1))
    return AdbEnv(Device(client("127.0.0.1", port), serial, reconnect_s=reconnect_s), options, **more)


def with_phone(work: Callable[..., Awaitable[None]], *, serial: str = "one", **phone: object) -> None:
    """Run ``work(env_of, phone)`` with one phone served, ``env_of`` bound to the server."""

    async def main() -> None:
        served = FakePhone(serial, **{"clutter": 0.0, **phone})
        async with serve(served) as port:
            await work(partial(env_of, port, serial), served)

    asyncio.run(main())
