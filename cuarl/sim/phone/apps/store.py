"""The store: all apps, updates, what is installed, and an app's page."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Do, Effect, Launch, Open, Put, Remove, Replace, Seq, Show, Toast
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import App
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, switch, text_field, value_row

APP = AppModule("store", home="store/apps")

QUERY = "ui.form.store.query"
TABS = (("Apps", "apps", "apps"), ("Updates", "updates", "update"), ("Installed", "installed", "check"))
ABOUT: dict[str, tuple[str, str]] = {
    "chrome": ("Browser", "Search and read the web, with tabs and bookmarks."),
    "notes": ("Productivity", "Write things down and find them again."),
    "mail": ("Communication", "Read, write and file your mail."),
    "music": ("Music", "Play the songs on this device."),
    "maps": ("Travel", "Find places and the way to them."),
    "weather": ("Weather", "Today and the next days, wherever you are."),
    "instagram": ("Social", "Pictures from people you follow."),
    "facebook": ("Social", "News from friends and groups."),
}
"""Category and description; other apps are part of the system."""


def _offered(ctx: Context) -> list[App]:
    return [a for a in ctx.state.apps if a.icon]


def _pending(ctx: Context) -> list[App]:
    return [a for a in ctx.state.apps if a.installed and a.key in ctx.state.store.pending]


def _screen(ctx: Context, body: tuple[w.Widget, ...], top: tuple[w.Widget, ...] = ()) -> Screen:
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"store/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    gear = w.IconButton("Store settings", Open("store/settings"), icon="gear")
    return Screen("Store", body, (gear,), top=top, bottom=(w.HBox(tabs, height=32),))


def _category(app: App) -> str:
    return ABOUT.get(app.key, ("System", ""))[0]


def _row(app: App, value: str = "") -> w.Row:
    return w.Row(app.name, Open(f"store/app:{app.key}"), subtitle=_category(app), tint=app.key, value=value)


@APP.page("apps")
def apps(ctx: Context) -> Screen:
    """All apps with a search; those that are not installed come first."""
    query = str(ctx.get(QUERY)).strip().lower()
    found = [a for a in _offered(ctx) if query in f"{a.name} {_category(a)}".lower()]
    found.sort(key=lambda a: (a.installed, a.key not in ABOUT, a.name.lower()))
    rows = tuple(_row(a, "" if a.installed else "Get") for a in found)
    field = text_field(ctx, "Search apps", QUERY, search=True)
    return _screen(ctx, rows or forms.empty("No such app"), (field,))


@APP.page("updates")
def updates(ctx: Context) -> Screen:
    """Apps of which there is a new version."""
    pending = _pending(ctx)
    if not pending:
        return _screen(ctx, forms.empty("All apps are up to date"))
    rows = tuple(
        w.HBox((_row(a), w.IconButton(f"Update {a.name}", _update(a), icon="download")), (5, 1), pad=0, gap=0)
        for a in pending
    )
    everything = Seq((Put("store.pending", ()), Toast("All apps updated")))
    return _screen(ctx, (w.HBox((w.Button("Update all", everything, look="filled"),), pad=40), *rows))


def _update(app: App) -> Effect:
    return Seq((Remove("store.pending", app.key), Toast(f"{app.name} updated")))


@APP.page("installed")
def installed(ctx: Context) -> Screen:
    """Installed apps by size."""
    found = sorted((a for a in _offered(ctx) if a.installed), key=lambda a: -a.storage_mb)
    return _screen(ctx, (w.Header(f"{len(found)} apps"), *(_row(a, f"{a.storage_mb} MB") for a in found)))


@APP.page("app")
def app(ctx: Context) -> Screen:
    """One app: what it is, and getting, updating, opening or removing it."""
    found = ctx.world.app(ctx.arg)
    if found is None:
        return Screen("App", forms.empty("There is no such app."))
    category, about = ABOUT.get(found.key, ("System", "Part of this phone."))
    status = "Installed" if found.installed else "Not installed"
    body = (
        w.Row(found.name, subtitle=status, tint=found.key, bold=True),
        w.HBox(_buttons(ctx, found), height=34),
        w.Paragraph(about, 12, muted=False),
        w.Divider(),
        value_row("Category", category, icon="apps"),
        value_row("Size", f"{found.storage_mb} MB", icon="storage"),
        value_row("Package", found.package, icon="info"),
    )
    return Screen("App", body)


def _buttons(ctx: Context, app: App) -> tuple[w.Widget, ...]:
    path = f"apps.{app.key}.installed"
    if not app.installed:
        install = Seq((Put(path, True), Toast(f"{app.name} installed")))
        return (w.Button("Install", install, look="filled", icon="download"),)
    gone = Seq((Do("system.uninstall", (app.key,), (path,)), Toast(f"{app.name} removed")))
    remove = Show(confirmation(f"Uninstall {app.name}?", "Its data is deleted.", gone, "Uninstall"))
    first = w.Button("Uninstall", remove, enabled=not app.system)
    if app.key in ctx.state.store.pending:
        return (first, w.Button("Update", _update(app), look="filled"))
    return (first, w.Button("Open", Launch(app.key), look="filled", enabled=app.icon))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Store settings."""
    rows = (
        switch(ctx, "Auto-update apps", "store.auto_update"),
        switch(ctx, "Only over Wi-Fi", "store.wifi_only", "Download apps and updates"),
        switch(ctx, "Scan apps", "security.scan_apps", "Look for harmful ones"),
        switch(ctx, "Notifications", "apps.store.notifications"),
    )
    return Screen("Store settings", ctx.shuffled(rows))
