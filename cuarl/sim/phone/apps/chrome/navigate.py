"""Going from page to page: the address bar, tabs and the way back."""

from __future__ import annotations

from cuarl.sim.device.sites import HOME, resolve, words_of
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Focus, Put, Seq
from cuarl.sim.phone.registry import Context
from cuarl.sim.phone.state import Browser

ADDRESS = "ui.form.chrome.address"
"""What is being typed into the address bar."""
TRAIL = "ui.form.chrome.trail"
"""Addresses that the current tab showed before, the last one at the end."""


def current_tab(browser: Browser) -> int:
    """Position of the shown tab: the first with the shown address."""
    return browser.tabs.index(browser.url) if browser.url in browser.tabs else max(0, len(browser.tabs) - 1)


def show(url: str, trail: tuple[str, ...] = ()) -> Effect:
    """Show an address, with the way back."""
    return Seq((Put("browser.url", url), Put(TRAIL, trail), Put(ADDRESS, ""), Focus("")))


def _in_tab(browser: Browser, url: str) -> Effect:
    """The current tab has another address."""
    return Put(f"browser.tabs.{current_tab(browser)}", url) if browser.tabs else Put("browser.tabs", (url,))


def go(ctx: Context, url: str) -> Effect:
    """Follow a link in the current tab: it goes into the history and the page before onto the way back."""
    browser = ctx.state.browser
    before = tuple(ctx.get(TRAIL))
    trail = (*before, browser.url) if url != browser.url else before
    effects: list[Effect] = [_in_tab(browser, url), show(url, trail)]
    if url != HOME:
        effects.append(Put("browser.history", (url, *(u for u in browser.history if u != url))))
    return Seq(tuple(effects))


def back(ctx: Context) -> Effect | None:
    """What the back button does: the page before, or nothing of its own where there is none."""
    trail = tuple(ctx.get(TRAIL))
    return Seq((_in_tab(ctx.state.browser, trail[-1]), show(trail[-1], trail[:-1]))) if trail else None


def address_bar(ctx: Context) -> w.HBox:
    """The home button and the field that shows the address, is empty once it is tapped, and goes where Enter says."""
    browser, focused = ctx.state.browser, ctx.ui.focus == ADDRESS
    typed = str(ctx.get(ADDRESS))
    shown = typed if focused else "" if browser.url == HOME else words_of(browser.url) or browser.url
    start = Seq((Put(ADDRESS, ""), Focus(ADDRESS)))
    field = w.Field(
        "Search or type URL",
        Focus(ADDRESS) if focused else start,
        path=ADDRESS,
        text=shown,
        focused=focused,
        search=True,
        submit=go(ctx, resolve(typed, browser.search_engine)) if typed.strip() else None,
        clear=start if focused else None,
    )
    return w.HBox((w.IconButton("Home page", go(ctx, browser.home), icon="home"), field), (1, 7), pad=2, gap=0)
