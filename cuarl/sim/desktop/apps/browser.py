"""Web Browser: the invented pages that the phone's browser has too, with an address bar, bookmarks and downloads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.records import File
from cuarl.sim.desktop.registry import Context, DesktopApp, Pane
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.widgets import Caption, Item, Push
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.device.sites import (
    HOME,
    SITES,
    Download,
    Image,
    Link,
    resolve,
    search,
    title_of,
    words_of,
)
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Dialog, Option, Put, Remove, Show, Toggle

ADDRESS, BEFORE, AFTER = "address", "before", "after"
ENGINE = "Findly"


def pane(ctx: Context) -> Pane:
    """The address bar, bookmarks and the page."""
    url, state = ctx.window.page, ctx.state.browser
    marked = url in state.bookmarks
    mark = Remove("browser.bookmarks", url) if marked else Append("browser.bookmarks", url)
    bar = w.HBox(
        (
            w.IconButton("Back", ctx.do("back"), icon="back", enabled=bool(ctx.form(BEFORE))),
            w.IconButton("Forward", ctx.do("forward"), icon="chevron", enabled=bool(ctx.form(AFTER))),
            w.IconButton("Home page", ctx.do("go", state.home), icon="home"),
            ctx.entry("Search or enter address", ADDRESS, ctx.do("typed"), icon="globe"),
            w.IconButton(
                "Remove bookmark" if marked else "Bookmark this page",
                mark,
                icon="star",
                active=marked,
                enabled=url != HOME,
            ),
            w.IconButton("Menu", Show(_menu(ctx)), icon="menu"),
        ),
        (1, 1, 1, ctx.room(5), 1, 1),
        height=26,
        gap=0,
        pad=3,
    )
    toolbar: tuple[w.Widget, ...] = (bar,)
    if state.show_bookmarks_bar and state.bookmarks:
        marks = tuple(Push(title_of(u), ctx.do("go", u), look="flat") for u in state.bookmarks[:5])
        toolbar = (bar, w.HBox(marks, height=22, gap=2, pad=5))
    return Pane(f"{title_of(url)} - Browser", _page(ctx, url), toolbar)


def _menu(ctx: Context) -> Dialog:
    home = ctx.window.page
    options = (
        Option("New window", ctx.do("window")),
        Option("History", ctx.do("go", "about:history")),
        Option("Bookmarks bar", Toggle("browser.show_bookmarks_bar"), ctx.state.browser.show_bookmarks_bar),
        Option("Use as home page", Put("browser.home", home)),
        Option("Clear history", Put("browser.history", ())),
    )
    return Dialog("browser", options=options, kind="menu")


def _page(ctx: Context, url: str) -> tuple[w.Widget, ...]:
    if url == "about:history":
        rows = tuple(_link(ctx, title_of(u), u) for u in ctx.state.browser.history)
        return (Caption("History"), *(rows or (w.Paragraph("Nothing visited yet."),)))
    if url == HOME:
        return (w.Space(10), Caption("Bookmarks"), *(_link(ctx, title_of(u), u) for u in ctx.state.browser.bookmarks))
    if url in SITES:
        site = SITES[url]
        blocks = tuple(widget for block in site.blocks for widget in _block(ctx, block))
        return (w.Paragraph(site.title, 17, muted=False), *blocks, w.Space(8))
    words = words_of(url)
    if words:
        found = search(words)
        return (w.Paragraph(f"{len(found)} results for {words}"), *(_link(ctx, title_of(u), u) for u in found))
    return (w.Space(16), w.Paragraph("This page could not be found", 14, muted=False), w.Paragraph(url))


def _link(ctx: Context, label: str, url: str) -> Item:
    return Item(label, ctx.do("go", url), icon="globe", detail=url)


def _block(ctx: Context, block: str | Link | Download | Image) -> tuple[w.Widget, ...]:
    match block:
        case Link(label, url):
            return (Item(label, ctx.do("go", url), icon="globe"),)
        case Download(name, size):
            return (
                Item(name, ctx.do("download", name, size, writes=("files",)), icon="download", detail=f"{size} kB"),
            )
        case Image(name, subject):
            return (w.HBox((w.Picture(name, subject=subject, height=90),), pad=12), w.Space(5))
        case text:
            return (w.Paragraph(text, 11.5, muted=False),)


def opened(world: DesktopWorld, window: Window) -> Window:
    """A new window on the home page, ready for an address."""
    window = replace(window, page=window.page or world.state.browser.home)
    return replace(window, focus=ADDRESS if window.page == HOME else "").put(ADDRESS, _shown(window.page))


def _shown(url: str) -> TextBox:
    """What the address bar says of an address."""
    return TextBox() if url == HOME else TextBox.of(words_of(url) or url)


APP = DesktopApp(
    "browser", "Web Browser", pane, (380, 250), opened=opened,
    keys={
        "ctrl+l": "address", "alt+left": "back", "alt+right": "forward", "ctrl+d": "bookmark", "ctrl+n": "window",
        "ctrl+h": "history", "alt+home": "home", "f6": "address", "ctrl+r": "reload", "f5": "reload",
    },
)  # fmt: skip


@APP.action("go")
def go(world: DesktopWorld, key: str, url: str) -> DesktopWorld:
    """Follow a link."""
    window = world.window(key)
    if window is None or url == window.page:
        return world
    window = window.put(BEFORE, (*window.get(BEFORE, ()), window.page)).put(AFTER, ())
    return _at(world, window, url)


def _at(world: DesktopWorld, window: Window, url: str) -> DesktopWorld:
    window = replace(window.with_page(url).put(ADDRESS, _shown(url)), focus="")
    if not url.startswith("about:"):
        past = world.state.browser.history
        world = world.put("browser.history", (url, *(u for u in past if u != url)))
    return world.with_window(window)


@APP.action("typed")
def typed(world: DesktopWorld, key: str) -> DesktopWorld:
    """Go where the address bar says."""
    window = world.window(key)
    text = "" if window is None else window.box(ADDRESS).text
    return go(world, key, resolve(text, ENGINE)) if text.strip() else world


def _through(world: DesktopWorld, key: str, taken: str, kept: str) -> DesktopWorld:
    """Go back or forward."""
    window = world.window(key)
    trail = () if window is None else window.get(taken, ())
    if window is None or not trail:
        return world
    window = window.put(taken, trail[:-1]).put(kept, (*window.get(kept, ()), window.page))
    return _at(world, window, trail[-1])


APP.action("back")(partial(_through, taken=BEFORE, kept=AFTER))
APP.action("forward")(partial(_through, taken=AFTER, kept=BEFORE))


@APP.action("address")
def address(world: DesktopWorld, key: str) -> DesktopWorld:
    """Put the cursor into the address bar, its text selected."""
    window = world.window(key)
    if window is None:
        return world
    return world.with_window(replace(window.put(ADDRESS, window.box(ADDRESS).select_all()), focus=ADDRESS))


@APP.action("bookmark")
def bookmark(world: DesktopWorld, key: str) -> DesktopWorld:
    """Bookmark the page."""
    window, marks = world.window(key), world.state.browser.bookmarks
    if window is None or window.page in marks or window.page.startswith("about:"):
        return world
    return world.put("browser.bookmarks", (*marks, window.page))


@APP.action("history")
def history(world: DesktopWorld, key: str) -> DesktopWorld:
    """Show the history."""
    return go(world, key, "about:history")


@APP.action("home")
def home(world: DesktopWorld, key: str) -> DesktopWorld:
    """Go to the home page."""
    return go(world, key, world.state.browser.home)


@APP.action("reload")
def reload(world: DesktopWorld, key: str) -> DesktopWorld:
    """Show the page from its top."""
    window = world.window(key)
    return world if window is None else world.with_window(window.with_page(window.page))


@APP.action("window")
def new_window(world: DesktopWorld, key: str) -> DesktopWorld:
    """Open another window."""
    return windows.open_window(world, "browser")


@APP.action("download")
def download(world: DesktopWorld, key: str, name: str, size_kb: int) -> DesktopWorld:
    """Save a file to the folder Downloads, under a free name, and say so."""
    files = world.state.files
    if fs.find(files, "Downloads") is None:
        files = fs.make_folder(files, "Downloads")
    path = fs.free_name(files, f"Downloads/{name}")
    world = world.put("files", (*files, File(path, size_kb=size_kb)))
    return world.with_ui(notice=f"Downloaded {fs.name_of(path)}")
