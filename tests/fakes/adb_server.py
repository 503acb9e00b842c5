"""The local adb server on a free port, in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone


@contextmanager
def served(*phones: FakePhone) -> Iterator[int]:
    """Phones served from a thread of their own; gives the port."""
    loop, ready, port = asyncio.new_event_loop(), threading.Event(), list[int]()

    async def main() -> None:
        async with serve(*phones) as bound:
            port.append(bound)
            ready.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    ready.wait()
    try:
        yield port[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
