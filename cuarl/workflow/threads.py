"""Work that has an event loop of its own, called where one runs already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio

from cuarl.workflow import signals

T = TypeVar("T")
_AGAIN_S = 0.1


class _Interrupted(Exception):
    """A KeyboardInterrupt on its way out of a thread."""


def apart(work: Callable[[], T]) -> T:
    """``work``, in a thread where an event loop runs here already. Ctrl-C then ends it as it ends a command."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "cuarl") as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            signals.end()
            raise


async def awaited(work: Callable[[], T]) -> T:
    """``work`` in a thread. Where the awaiting task is cancelled, the work is told to end, and is waited for."""
    with ThreadPoolExecutor(1, "cuarl") as pool:
        future = asyncio.get_running_loop().run_in_executor(pool, _carried, work)
        try:
            return await asyncio.shield(future)
        except _Interrupted:
            raise KeyboardInterrupt from None
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await _ended(future)
            raise


async def _ended(future: asyncio.Future[T]) -> None:
    """Tell the work to end until it hears it, for it may not have begun to listen, and wait for its end."""
    heard = False
    while not future.done():
        heard = heard or signals.end()
        await asyncio.wait([future], timeout=None if heard else _AGAIN_S)
    future.exception()  # told to nobody: the task is cancelled


def _carried(work: Callable[[], T]) -> T:
    try:
        return work()
    except KeyboardInterrupt as error:
        raise _Interrupted from error
