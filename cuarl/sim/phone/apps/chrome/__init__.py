"""The browser: pages of an invented web, tabs, bookmarks, history, downloads, settings."""

from __future__ import annotations

from cuarl.sim.device.sites import HOME, SITES, Download, Image, Link, search, title_of, words_of
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Effect, Open, Option, Put, Remove, Seq, Show, Toast, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.apps.chrome.navigate import ADDRESS, address_bar, back, current_tab, go, show
from cuarl.sim.phone.apps.settings.apps import size_text
from cuarl.sim.phone.records import File, Photo
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import choice, confirmation, switch
from cuarl.sim.phone.state import DeviceState

APP = AppModule("chrome", home="chrome/main")

SUGGESTED = 5
"""How many addresses are suggested while one is typed."""
RECENT = 4
"""How many addresses of the history a new tab shows."""


@APP.page("main")
def main(ctx: Context) -> Screen:
    """The page of the current tab, or suggestions while an address is typed."""
    browser = ctx.state.browser
    url = browser.url
    marked = url in browser.bookmarks
    star = w.IconButton(
        "Remove bookmark" if marked else "Add bookmark",
        Remove("browser.bookmarks", url) if marked else Append("browser.bookmarks", url),
        icon="star",
        active=marked,
        enabled=url != HOME,
    )
    tabs = w.IconButton("Tabs", Open("chrome/tabs"), icon="copy")
    typing = ctx.ui.focus == ADDRESS
    return Screen(
        "Chrome" if url == HOME else title_of(url),
        _suggestions(ctx) if typing else _content(ctx, url),
        (star, tabs),
        menu=_menu(ctx),
        top=(address_bar(ctx),),
        back=back(ctx),
    )


def _menu(ctx: Context) -> tuple[Option, ...]:
    pages = tuple(Option(name, Open(f"chrome/{name.lower()}")) for name in ("Bookmarks", "History", "Downloads"))
    desktop = Option("Desktop site", Toggle("browser.desktop_site"), ctx.state.browser.desktop_site)
    return (Option("New tab", _new_tab(ctx)), *pages, desktop, Option("Settings", Open("chrome/settings")))


def _new_tab(ctx: Context) -> Effect:
    return Seq((Put("browser.tabs", (*ctx.state.browser.tabs, HOME)), show(HOME)))


def _suggestions(ctx: Context) -> tuple[w.Widget, ...]:
    typed = str(ctx.get(ADDRESS)).strip().lower()
    known = dict.fromkeys((*ctx.state.browser.bookmarks, *ctx.state.browser.history, *SITES))
    found = [url for url in known if not words_of(url) and typed in f"{url} {title_of(url)}".lower()]
    return tuple(w.Row(url, go(ctx, url), subtitle=title_of(url), icon="search") for url in found[:SUGGESTED])


def _content(ctx: Context, url: str) -> tuple[w.Widget, ...]:
    if url == HOME:
        return _new_tab_page(ctx)
    if not online(ctx.state):
        return (w.Space(30), w.Display("No internet", 18), w.Paragraph("Check Wi-Fi and mobile data.", align="centre"))
    if words_of(url):
        return _results(ctx, words_of(url))
    if url not in SITES:
        return (w.Space(30), w.Display("Not found", 18), w.Paragraph(f"{url} can't be reached.", align="centre"))
    body: list[w.Widget] = []
    for block in SITES[url].blocks:
        body += _block(ctx, block)
    return tuple(body)


def online(state: DeviceState) -> bool:
    """Whether the device has a way to the internet."""
    net = state.network
    return bool(net.wifi.enabled and net.wifi.connected) or (net.mobile_data and not net.airplane_mode)


def _new_tab_page(ctx: Context) -> tuple[w.Widget, ...]:
    browser = ctx.state.browser
    recent = [url for url in browser.history if url not in browser.bookmarks][:RECENT]
    body: list[w.Widget] = [w.Space(6), w.Display(browser.search_engine, 22, height=34)]
    for title, urls, icon in (("Bookmarks", browser.bookmarks, "bookmark"), ("Visited", recent, "clock")):
        if urls:
            body.append(w.Header(title))
            body += [w.Row(title_of(u), go(ctx, u), subtitle=u, icon=icon) for u in urls]
    return tuple(body)


def _results(ctx: Context, words: str) -> tuple[w.Widget, ...]:
    found = search(words)
    rows = tuple(w.Row(title_of(url), go(ctx, url), subtitle=url, accent=True) for url in found)
    head = w.Paragraph(f"{len(found)} results for {words}")
    return (head, *rows) if found else forms.empty(f"No results for {words}")


def _block(ctx: Context, block: str | Link | Download | Image) -> tuple[w.Widget, ...]:
    match block:
        case Link(label, url):
            return (w.Row(label, go(ctx, url), icon="globe", accent=True),)
        case Download(name, size):
            return (w.Row(name, _download(ctx, name, size), subtitle=f"Download, {size_text(size)}", icon="download"),)
        case Image(name, subject):
            return (w.HBox((w.Picture(name, _save_image(ctx, block), subject=subject, height=70),), pad=12), w.Space(6))
        case text:
            return (w.Paragraph(text, 12, muted=False),)


