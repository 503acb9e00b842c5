"""A real Linux desktop: start, steps a second with and without settling, and several displays at once."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import anyio

from cuarl.env.leases import Ledger
from cuarl.env.linux.env import LinuxEnv
from cuarl.env.settle import Patience
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click

TASK = TaskInstance(task_id="bench", goal="", env="linux", preset={"ui.app": "galculator"})
AT_ONCE = Patience(quiet_ms=0, react_ms=0, cap_ms=1)
STEPS = 40


async def one(ledger: Ledger, size: tuple[int, int], patience: Patience | None) -> tuple[float, int, float]:
    env = LinuxEnv(ledger, size)
    env.patience = patience or env.patience
    try:
        begin = time.perf_counter()
        await env.reset(TASK, 0)
        up = time.perf_counter()
        for i in range(STEPS):
            await env.step(Click(x=60 + i % 5 * 40, y=200 + i % 3 * 30))
        return up - begin, STEPS, time.perf_counter() - up
    finally:
        await env.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder))
        for size, name, patience in (
            ((640, 480), "settled", None),
            ((640, 480), "at once", AT_ONCE),
            ((1024, 768), "at once", AT_ONCE),
        ):
            up, steps, seconds = await one(ledger, size, patience)
            print(f"{size[0]}x{size[1]} {name:8} up in {up:.2f} s, {steps / seconds:6.1f} steps/s")
        for name, patience in (("settled", None), ("at once", AT_ONCE)):
            spent: list[float] = []

            async def run(patience: Patience | None = patience, spent: list[float] = spent) -> None:
                spent.append((await one(ledger, (480, 360), patience))[2])

            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(run)
            print(f"four displays 480x360 {name:8} {4 * STEPS / max(spent):6.1f} steps/s in all")


anyio.run(main)
