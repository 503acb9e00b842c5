"""One at a time: whoever has much to compute on the event loop waits for a pass of the loop that is its own.

A pass is what the loop does between two polls of its sockets and timers. Hundreds of episodes that become ready
together would otherwise all compute in one pass, for seconds, in which nothing else is served: no signal, no request,
no deadline.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from anyio.lowlevel import checkpoint_if_cancelled

from cuarl import garbage

T = TypeVar("T")
SLICE_S = 0.005
"""Seconds for which a pass may be kept; what is begun in them is finished."""
CLEAN_EVERY = 2
"""Passes between two looks for garbage among new objects. So few that what is looked at is still in the processor's
cache."""


class _Passes:
    """Those who wait on one event loop. The first of them has been called and runs in the next pass."""

    def __init__(self) -> None:
        self._queue: deque[asyncio.Future[None]] = deque()
        self._given = 0
        self._holder: asyncio.Task[object] | None = None
        self._until = 0.0
        """When the time of whoever has the present pass is over."""

    def __len__(self) -> int:
        return len(self._queue)

    def go_on(self) -> bool:
        """Whether who asks has the present pass already, and time left in it."""
        return perf_counter() < self._until and self._holder is asyncio.current_task()

    async def next(self, place: int) -> None:
        """Wait at a place in the queue, and return in a pass in which nobody else returns from here."""
        mine = asyncio.get_running_loop().create_future()
        self._queue.insert(place, mine)
        try:
            if self._queue[0] is mine:
                mine.set_result(None)
                await asyncio.sleep(0)
            else:
                await mine
        finally:
            # also when cancelled; whoever is called now runs in the pass after this one
            self._queue.remove(mine)
            self._call_first()
        self._holder, self._until = asyncio.current_task(), perf_counter() + SLICE_S
        self._given += 1
        if self._given % CLEAN_EVERY == 0:
            garbage.look_at_new()

    def _call_first(self) -> None:
        if self._queue and not self._queue[0].done():
            self._queue[0].set_result(None)


_PASSES: WeakKeyDictionary[asyncio.AbstractEventLoop, _Passes] = WeakKeyDictionary()


async def own_pass() -> None:
    """Return in a pass of the event loop in which nobody else returns from here. First come, first served.

    Whoever has the pass keeps it for ``SLICE_S``: short pieces of work one after the other are faster than in turns
    with others'. Either way a cancellation is met here.
    """
    passes = _passes()
    if passes.go_on():
        await checkpoint_if_cancelled()
    else:
        await passes.next(len(passes))


async def in_parts(work: Generator[None, None, T]) -> T:
    """Do a long piece of work, and return its result: where ``work`` yields, it goes on in another pass.

    It goes on before others begin, so that little is in hand at the same time.
    """
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        await _passes().next(1)  # behind the first, who has been called already


def waiting() -> int:
    """How many wait for a pass of their own."""
    return len(_passes())


def _passes() -> _Passes:
    loop = asyncio.get_running_loop()
    passes = _PASSES.get(loop)
    if passes is None:
        passes = _PASSES[loop] = _Passes()
    return passes
