"""The gate of asynchronous training where a server answers each request by itself, when it likes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from cuarl.rollout.pause import PauseGate


class RequestGate(PauseGate):
    """Where requests wait: it shuts when somebody waits for that (``shut``), and not before.

    There are no passes that all take part in, so nothing would be gained by pausing as soon as the next batch is
    complete: episodes go on until training asks for it. Then no further request is sent, and those that are under way
    are awaited, so that all were answered by the weights of before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._under_way = 0
        self._changed = anyio.Event()

    async def passing(self) -> None:
        """Go through, or wait. Raises SamplerError if it will never open again."""
        # it may be shut again before a task that waited comes to run
        while self._opened is not None:
            await self._opened.wait()
        self.check()

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Inside, a request is under way. Raises SamplerError if collecting has ended."""
        await self.passing()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._tell()

    def finished(self) -> None:
        """An episode is complete."""
        self._tell()

    async def shut(self) -> None:
        """Wait for the next batch, shut, and wait for what is under way."""
        await self._until(self.full)
        self.close()
        await self._until(lambda: not self._under_way)

    async def _until(self, true: Callable[[], bool]) -> None:
        while not true():
            await self._changed.wait()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
