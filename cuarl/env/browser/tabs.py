"""The tabs of one episode: which one is shown, what they may load, and the dialogs and downloads they bring about."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from cuarl.env.browser.options import BrowserOptions
from cuarl.errors import EnvError
from cuarl.types import Screenshot

MOST_TABS = 8
MOST_NOTES = 50
TEXT_LIMIT = 20_000

DROPDOWNS = """
for (const root of [document]) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('select:not([multiple]):not([size]), ::picker(select) {appearance: base-select}');
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
}
"""
"""A native list opens outside of the page, where a click can't reach it; this makes it a part of the page."""


class Tabs:
    """The open pages of a context, the newest on top. All calls are bounded in time and raise EnvError."""

    def __init__(self, context: Any, options: BrowserOptions, *, fenced: bool) -> None:
        self._context, self._options, self._fenced = context, options, fenced
        self._pages: list[Any] = []
        self._sessions: dict[Any, Any] = {}
        self._good: dict[Any, str] = {}
        self._crashed = False
        self._broken = False
        self.clipboard = ""
        self.dialogs: list[str] = []
        self.downloads: list[str] = []
        self.blocked: list[str] = []

    async def open(self, scripts: tuple[str, ...] = ()) -> None:
        """Open the first tab, with ``scripts`` (JavaScript) run in every page before its own."""
        context = self._context
        async with self.bounded("opening a tab"):
            for script in (DROPDOWNS, *scripts):
                await context.add_init_script(script)
            if self._fenced:
                await context.route("**/*", self._guard)
                await context.route_web_socket("**", self._guard_socket)
            context.on("page", self._opened)
            await context.new_page()

    @property
    def page(self) -> Any:
        """The tab that is shown."""
        if self._crashed:
            raise EnvError("the page crashed")
        if not self._pages:
            raise EnvError("the page is gone: the browser has closed it")
        return self._pages[-1]

    @property
    def count(self) -> int:
        """Number of tabs."""
        return len(self._pages)

    @property
    def reusable(self) -> bool:
        """Whether nothing happened here that another episode could see: one page, which always answered."""
        odd = self._broken or self._crashed or self.dialogs or self.downloads or self.blocked
        return len(self._pages) == 1 and not odd

    async def renew(self) -> None:
        """Forget the last episode: what it copied, and where its pointer stood (now in the upper left corner)."""
        self.clipboard = ""
        async with self.bounded("clearing the page"):
            await self.page.mouse.move(0, 0)

    async def go(self, url: str) -> None:
        """Load ``url`` in the shown tab."""
        async with self.bounded(f"loading {url}"):
            await self.page.goto(url, wait_until="load", timeout=0)
        self._good[self.page] = self.page.url

    async def shoot(self) -> Screenshot:
        """The picture of the shown tab."""
        page = self.page
        async with self.bounded("taking a picture"):
            if page not in self._sessions:
                self._sessions[page] = await self._context.new_cdp_session(page)
            answer = await self._captured(page)
        shot = Screenshot.decode(base64.b64decode(answer["data"]))
        size = self._options.pixels
        # a pop-up may have asked for another size: screens of an episode have one
        return shot if (shot.width, shot.height) == size else Screenshot(shot.image.resize(size))

    async def _captured(self, page: Any) -> Any:
        """Chromium's answer. A page that another replaces, or without a first frame, can't be captured for a moment: asked again."""
        from playwright.async_api import Error

        while True:
            try:
                return await self._sessions[page].send(
                    "Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True}
                )
            except Error as error:
                if not any(moment in str(error) for moment in ("Unable to capture", "Not attached to an active page")):
                    raise
                await anyio.sleep(0.05)

    async def run(self, script: str, argument: Any = None, *, what: str = "reading the page") -> Any:
        """The value of a JavaScript expression or function in the shown tab."""
        async with self.bounded(what):
            return await self.page.evaluate(script, argument)

    async def close_shown(self) -> None:
        """Close the shown tab."""
        async with self.bounded("closing a tab"):
            await self.page.close()

    async def go_back_inside(self) -> str:
        """Leave an address that must not be shown (redirects get past the guard); gives it, or an empty text."""
        page = self.page
        if self._options.fence.allows(page.url):
            self._good[page] = page.url
            return ""
        strange = str(page.url)
        self._note(self.blocked, strange)
        await self.go(self._good.get(page, "about:blank"))
        return strange

    @asynccontextmanager
    async def bounded(self, what: str, more_s: float = 0.0) -> AsyncIterator[None]:
        """Turn silence and Playwright's errors into EnvError."""
        from playwright.async_api import Error

        limit = self._options.answer_s + more_s
        broken, self._broken = self._broken, True  # until it is done: it may also be cancelled
        try:
            with anyio.fail_after(limit):
                yield
            self._broken = broken
        except TimeoutError as error:
            raise EnvError(f"{what}: the page does not answer within {limit:g} s") from error
        except Error as error:
            cause = "the page crashed" if self._crashed else first_line(error)
            raise EnvError(f"{what} failed: {cause}") from error

    # --- what pages do by themselves -------------------------------------------------------------------------------

    def _opened(self, page: Any) -> None:
        self._pages.append(page)
        page.on("close", self._closed)
        page.on("crash", self._crash)
        page.on("dialog", self._dialog)
        page.on("download", self._download)
        if len(self._pages) > MOST_TABS:
            self._note(self.blocked, f"a tab beyond {MOST_TABS}")
            self._pages.insert(0, self._pages.pop())

    def _closed(self, page: Any) -> None:
        if page in self._pages:
            self._pages.remove(page)
        self._sessions.pop(page, None)
        self._good.pop(page, None)

    def _crash(self, page: Any) -> None:
        self._crashed = True

    async def _dialog(self, dialog: Any) -> None:
        from playwright.async_api import Error

        self._note(self.dialogs, f"{dialog.type}: {dialog.message}")
        try:
            # a page that asks whether it may be left is always let go
            if self._options.accept_dialogs or dialog.type in ("alert", "beforeunload"):
                await dialog.accept(dialog.default_value) if dialog.type == "prompt" else await dialog.accept()
            else:
                await dialog.dismiss()
        except Error:  # its page was closed meanwhile
            return

    def _download(self, download: Any) -> None:
        self._note(self.downloads, Path(download.suggested_filename).name)

    async def _guard(self, route: Any) -> None:
        from playwright.async_api import Error

        url = route.request.url
        try:
            if self._options.fence.allows(url):
                await route.continue_()
            else:
                self._note(self.blocked, url)
                await route.abort("blockedbyclient")
        except Error:  # its page was closed meanwhile
            return

    async def _guard_socket(self, socket: Any) -> None:
        if self._options.fence.allows(socket.url):
            socket.connect_to_server()
        else:
            self._note(self.blocked, socket.url)
            await socket.close()

    @staticmethod
    def _note(notes: list[str], text: str) -> None:
        if len(notes) < MOST_NOTES:
            notes.append(text[:300])


def first_line(error: BaseException) -> str:
    """What an error says, without the call log that Playwright adds."""
    lines = str(error).splitlines()
    return lines[0] if lines else ""
