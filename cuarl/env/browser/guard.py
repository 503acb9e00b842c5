"""What the pages of an episode may load: each request is checked, and what leads outside is blocked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuarl.env.browser.options import Fence


class Guard:
    """Lets requests inside ``fence`` pass.

    ``blocked`` is told the addresses of others, ``leaves`` the tabs that go to a page.
    """

    def __init__(self, fence: Fence, blocked: Callable[[str], None], leaves: Callable[[Any], None]) -> None:
        self._fence, self._blocked, self._leaves = fence, blocked, leaves

    async def watch(self, context: Any) -> None:
        """Look at all requests of ``context`` from now on."""
        await context.route("**/*", self._request)
        await context.route_web_socket("**", self._socket)

    async def _request(self, route: Any) -> None:
        from playwright.async_api import Error

        url = route.request.url
        allowed = self._fence.allows(url)
        try:
            if allowed:
                self._departs(route.request)
                await route.continue_()
            else:
                self._blocked(url)
                await route.abort("blockedbyclient")
        except Error:  # its page was closed meanwhile
            if allowed:  # Playwright would wait for ever for a decision about this request
                await route.fallback()

    def _departs(self, request: Any) -> None:
        from playwright.async_api import Error

        if not request.is_navigation_request():
            return
        try:
            frame = request.frame
        except Error:  # of a tab that is only being opened
            return
        if frame.parent_frame is None:
            self._leaves(frame.page)

    async def _socket(self, socket: Any) -> None:
        if self._fence.allows(socket.url):
            socket.connect_to_server()
        else:
            self._blocked(socket.url)
            await socket.close()
