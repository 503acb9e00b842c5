"""One Chromium for all episodes of a process, and a context (cookies, storage, tabs) of its own for each."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import anyio

from cuarl.env.browser.lease import KIND, PREFIX, end
from cuarl.env.browser.options import BrowserOptions
from cuarl.env.browser.page_pool import PagePool
from cuarl.env.browser.passing import first_line
from cuarl.env.leases import Lease, Ledger
from cuarl.env.processes import MARK
from cuarl.errors import EnvError, MissingExtra, PrerequisiteError
from cuarl.safe_text import masked

PROGRAMS = (
    "chromium-headless-shell",
    "headless_shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage",
    "--force-color-profile=srgb", "--font-render-hinting=none",
)  # fmt: skip
"""Containers lack a sandbox and shared memory; the rest keeps the browser from calling home and pictures equal."""
UNPACED = ("--disable-gpu-vsync", "--disable-frame-rate-limit")
"""Frames are drawn when there is something to draw, not 60 times a second: a picture need not wait for the next two."""
UNPACED_PER_CORE = 2
"""With more pages than that a core is never idle, and drawing each frame costs more than waiting for it."""
START_S = 60.0
NOTHING: Mapping[str, Any] = MappingProxyType({})


def find_program(wanted: Path | None = None) -> Path:
    """The browser to run: the one that is wanted, or the first that is installed. Raises PrerequisiteError."""
    if wanted is not None:
        if not wanted.is_file():
            raise PrerequisiteError("the browser is not there", where=str(wanted), hint="export CUARL_BROWSER=PROGRAM")
        return wanted
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise PrerequisiteError(
            "no Chromium is installed",
            hint="apt-get install chromium-headless-shell   # or: export CUARL_BROWSER=PROGRAM",
        )
    return Path(found)


def require_playwright() -> None:
    """Raise MissingExtra if Playwright is not installed."""
    if find_spec("playwright") is None:
        raise MissingExtra("playwright is not installed", hint="pip install 'cuarl[browser]'")


class Browser:
    """A browser that starts with the first context, and starts anew if it has died.

    With ``url`` it is one that somebody else has started, and is found again if it went away. Raises PrerequisiteError
    if Playwright or Chromium is missing.
    """

    def __init__(self, ledger: Ledger, program: Path | None = None, *, url: str = "", paced: bool = True) -> None:
        require_playwright()
        self._program, self._url, self._ledger = None if url else find_program(program), url, ledger
        self.paced = paced
        self.kept = PagePool()
        self._driver: Any = None
        self._browser: Any = None
        self._lease: Lease | None = None
        self._lock = anyio.Lock()
        self._silent = 0

    @property
    def mark(self) -> str:
        """Under which the browser is on the ledger; empty while there is none."""
        return self._lease.id if self._lease else ""

    async def context(self, options: BrowserOptions, more: Mapping[str, Any] = NOTHING) -> Any:
        """A new Playwright ``BrowserContext``, with ``more`` of its options.

        Raises EnvError if the browser does not start or answer.
        """
        from playwright.async_api import Error

        again = False
        while True:
            browser = await self._running()
            try:
                with anyio.fail_after(options.answer_s):
                    made = await _new_context(browser, options, more)
            except (Error, TimeoutError) as error:
                gone = isinstance(error, Error)
                await self._doubt(browser, gone=gone)
                if again or not gone:
                    raise EnvError(f"the browser opens no page: {first_line(error) or 'no answer'}") from error
                again = True
            else:
                self._silent = 0
                return made

    async def reach(self) -> None:
        """Find a browser that runs elsewhere. Raises PrerequisiteError."""
        try:
            await self._running()
        except EnvError as error:
            hint = "export CUARL_BROWSER_URL=http://127.0.0.1:9222, after: chromium --remote-debugging-port=9222"
            raise PrerequisiteError(error.what, where=error.where, hint=hint) from error

    async def close(self) -> None:
        """End the browser and delete what it wrote; leave one that somebody else has started.

        Safe to call twice; another context starts it anew.
        """
        async with self._lock:
            await self._end()

    async def _running(self) -> Any:
        async with self._lock:
            if self._browser is None or not self._browser.is_connected():
                await self._end()
                await (self._connect() if self._url else self._start())
            return self._browser

    async def _doubt(self, browser: Any, *, gone: bool) -> None:
        """End a browser that refuses a page, or that was silent twice in a row: the next episode has another.

        One whose driver has died still counts as connected, so that refusing is the only sign of it.
        """
        async with self._lock:
            if self._browser is browser:
                self._silent += 1
                if gone or self._silent >= 2:
                    await self._end()

    async def _connect(self) -> None:
        from playwright.async_api import Error, async_playwright

        try:
            with anyio.fail_after(START_S):
                self._driver = await async_playwright().start()
                chromium = self._driver.chromium
                connect = chromium.connect_over_cdp if speaks_devtools(self._url) else chromium.connect
                self._browser = await connect(self._url)
        except (Error, TimeoutError) as error:
            with anyio.CancelScope(shield=True):
                await self._end()
            raise EnvError(
                f"the browser can't be reached: {first_line(error) or f'no answer within {START_S:g} s'}",
                where=masked(self._url),
            ) from error

    async def _start(self) -> None:
        from playwright.async_api import Error, async_playwright

        mark = f"{os.getpid()}-{secrets.token_hex(6)}"
        folder = Path(tempfile.gettempdir()) / f"{PREFIX}{mark}"
        self._lease = self._ledger.hold(KIND, mark, {"program": str(self._program), "folder": str(folder)})
        folder.mkdir(mode=0o700)
        try:
            with anyio.fail_after(START_S):
                with _temporary_files_in(folder):
                    self._driver = await async_playwright().start()
                self._browser = await self._driver.chromium.launch(
                    executable_path=str(self._program),
                    headless=True,
                    args=[*ARGUMENTS, *(() if self.paced else UNPACED)],
                    env=_environment(folder, mark),
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    downloads_path=str(folder),
                )
        except (Error, TimeoutError, OSError) as error:
            with anyio.CancelScope(shield=True):
                await self._end()
            raise EnvError(
                f"the browser does not start: {first_line(error) or f'no answer within {START_S:g} s'}",
                where=str(self._program),
            ) from error

    async def _end(self) -> None:
        from playwright.async_api import Error

        browser, driver, lease = self._browser, self._driver, self._lease
        self._browser = self._driver = self._lease = None
        self._silent = 0
        self.kept.forget()
        for ask in (browser and browser.close, driver and driver.stop):
            if ask:
                with anyio.move_on_after(5, shield=True):
                    try:
                        await ask()
                    except Error:  # it has died already
                        continue
        if lease is not None:
            await end(lease)
            lease.release()


def speaks_devtools(url: str) -> bool:
    """Whether an address is that of Chrome's remote debugging, and not of a Playwright server."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") or "/devtools/" in parts.path


async def _new_context(browser: Any, options: BrowserOptions, more: Mapping[str, Any]) -> Any:
    width, height = options.viewport
    return await browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=options.scale,
        offline=options.fence.offline,
        service_workers="block",
        accept_downloads=True,
        locale="en-US",
        timezone_id="UTC",
        **more,
    )


def _environment(folder: Path, mark: str) -> dict[str, str]:
    """What the browser sees of the environment: nothing that may be secret."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "FONTCONFIG_PATH") if name in os.environ}
    return {**kept, "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8", "TZ": "UTC", MARK: mark}


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Have the driver, which takes over our environment when it starts, make its profiles in ``folder``."""
    name = "TEMP" if sys.platform == "win32" else "TMPDIR"
    before = os.environ.get(name)
    os.environ[name] = str(folder)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
