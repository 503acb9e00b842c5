"""Pictures of pages, also of one that is just being replaced by another."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from cuarl.env.browser.asking import ASK_AGAIN_S, PAUSE_S
from cuarl.env.browser.passing import NO_FRAME_YET, is_passing


class Camera:
    """Takes pictures of the pages of one context by Chromium's own protocol, which is faster than Playwright's way."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._sessions: dict[Any, Any] = {}
        self._asking: dict[Any, anyio.CancelScope] = {}

    async def take(self, shown: Callable[[], Awaitable[Any]]) -> bytes:
        """The page that ``shown`` gives, encoded; asked again until there is an answer, so bound it in time.

        A picture asked for in the moment in which a page is replaced is never answered, neither with a picture nor with
        an error. Which page is shown may change meanwhile, since pages open and close by themselves. Raises
        Playwright's Error if the browser can't take pictures any more.
        """
        from playwright.async_api import Error

        patience = ASK_AGAIN_S
        while True:
            page = await shown()
            try:
                with anyio.move_on_after(patience) as asking:
                    self._asking[page] = asking
                    return await self._ask(page)
            except Error as error:
                if not is_passing(error, page, *NO_FRAME_YET):
                    raise
                await anyio.sleep(PAUSE_S)
            finally:
                self._asking.pop(page, None)
            # one that was cut short by ``replaced`` says nothing about how slow the page is
            if asking.deadline <= anyio.current_time():
                patience *= 2

    def replaced(self, page: Any) -> None:
        """``page`` shows another document now: what was asked of the one before is not waited for."""
        if page in self._asking:
            self._asking[page].cancel()

    def forget(self, page: Any) -> None:
        """``page`` was closed."""
        self._sessions.pop(page, None)

    async def _ask(self, page: Any) -> bytes:
        if page not in self._sessions:
            self._sessions[page] = await self._context.new_cdp_session(page)
        answer = await self._sessions[page].send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
        return base64.b64decode(answer["data"])
