"""What the pages of an episode may load: each request is checked, and what leads outside is blocked.

Where an episode is replayed, what may be loaded is taken from its recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuarl.env.browser.options import Fence, Unrecorded
from cuarl.env.browser.replay import Missing, Replay


class Guard:
    """Lets requests inside ``fence`` pass.

    ``blocked`` is told the addresses of others, ``leaves`` the tabs that go to a page. With ``replay`` recorded
    answers take the place of servers; ``check`` tells the first request that has none, where that is an error.
    """

    def __init__(
        self,
        fence: Fence,
        blocked: Callable[[str], None],
        leaves: Callable[[Any], None],
        replay: Replay | None = None,
        unrecorded: Unrecorded = "fail",
    ) -> None:
        self._fence, self._blocked, self._leaves = fence, blocked, leaves
        self._replay, self._unrecorded = replay, unrecorded
        self._missing: Missing | None = None

    async def watch(self, context: Any) -> None:
        """Look at all requests of ``context`` from now on."""
        await context.route("**/*", self._request)
        await context.route_web_socket("**", self._socket)

    def check(self) -> None:
        """Raise Missing if a page asked for what no recording answers: what it shows is not what it would."""
        if self._missing is not None:
            raise Missing(self._missing.what, where=self._missing.where, hint=self._missing.hint)

    async def _request(self, route: Any) -> None:
        from playwright.async_api import Error

        url = route.request.url
        allowed = self._fence.allows(url)
        try:
            if allowed:
                self._departs(route.request)
                await self._pass(route)
            else:
                self._blocked(url)
                await route.abort("blockedbyclient")
        except Error:  # its page was closed meanwhile
            if allowed:  # Playwright would wait for ever for a decision about this request
                await route.fallback()

    async def _pass(self, route: Any) -> None:
        """Have it answered, by its server or by the recording."""
        request = route.request
        if self._replay is None or not request.url.startswith("http"):
            await route.continue_()
            return
        kind, body = request.headers.get("content-type", ""), request.post_data_buffer or b""
        try:
            document = request.resource_type == "document"
            found = self._replay.answer(request.method, request.url, body, kind, opens_page=document)
        except Missing as missing:
            if self._lacks(missing, request.url):
                await route.continue_()
            else:
                await route.abort("failed")
            return
        if found.status < 100:
            await route.abort("failed")
        else:
            await route.fulfill(status=found.status, headers=dict(found.headers), body=found.body)

    def _lacks(self, missing: Missing, url: str) -> bool:
        """Note what was not recorded; whether it is asked for all the same."""
        if self._unrecorded == "fail":
            self._missing = self._missing or missing
        elif self._unrecorded == "block":
            self._blocked(url)
        return self._unrecorded == "network"

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
        if not self._fence.allows(socket.url):
            self._blocked(socket.url)
            await socket.close()
        elif self._replay is None or self._lacks(_no_socket(socket.url), socket.url):
            socket.connect_to_server()
        else:
            await socket.close()


def _no_socket(url: str) -> Missing:
    hint = "--browser-har-missing block, or network"
    return Missing(f"the recording has no answer to {url}: what web sockets say is not recorded", hint=hint)