def _download(ctx: Context, name: str, size: int) -> Effect:
    """Save a file; one that is there already is kept, and the second gets a number."""
    paths = {f.path for f in ctx.state.files}
    path = f"Download/{name}"
    stem, _, ending = path.rpartition(".")
    count = 1
    while path in paths:
        path, count = f"{stem} ({count}).{ending}", count + 1
    folder = Append("files", File("Download", folder=True))
    save = Seq((folder, Append("files", File(path, size_kb=size)), Toast(f"{name} downloaded")))
    return Show(confirmation("Download again?", f"{name} is there already.", save, "Download")) if count > 1 else save


def _save_image(ctx: Context, image: Image) -> Effect:
    photo = Photo(image.name, image.subject, "download", album="Download")
    return Show(
        confirmation(image.name, "Save this image?", Seq((Append("media.photos", photo), Toast("Image saved"))), "Save")
    )


@APP.page("tabs")
def tabs(ctx: Context) -> Screen:
    """Open tabs, numbered."""
    open_tabs, current = ctx.state.browser.tabs, current_tab(ctx.state.browser)
    rows = tuple(
        w.HBox(
            (
                w.Row(
                    f"{i + 1}. {title_of(url)}", forms.finish(show(url)), subtitle=url, icon="globe", bold=i == current
                ),
                w.IconButton(f"Close tab {i + 1}", _close(ctx, i), icon="close"),
            ),
            (5, 1),
            pad=0,
            gap=0,
        )
        for i, url in enumerate(open_tabs)
    )
    everything = forms.finish(Put("browser.tabs", (HOME,)), show(HOME))
    ask = confirmation("Close all tabs?", f"{len(open_tabs)} are open.", everything, "Close all")
    new = Seq((_new_tab(ctx), forms.finish()))
    return Screen("Tabs", rows, menu=(Option("Close all tabs", Show(ask)),), fab=w.Fab("New tab", new))


def _close(ctx: Context, index: int) -> Effect:
    """Close a tab; the one before it takes its place if it was shown, and there is always one."""
    browser = ctx.state.browser
    left = forms.without(browser.tabs, index) or (HOME,)
    gone = Put("browser.tabs", left)
    return Seq((gone, show(left[max(0, index - 1)]))) if index == current_tab(browser) else gone


@APP.page("bookmarks")
def bookmarks(ctx: Context) -> Screen:
    """Bookmarks, each with a button that removes it."""
    rows = tuple(
        w.HBox(
            (
                w.Row(title_of(url), forms.finish(go(ctx, url)), subtitle=url, icon="bookmark"),
                w.IconButton(f"Remove {title_of(url)}", Remove("browser.bookmarks", url), icon="trash"),
            ),
            (5, 1),
            pad=0,
            gap=0,
        )
        for url in ctx.state.browser.bookmarks
    )
    return Screen("Bookmarks", rows or forms.empty("No bookmarks"))


@APP.page("history")
def history(ctx: Context) -> Screen:
    """Visited addresses, the last one first."""
    visited = ctx.state.browser.history
    rows = tuple(w.Row(url, forms.finish(go(ctx, url)), subtitle=title_of(url), icon="clock") for url in visited)
    clear = confirmation("Clear history?", "All visited pages are forgotten.", Put("browser.history", ()), "Clear")
    actions = (w.IconButton("Clear history", Show(clear), icon="trash"),) if visited else ()
    return Screen("History", rows or forms.empty("Nothing visited yet"), actions)


@APP.page("downloads")
def downloads(ctx: Context) -> Screen:
    """Files in the Download folder."""
    found = [f for f in ctx.state.files if f.path.startswith("Download/") and not f.folder]
    rows = tuple(
        w.Row(f.path.partition("/")[2], Open(f"files/file:{f.path}"), subtitle=size_text(f.size_kb), icon="file")
        for f in found
    )
    return Screen("Downloads", rows or forms.empty("No downloads"))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Browser settings."""
    engines = ("Findly", "Seekr", "Lantern")
    homes = {
        HOME: "New tab page",
        **{url: url for url in (*ctx.state.browser.bookmarks, ctx.state.browser.home) if url != HOME},
    }
    forget = Seq((Put("browser.history", ()), Put("apps.chrome.cache_kb", 0), Toast("Browsing data cleared")))
    ask = confirmation("Clear browsing data?", "History and cached pages are deleted.", forget, "Clear")
    rows = (
        choice(ctx, "Search engine", "browser.search_engine", {name: name for name in engines}),
        choice(ctx, "Homepage", "browser.home", homes),
        switch(ctx, "Save passwords", "browser.save_passwords"),
        switch(ctx, "Safe browsing", "browser.safe_browsing", "Warn of bad pages"),
        switch(ctx, "Do not track", "browser.do_not_track"),
        switch(ctx, "Block pop-ups", "browser.block_popups"),
        switch(ctx, "JavaScript", "browser.javascript"),
        w.Row("Clear browsing data", Show(ask)),
    )
    return Screen("Settings", ctx.shuffled(rows))
