"""Waiting for the page that a tab was sent to, also where that page sends its visitors on before it is loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from cuarl.env.browser.asking import PAUSE_S, first_answer
from cuarl.env.browser.passing import UNREACHED, is_passing

NAVIGATION_S = 3.0
"""How long an action waits for the page that it leads to."""
LOADED = """() => new Promise((answer) => {
  if (/^(about:blank|chrome-error:)/.test(location.href)) return;
  if (document.readyState === 'complete') answer(true);
  else addEventListener('load', () => answer(true));
})"""
"""What stands in a tab before its first page, or in the place of one that can't be reached, does not answer."""


async def load(page: Any, url: str) -> None:
    """Load ``url``; where it sends its visitors on by a script, what it sends them to. Raises Playwright's Error.

    Playwright may miss that a page which takes another's place is loaded, so the page itself is asked, too.
    """
    await first_answer(lambda: _go(page, url), lambda: _loaded(page))


async def towards(page: Any, go: Callable[[], Awaitable[Any]]) -> None:
    """Wait for the navigation ``go``, as long as for any page that does not rest. Raises Playwright's Error."""
    from playwright.async_api import Error

    with anyio.move_on_after(NAVIGATION_S):
        while True:
            try:
                await go()
                return
            except Error as error:
                if page.is_closed() or any(words in str(error) for words in UNREACHED):
                    return
                if not is_passing(error, page):
                    raise
                await anyio.sleep(PAUSE_S)


async def _go(page: Any, url: str) -> None:
    from playwright.async_api import Error

    try:
        await page.goto(url, wait_until="load", timeout=0)
    except Error as error:
        if page.is_closed() or not is_passing(error, page):
            raise
        await _loaded(page)


async def _loaded(page: Any) -> None:
    from playwright.async_api import Error

    while True:
        try:
            await page.evaluate(LOADED)
            return
        except Error as error:
            if page.is_closed() or not is_passing(error, page):
                raise
            await anyio.sleep(PAUSE_S)
