"""The tabs of one episode: which one is shown, what they may load, and the dialogs and downloads they bring about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio

from cuarl.env.browser.asking import PAUSE_S, first_answer
from cuarl.env.browser.camera import Camera
from cuarl.env.browser.clipboard import MOST_CHARACTERS, TOLD, buttons
from cuarl.env.browser.dialogs import answered
from cuarl.env.browser.guard import Guard
from cuarl.env.browser.loading import NAVIGATION_S, load, towards
from cuarl.env.browser.options import BrowserOptions
from cuarl.env.browser.passing import first_line, is_passing
from cuarl.env.browser.pickers import pickers
from cuarl.env.browser.question import Question
from cuarl.env.browser.traffic import Traffic
from cuarl.env.browser.uploads import Uploads
from cuarl.errors import EnvError
from cuarl.types import Screenshot

MOST_TABS = 8
MOST_NOTES = 50
BLANK = "about:blank"

T = TypeVar("T")
Travel = Literal["back", "forward", "reload"]


class Silence(EnvError):
    """The page does not answer in time."""


class Tabs:
    """The open pages of a context, the newest on top. All calls are bounded in time and raise EnvError."""

    def __init__(self, context: Any, options: BrowserOptions, *, fenced: bool, traffic: Traffic | None = None) -> None:
        self._context, self._options, self._fenced = context, options, fenced
        self._pages: list[Any] = []
        self._opening = anyio.Lock()
        self._camera = Camera(context)
        self._good: dict[Any, str] = {}
        self._leaving: set[Any] = set()
        """Tabs that wait for the page that they were sent to."""
        self.arrivals = 0
        """How many pages have been shown in the place of others."""
        self._crashed = False
        self._broken = False
        self.clipboard = ""
        self.keys_down: dict[str, None] = {}
        """Keys that an action pressed and none has let go, in Playwright's names, in their order."""
        self.buttons_down: set[str] = set()
        """The same of the mouse's buttons."""
        self.uploads = Uploads()
        self.question = Question()
        self.asks = False
        """Whether the policy answers questions, from now on."""
        self._last: Screenshot | None = None
        self.dialogs: list[str] = []
        self.downloads: list[str] = []
        self.blocked: list[str] = []
        replayed = (traffic.replay, traffic.unrecorded) if traffic else ()
        self._guard = Guard(options.fence, partial(self._note, self.blocked), self._leaving.add, *replayed)

    async def open(self, scripts: tuple[str, ...] = ()) -> None:
        """Open the first tab, with ``scripts`` (JavaScript) run in every page before its own."""
        context = self._context
        async with self.bounded("opening a tab"):
            for script in (pickers(), *scripts):
                await context.add_init_script(script)
            if self._fenced:
                await context.expose_binding(TOLD, self._copied)
                await context.add_init_script(buttons())
                await self._guard.watch(context)
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

    async def shown(self) -> Any:
        """The same, or an empty tab if the only one was closed: a browser without any has nothing to show."""
        async with self._opening:
            if not self._pages and not self._crashed:
                await self._context.new_page()
        return self.page

    @property
    def count(self) -> int:
        """Number of tabs."""
        return len(self._pages)

    @property
    def reusable(self) -> bool:
        """Whether nothing happened here that another episode could see: one page, which always answered."""
        odd = self._broken or self._crashed or self.dialogs or self.downloads or self.blocked
        down = self.keys_down or self.buttons_down
        return len(self._pages) == 1 and not odd and not down

    async def renew(self) -> None:
        """Forget the last episode: what it copied, and where its pointer stood (now in the upper left corner)."""
        self.clipboard = ""
        async with self.bounded("clearing the page"):
            await self.page.mouse.move(0, 0)

    async def go(self, url: str) -> None:
        """Load ``url`` in the shown tab; where it sends its visitors on by a script, what it sends them to."""
        from playwright.async_api import Error

        page = self.page
        async with self.bounded(f"loading {url}"):
            try:
                await load(page, url)
            except Error:
                if not page.is_closed():
                    raise
                # it closed itself, and has opened another before
                await self.page.wait_for_load_state("load", timeout=0)
        self._good[self.page] = self.page.url

    async def travel(self, way: Travel) -> None:
        """Step through the shown tab's history, or load it again. Whether that leads anywhere is the site's affair."""
        page = self.page
        go = {"back": page.go_back, "forward": page.go_forward, "reload": page.reload}[way]
        await towards(page, lambda: go(wait_until="commit", timeout=0))

    async def close_shown(self) -> None:
        """Close the shown tab, unless it is the only one. It is not shown any more, even if Chromium can't end it."""
        if self.count == 1:
            return
        page = self.page
        with anyio.move_on_after(NAVIGATION_S):
            await page.close()
        self._closed(page)

    async def shoot(self) -> Screenshot:
        """The picture of the shown tab."""
        async with self.bounded("taking a picture"):
            data = await self.question.unless_asked(lambda: self._camera.take(self.shown))
        if data is None:  # a page that asks stands still: what it shows is what it showed
            assert self._last is not None, "the policy answers nothing before the first picture"
            return self._last
        shot = Screenshot.decode(data)
        size = self._options.pixels
        # a pop-up may have asked for another size: screens of an episode have one
        self._last = shot if (shot.width, shot.height) == size else Screenshot(shot.image.resize(size))
        return self._last

    async def run(self, script: str, argument: Any = None, *, what: str = "reading the page") -> Any:
        """The value of a JavaScript expression or function in the shown tab."""
        async with self.bounded(what):
            return await self.page.evaluate(script, argument)

    async def reading(self, read: Callable[[Any], Awaitable[T]], *, what: str) -> T:
        """What ``read`` makes of the shown tab.

        It may be called several times, also at once, so it must change nothing.
        """
        async with self.bounded(what):
            return await first_answer(lambda: self._read(read))

    async def go_back_inside(self, *, give_up: bool = False) -> bool:
        """Leave an address that must not be shown (redirects get past the guard); whether there was anything to leave.

        ``give_up`` leaves for an empty page, since the one before leads outside again and again.
        """
        page = self._pages[-1] if self._pages else None
        if page is None or self._options.fence.allows(page.url):
            if page is not None:
                self._good[page] = page.url
            return False
        self._note(self.blocked, str(page.url))
        for url in (self._good.get(page, BLANK), BLANK)[give_up:]:
            async with self.bounded(f"going back to {url}"):
                await towards(page, partial(page.goto, url, wait_until="load", timeout=0))
            if page.is_closed() or self._options.fence.allows(page.url):
                return True
        raise EnvError("the page leads outside, and can't be left")

    @property
    def leaving(self) -> bool:
        """Whether the shown tab waits for another page, and shows the old one meanwhile."""
        return bool(self._pages) and self._pages[-1] in self._leaving

    async def arrive(self, most_s: float) -> None:
        """Wait until the page that the shown tab was sent to is there and loaded, at most that long.

        It may never come.
        """
        from playwright.async_api import Error

        page = await self.shown()
        with anyio.move_on_after(most_s):
            while page in self._leaving:
                await anyio.sleep(PAUSE_S)
            try:
                await page.wait_for_load_state("load", timeout=0)
            except Error as error:
                if not is_passing(error, page):
                    raise
        self._leaving.discard(page)

    async def _read(self, read: Callable[[Any], Awaitable[T]]) -> T:
        """The same of the page that is there once it is not replaced meanwhile."""
        from playwright.async_api import Error

        while True:
            page = await self.shown()
            try:
                return await read(page)
            except Error as error:
                if not is_passing(error, page):
                    raise
                await anyio.sleep(PAUSE_S)

    @asynccontextmanager
    async def bounded(self, what: str, more_s: float = 0.0) -> AsyncIterator[None]:
        """Turn silence and Playwright's errors into EnvError, as is a request that no recording answers."""
        from playwright.async_api import Error

        limit = self._options.answer_s + more_s
        broken, self._broken = self._broken, True  # until it is done: it may also be cancelled
        try:
            with anyio.fail_after(limit):
                yield
            self._guard.check()
            self._broken = broken
        except TimeoutError as error:
            self._guard.check()
            raise Silence(f"{what}: the page does not answer within {limit:g} s") from error
        except Error as error:
            self._guard.check()
            cause = "the page crashed" if self._crashed else first_line(error)
            raise EnvError(f"{what} failed: {cause}") from error

    # --- what pages do by themselves -------------------------------------------------------------------------------

    def _opened(self, page: Any) -> None:
        self._pages.append(page)
        page.on("close", self._closed)
        page.on("crash", self._crash)
        page.on("dialog", self._dialog)
        page.on("download", self._download)
        if self._fenced:
            page.on("filechooser", lambda asking: self.uploads.asked(asking, partial(self._note, self.dialogs)))
        page.on("framenavigated", self._navigated)
        if len(self._pages) > MOST_TABS:
            self._note(self.blocked, f"a tab beyond {MOST_TABS}")
            self._pages.insert(0, self._pages.pop())

    def _closed(self, page: Any) -> None:
        if page in self._pages:
            self._pages.remove(page)
        self._camera.forget(page)
        self._good.pop(page, None)
        self._leaving.discard(page)

    def _navigated(self, frame: Any) -> None:
        if frame.parent_frame is None:
            self._camera.replaced(frame.page)
            self._leaving.discard(frame.page)
            self.arrivals += 1

    def _crash(self, page: Any) -> None:
        self._crashed = True

    async def _dialog(self, dialog: Any) -> None:
        from playwright.async_api import Error

        self._note(self.dialogs, f"{dialog.type}: {dialog.message}")
        page = dialog.page
        if self.asks and dialog.type in ("confirm", "prompt") and page is self._pages[-1]:
            self.question.asked(dialog)
            return
        if await answered(dialog, accept=self._options.dialogs != "dismiss") or page not in self._pages:
            return
        self._note(self.dialogs, "the tab hung at this dialog, and was loaded again")
        try:
            with anyio.move_on_after(self._options.answer_s):
                await self._reopen(page)
        except Error:  # the next picture tells
            return

    async def _reopen(self, page: Any) -> None:
        """Have another tab take the place of one that hangs, with the same address."""
        fresh = await self._context.new_page()
        self._pages.remove(fresh)
        self._pages.insert(self._pages.index(page), fresh)
        await fresh.goto(page.url, wait_until="commit", timeout=0)
        await page.close()

    def _copied(self, source: Any, text: object) -> None:
        self.clipboard = str(text)[:MOST_CHARACTERS]

    def _download(self, download: Any) -> None:
        self._leaving.discard(download.page)
        self._note(self.downloads, Path(download.suggested_filename).name)

    @staticmethod
    def _note(notes: list[str], text: str) -> None:
        if len(notes) < MOST_NOTES:
            notes.append(text[:300])
