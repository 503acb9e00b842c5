"""Asking a page that may be replaced at any moment: what is asked in that very moment may never be answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from cuarl.errors import EnvError

ASK_AGAIN_S = 0.25
"""How long a first answer may take. Each further one may take twice as long, for pages that are slow."""
PAUSE_S = 0.03

T = TypeVar("T")


async def first_answer(ask: Callable[[], Awaitable[T]], again: Callable[[], Awaitable[T]] | None = None) -> T:
    """What ``ask`` gives, or ``again`` (if it is not given: ``ask`` once more), whichever answers first.

    It is asked again after ``ASK_AGAIN_S``, and after times that double, beside what was asked before: the page may
    just be slow, and whatever it answers is good. Neither may change anything. Bound it in time. Raises the EnvError or
    Playwright's Error that comes first.
    """
    from playwright.async_api import Error

    found: list[T] = []
    failed: list[Error | EnvError] = []

    async def asked(what: Callable[[], Awaitable[T]]) -> None:
        try:
            found.append(await what())
        except (Error, EnvError) as error:
            failed.append(error)
        asking.cancel_scope.cancel()

    async with anyio.create_task_group() as asking:
        asking.start_soon(asked, ask)
        patience = ASK_AGAIN_S
        while True:
            await anyio.sleep(patience)
            asking.start_soon(asked, again or ask)
            patience *= 2
    if failed and not found:
        raise failed[0]
    return found[0]
