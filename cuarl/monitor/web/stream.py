"""Server-sent events: which runs have moved, to everyone who looks.

The store is asked twice a second for as long as anybody is connected, whatever their number; pages then fetch what they
show.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import anyio.to_thread

from cuarl.errors import StoreError
from cuarl.store.pages import Pages

EVERY_S = 0.5
"""A turn is written within a second of its end; so it is told of within a second and a half."""
_SILENCE = 30
"""Looks without news after which a comment says that the connection is alive."""


class Stream:
    """What is told, and to whom."""

    def __init__(self, pages: Pages, every_s: float = EVERY_S) -> None:
        self._pages, self._every_s = pages, every_s
        self._latest: dict[str, float] = {}
        self._asked_at = float("-inf")
        self._lock = anyio.Lock()

    async def events(self) -> AsyncIterator[bytes]:
        """The events of one connection, for ever: ``changed`` with the ids of runs that have moved."""
        known = dict(await self._stamps())
        yield b"retry: 2000\n\n"
        quiet = 0
        while True:
            await anyio.sleep(self._every_s)
            now = await self._stamps()
            moved = sorted(run for run, at in now.items() if at > known.get(run, 0.0))
            known |= now
            quiet = 0 if moved else quiet + 1
            if moved:
                yield f"event: changed\ndata: {json.dumps(moved)}\n\n".encode()
            elif quiet % _SILENCE == 0:
                yield b": still here\n\n"

    async def _stamps(self) -> dict[str, float]:
        """By run, when it moved last; asked of the store at most once an interval by all connections together."""
        async with self._lock:
            if anyio.current_time() - self._asked_at >= 0.9 * self._every_s:
                with suppress(StoreError):  # away: nothing has moved as far as anybody can tell
                    self._latest = await anyio.to_thread.run_sync(self._pages.stamp)
                self._asked_at = anyio.current_time()
            return self._latest
