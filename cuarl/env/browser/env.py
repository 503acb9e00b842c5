"""The episode in a browser: what all kinds of pages have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import anyio

from cuarl.env.base import Capabilities
from cuarl.env.browser.browser import Browser
from cuarl.env.browser.input import ACTIONS, TOUCH_ACTIONS, carry_out, refusal
from cuarl.env.browser.keys import UnknownKey, chord
from cuarl.env.browser.news import News, in_words
from cuarl.env.browser.options import BrowserOptions
from cuarl.env.browser.selecting import select
from cuarl.env.browser.tabs import Tabs
from cuarl.env.browser.traffic import Traffic
from cuarl.env.settle import Patience, settle
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import NOTE, Action, Key, Observation, Screenshot, SelectOption, StepResult, TypeText

CLOSE_S = 5.0
WRITE_S = 20.0
"""How long a recording may take to be written."""
MOST_RETURNS = 3
"""How often a page that leads outside is gone back to after one action."""
CAP_MS = 3000.0
"""A page that never rests is shown as it is after this time."""

AROUND = """([x, y]) => {
  const hit = document.elementFromPoint(x, y);
  const many = 'canvas, iframe, select, [type=range]';
  if (!hit || hit.childElementCount || hit.closest('svg') || hit.matches(many)) return null;
  const box = [...hit.getClientRects()].find((r) => r.left <= x && x < r.right && r.top <= y && y < r.bottom);
  const middle = box && Math.abs(box.left + box.right - 2 * x) < 4 && Math.abs(box.top + box.bottom - 2 * y) < 4;
  return middle ? [box.left, box.top, box.right, box.bottom] : null;
}"""
"""The box of the innermost element whose middle a point is. Where an oracle points anywhere else the place counts."""


class BrowserEnv(ABC):
    """A page, seen by its picture and acted on by mouse and keyboard.

    Subclasses say what is loaded and how it is judged.
    """

    fenced = True
    """Whether each request is checked; pages that can't reach anything need no guard."""
    scripts: tuple[str, ...] = ()
    """JavaScript that is run in each page before its own."""

    def __init__(self, browser: Browser, options: BrowserOptions) -> None:
        self._browser, self.options = browser, replace(options, settle=options.settle or "idle")
        self._context: Any = None
        self._traffic: Traffic | None = None
        self._tabs: Tabs | None = None
        self._shown: Screenshot | None = None
        self._news = News()
        self._closed = False
        self._taken = True
        self._site = ""

    @property
    def device_name(self) -> str:
        """Where the task's page is from, without the path; its name where it comes with a package."""
        return self._site

    @property
    def capabilities(self) -> Capabilities:
        """What a page offers."""
        kind = self.options.kind
        if kind == "phone":
            return Capabilities(TOUCH_ACTIONS, state=True, kind=kind)
        return Capabilities(ACTIONS, state=True, kind=kind, held=True)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault."""
        return ("url", "title", "text", "tabs", "read", "downloads", "dialogs", "blocked")

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Open a fresh context, load the page, and show it."""
        if self._closed:
            raise EnvError("this environment was closed")
        if self._context is not None:
            raise EnvError("this environment was reset already; an environment serves one episode")
        address = urlsplit(str(task.preset.get("url", "")))
        self._site = f"{address.scheme}://{address.netloc}" if address.netloc else str(task.preset.get("page", ""))
        text = await self._open(task, seed)
        assert self._tabs is not None
        self._shown = await self._tabs.shoot()
        if self.options.settle != "frame":
            await self._settle(self._tabs)
        self._tabs.asks = self.options.dialogs == "ask"
        return Observation(self._shown, {**self._text(self._tabs), **self._note(self._news.since(self._tabs)), **text})

    async def step(self, action: Action) -> StepResult:
        """Carry out one action and show what came of it.

        One that a page which was being replaced never acknowledged is not repeated; ``info["unknown_outcome"]`` says
        so.
        """
        tabs, size = self._ready(), self.options.pixels
        reason = refusal(action, size, self.capabilities.actions) or self._chorded(tabs, action)
        reason = reason or tabs.question.refusal(action) or tabs.uploads.refusal(action)
        if reason:
            return StepResult(self._observation(tabs), info={"rejected": reason, "changed": False})
        if action.kind in ("answer", "finish"):
            return StepResult(self._observation(tabs), info={"changed": False})
        if isinstance(action, SelectOption) and (reason := await select(action, tabs, self.options.scale)):
            return StepResult(self._observation(tabs), info={"rejected": reason, "changed": False})
        shown = self._shown
        taken = await carry_out(action, tabs, self.options.scale, size)
        if not (taken or self._taken):
            raise EnvError("the page takes no input any more: two actions in a row were not acknowledged")
        self._taken = taken
        info = await self._settled(tabs, shown)
        if not taken:
            info["unknown_outcome"] = True
        news = self._news.since(tabs)
        return await self._judged(tabs, StepResult(self._observation(tabs, news), info=info | news))

    async def state(self) -> Mapping[str, Any]:
        """What validators read; see the subclass."""
        tabs = self._ready()
        async with tabs.bounded("answering the page"):
            await tabs.question.cancel()
        return await self._state(tabs)

    async def around(self, x: int, y: int) -> tuple[int, int, int, int] | None:
        """The element whose middle that is; None for one in which the place counts."""
        scale = self.options.scale
        box = await self._ready().run(AROUND, [x / scale, y / scale], what="measuring an element")
        if box is None:
            return None
        left, top, right, bottom = (round(v * scale) for v in box)
        return left, top, max(right, left + 1), max(bottom, top + 1)

    async def close(self) -> None:
        """Close the context with all its tabs."""
        self._closed = True
        if self._context is not None and self._tabs is not None and self._keeps(self._context, self._tabs):
            self._context = self._tabs = None
        await self._close_context()

    # --- for subclasses --------------------------------------------------------------------------------------------

    @abstractmethod
    async def _load(self, tabs: Tabs, task: TaskInstance, seed: int) -> Mapping[str, str]:
        """Load the page of ``task``; gives text fields for the first observation."""

    @abstractmethod
    async def _state(self, tabs: Tabs) -> Mapping[str, Any]:
        """The state as plain data."""

    async def _judged(self, tabs: Tabs, result: StepResult) -> StepResult:
        """The result with what the page itself says about the end of the episode."""
        return result

    async def _open(self, task: TaskInstance, seed: int) -> Mapping[str, str]:
        """Load the page of ``task`` in a context of its own; gives text fields for the first observation."""
        traffic = self._traffic
        self._context = await self._browser.context(self.options, traffic.context_options if traffic else {})
        self._tabs = Tabs(self._context, self.options, fenced=self.fenced, traffic=traffic)
        await self._tabs.open((*(traffic.scripts if traffic else ()), *self.scripts))
        return await self._load(self._tabs, task, seed)

    async def _close_context(self) -> None:
        from playwright.async_api import Error

        context, self._context, self._tabs = self._context, None, None
        traffic, self._traffic, closed = self._traffic, None, False
        try:
            if context is None:
                return
            # a browser that does not answer is ended with its process; nothing of a context outlives that
            with anyio.move_on_after(WRITE_S if traffic and traffic.recorder else CLOSE_S, shield=True):
                try:
                    await context.close()
                    closed = True
                except Error:  # the browser has died, and the context with it
                    return
        finally:
            if traffic is not None:
                traffic.end(closed=closed)

    def _keeps(self, context: Any, tabs: Tabs) -> bool:
        """Whether the context was put away for another episode instead of being closed."""
        return False

    # --- inside ----------------------------------------------------------------------------------------------------

    def _chorded(self, tabs: Tabs, action: Action) -> str:
        """Why an action does not go with the keys that are down; empty if it does."""
        if not tabs.keys_down:
            return ""
        down = "+".join(tabs.keys_down)
        if isinstance(action, TypeText) and set(tabs.keys_down) - {"Shift"}:
            return f"nothing can be typed while {down} is down: let it go first"
        try:
            chord((*tabs.keys_down, *(action.keys if isinstance(action, Key) else ())))
        except UnknownKey as error:
            return f"{error}, and {down} is down"
        return ""

    def _ready(self) -> Tabs:
        if self._tabs is None or self._shown is None:
            raise EnvError("this environment was closed" if self._closed else "this environment was not reset yet")
        return self._tabs

    def _observation(self, tabs: Tabs, news: Mapping[str, Any] | None = None) -> Observation:
        assert self._shown is not None
        return Observation(self._shown, {**self._text(tabs), **self._note(news or {})})

    def _note(self, news: Mapping[str, Any]) -> dict[str, str]:
        words = in_words(news, dialogs=self.options.dialogs)
        return {NOTE: words} if words else {}

    def _text(self, tabs: Tabs) -> dict[str, str]:
        return {"url": str(tabs.page.url)}

    async def _settled(self, tabs: Tabs, before: Screenshot | None) -> dict[str, Any]:
        """Take the picture to go on with, of a page that may be shown: a redirect may lead outside late, and again."""
        if not self.fenced:
            return await self._settle(tabs)
        await tabs.go_back_inside()
        info = await self._settle(tabs)
        for attempt in range(MOST_RETURNS):
            if not await tabs.go_back_inside(give_up=attempt + 1 == MOST_RETURNS):
                break
            info |= await self._settle(tabs)
        assert self._shown is not None
        return {**info, "changed": before is None or self._shown.digest != before.digest}

    async def _settle(self, tabs: Tabs) -> dict[str, Any]:
        """Take the picture to go on with."""
        before, options = self._shown, self.options
        assert before is not None
        if options.settle == "idle":
            return await self._at_rest(tabs, before)
        if options.settle == "fixed":
            await anyio.sleep(options.settle_ms / 1000)
        self._shown = await tabs.shoot()
        return {"changed": self._shown.digest != before.digest}

    async def _at_rest(self, tabs: Tabs, before: Screenshot) -> dict[str, Any]:
        """Take the picture once nothing changes, and no other page is on its way."""
        # a page may well be black all over, so that is no sign of a fault here
        patience = Patience(
            quiet_ms=self.options.settle_ms,
            react_ms=2 * self.options.settle_ms,
            cap_ms=CAP_MS,
            poll_ms=20,
            black_limit=10**9,
        )
        start, arrivals = anyio.current_time(), tabs.arrivals
        seen = await settle(before, tabs.shoot, patience=patience)
        # the old page is shown until the new one has something to show
        while (left_s := start + CAP_MS / 1000 - anyio.current_time()) > 0 and (
            tabs.leaving or (tabs.arrivals != arrivals and not seen.changed)
        ):
            arrivals = tabs.arrivals
            async with tabs.bounded("loading the next page"):
                await tabs.arrive(left_s)
            seen = await settle(before, tabs.shoot, patience=patience)
        self._shown = seen.screenshot
        return {"settle_ms": (anyio.current_time() - start) * 1000, "settled": seen.settled, "changed": seen.changed}
