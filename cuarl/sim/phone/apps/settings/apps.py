"""Installed apps: list, details, storage, permissions."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Back, Do, Open, Put, Seq, Show, Toast
from cuarl.sim.phone.records import App
from cuarl.sim.phone.registry import Action, Builder, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, switch, value_row
from cuarl.sim.phone.world import World


def size_text(kilobytes: int) -> str:
    """A size as the device writes it: ``73.73 KB``, ``1.20 MB``."""
    if kilobytes < 1024:
        return f"{kilobytes} KB"
    return f"{kilobytes / 1024:.2f} MB" if kilobytes < 1024 * 1024 else f"{kilobytes / 1024 / 1024:.2f} GB"


def apps(ctx: Context) -> Screen:
    """All apps."""
    found = sorted((a for a in ctx.state.apps if a.installed), key=lambda a: a.name.lower())
    rows = [w.Row(a.name, Open(f"settings/app:{a.key}"), subtitle=f"{a.storage_mb} MB", tint=a.key) for a in found]
    head = link(ctx, "Default apps", "settings/default_apps", "", "check")
    return Screen("Apps", (head, w.Header("All apps"), *rows))


def app(ctx: Context) -> Screen:
    """One app."""
    info = ctx.world.app(ctx.arg)
    if info is None or not info.installed:
        return Screen("App info", (w.Paragraph("This app is not installed.", align="centre"),))
    return Screen(
        "App info",
        (
            w.Row(info.name, tint=info.key, bold=True, subtitle="Running" if info.running else "Installed"),
            _buttons(info),
            switch(ctx, "Notifications", f"apps.{info.key}.notifications", icon="bell"),
            link(ctx, "Permissions", f"settings/app_permissions:{info.key}", "Camera, location", "shield"),
            link(ctx, "Storage & cache", f"settings/app_storage:{info.key}", total_size(info), "storage", keep=True),
            switch(ctx, "Background data", f"apps.{info.key}.background_data", icon="data"),
            value_row("Package", info.package),
        ),
    )


def _buttons(info: App) -> w.HBox:
    stop = confirmation(
        "Force stop?", "The app may misbehave.", Do("settings.stop", (info.key,), (f"apps.{info.key}.running",))
    )
    gone = Seq(
        (Do("system.uninstall", (info.key,), (f"apps.{info.key}.installed",)), Back(), Toast(f"{info.name} removed"))
    )
    remove = confirmation(f"Uninstall {info.name}?", "Its data is deleted.", gone)
    return w.HBox(
        (
            w.Button("Uninstall", Show(remove), enabled=not info.system),
            w.Button("Force stop", Show(stop), enabled=info.running),
        ),
        height=34,
    )


def total_size(info: App) -> str:
    """App, data and cache together."""
    return size_text(info.storage_mb * 1024 + info.data_kb + info.cache_kb)


def app_storage(ctx: Context) -> Screen:
    """Space that an app takes."""
    info = ctx.world.app(ctx.arg)
    if info is None:
        return Screen("Storage")
    wipe = confirmation(
        "Delete app data?", "Settings and accounts are lost.", Put(f"apps.{info.key}.data_kb", 0), "Delete"
    )
    return Screen(
        "Storage",
        (
            w.Row(info.name, tint=info.key, bold=True),
            w.HBox(
                (
                    w.Button("Clear data", Show(wipe), enabled=info.data_kb > 0),
                    w.Button("Clear cache", Put(f"apps.{info.key}.cache_kb", 0), enabled=info.cache_kb > 0),
                ),
                height=34,
            ),
            value_row("App size", size_text(info.storage_mb * 1024)),
            value_row("User data", size_text(info.data_kb)),
            value_row("Cache", size_text(info.cache_kb)),
            value_row("Total", total_size(info)),
        ),
    )


def app_permissions(ctx: Context) -> Screen:
    """What an app may use."""
    base = f"apps.{ctx.arg}"
    return Screen(
        "App permissions",
        (
            switch(ctx, "Camera", f"{base}.camera", icon="camera"),
            switch(ctx, "Microphone", f"{base}.microphone", icon="mic"),
            switch(ctx, "Location", f"{base}.location", icon="location"),
            switch(ctx, "Contacts", f"{base}.contacts", icon="people"),
        ),
    )


def default_apps(ctx: Context) -> Screen:
    """Default apps."""
    rows = (("Browser", "Chrome"), ("Phone", "Phone"), ("Messages", "Messages"), ("Home", "Launcher"))
    return Screen("Default apps", tuple(value_row(k, v) for k, v in rows))


def stop(world: World, key: str) -> World:
    """Force an app to stop."""
    ui = world.ui
    gone = world.with_ui(recents=tuple(k for k in ui.recents if k != key), stacks=ui.stacks.without(key))
    return gone.put(f"apps.{key}.running", False)


def clean(world: World) -> World:
    """Empty all caches."""
    cleaned = tuple(replace(a, cache_kb=0) for a in world.state.apps)
    return world.put("apps", cleaned).with_ui(toast="Space freed")


PAGES: dict[str, Builder] = {
    "apps": apps,
    "app": app,
    "app_storage": app_storage,
    "app_permissions": app_permissions,
    "default_apps": default_apps,
}
ACTIONS: dict[str, Action] = {"settings.stop": stop, "settings.clean": clean}
