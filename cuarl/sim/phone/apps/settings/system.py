"""System, language, date and time, developer options, about."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Copy, Dialog, Dismiss, Do, Input, Option, Put, Seq, Show
from cuarl.sim.phone.registry import Action, Builder, Context, Screen
from cuarl.sim.phone.rows import choice, confirmation, link, radio, switch, value_row
from cuarl.sim.phone.world import World

LANGUAGES = {"en": "English", "es": "Espanol", "de": "Deutsch", "fr": "Francais", "it": "Italiano", "pt": "Portugues"}
TAPS_TO_UNLOCK = 7


def system(ctx: Context) -> Screen:
    """The category's own page."""
    rows = [
        link(ctx, "Languages", "settings/language", LANGUAGES[ctx.state.system.language], "language"),
        link(ctx, "Keyboard", "settings/keyboard", "Suggestions, sounds", "keyboard"),
        link(ctx, "Date & time", "settings/date_time", "Zone, format", "clock"),
        link(ctx, "Gestures", "settings/gestures", "Quick tap, flip", "gesture"),
        link(ctx, "Backup", "settings/backup", "To the cloud", "backup"),
        link(ctx, "System update", "settings/update", "Up to date", "update"),
        link(ctx, "Users", "settings/users", "Owner, guest", "people"),
        link(ctx, "Reset options", "settings/reset", "", "reset"),
    ]
    if ctx.state.system.developer_options:
        rows.append(link(ctx, "Developer options", "settings/developer", "", "developer"))
    return Screen("System", ctx.shuffled(rows))


def language(ctx: Context) -> Screen:
    """System language."""
    return Screen(
        "Languages", tuple(radio(ctx, LANGUAGES[c], "system.language", c) for c in ctx.shuffled(list(LANGUAGES)))
    )


def keyboard(ctx: Context) -> Screen:
    """Keyboard settings."""
    return Screen(
        "Keyboard",
        ctx.shuffled(
            (
                switch(ctx, "Auto-correction", "system.autocorrect"),
                switch(ctx, "Glide typing", "system.glide_typing"),
                switch(ctx, "Sound on keypress", "system.key_sounds"),
                switch(ctx, "Show suggestions", "system.suggestions"),
                switch(ctx, "Spell checker", "system.spell_checker"),
                link(ctx, "GBox Keyboard", "keyboard/settings", "On-screen keyboard"),
            )
        ),
    )


def date_time(ctx: Context) -> Screen:
    """Date and time."""
    zones = {v: v for v in ("London", "New York", "Tokyo", "Sydney", "Berlin")}
    return Screen(
        "Date & time",
        ctx.shuffled(
            (
                switch(ctx, "Automatic time", "system.auto_time", icon="clock"),
                switch(ctx, "Automatic time zone", "system.auto_timezone", icon="language"),
                choice(ctx, "Time zone", "system.timezone", zones, "location"),
                switch(ctx, "24-hour format", "system.use_24h", icon="timeout"),
            )
        ),
    )


def gestures(ctx: Context) -> Screen:
    """Gestures."""
    return Screen(
        "Gestures",
        ctx.shuffled(
            (
                switch(ctx, "Quick Tap", "system.quick_tap", "Tap the back twice"),
                switch(ctx, "Jump to Camera", "system.jump_to_camera"),
                switch(ctx, "Flip to Shush", "system.flip_to_shush"),
                switch(ctx, "One-handed mode", "system.one_handed"),
                switch(ctx, "Swipe fingerprint", "system.swipe_fingerprint"),
            )
        ),
    )


def backup(ctx: Context) -> Screen:
    """Backup."""
    return Screen(
        "Backup", (switch(ctx, "Back up data", "system.backup", icon="backup"), value_row("Last backup", "Yesterday"))
    )


def update(ctx: Context) -> Screen:
    """System update."""
    return Screen(
        "System update",
        (
            w.Space(10),
            w.Paragraph("Your system is up to date.", 12, muted=False, align="centre"),
            switch(ctx, "Automatic updates", "system.auto_update", icon="update"),
        ),
    )


def users(ctx: Context) -> Screen:
    """Users."""
    return Screen(
        "Users",
        (value_row("Owner", "You", icon="person"), switch(ctx, "Allow guests", "system.guest_users", icon="people")),
    )


def reset(ctx: Context) -> Screen:
    """Reset options; each asks first."""
    network = confirmation("Reset network?", "Saved networks are removed.", Put("network.wifi.saved", ()), "Reset")
    apps = confirmation("Reset app settings?", "Notifications are allowed again.", Do("settings.reset_apps"), "Reset")
    return Screen(
        "Reset options",
        (w.Row("Reset network", Show(network), icon="wifi"), w.Row("Reset app settings", Show(apps), icon="apps")),
    )


def developer(ctx: Context) -> Screen:
    """Developer options."""
    return Screen(
        "Developer options",
        (
            switch(ctx, "Use developer options", "system.developer_options"),
            *ctx.shuffled(
                (
                    switch(ctx, "USB debugging", "system.usb_debugging", confirm="For development only."),
                    switch(ctx, "Wireless debugging", "system.wireless_debugging"),
                    switch(ctx, "Stay awake", "system.stay_awake", "While charging"),
                    switch(ctx, "Show taps", "system.show_taps"),
                    switch(ctx, "Pointer location", "system.pointer_location"),
                    switch(ctx, "Layout bounds", "system.layout_bounds"),
                    switch(ctx, "Mock locations", "system.mock_location"),
                    choice(
                        ctx, "Animation scale", "system.animation_scale", {v: v for v in ("Off", "0.5x", "1x", "2x")}
                    ),
                    switch(ctx, "OEM unlocking", "system.oem_unlocking", confirm="Device protection will not work."),
                )
            ),
        ),
    )


def about(ctx: Context) -> Screen:
    """About the phone; seven taps on the build number unlock the developer options."""
    rename = Dialog(
        "Device name",
        inputs=(Input("Name", "ui.form.about.name"),),
        buttons=(Option("Cancel", Dismiss()), Option("OK", Copy("ui.form.about.name", "system.device_name"))),
    )
    edit = Seq((Put("ui.form.about.name", ctx.state.system.device_name), Show(rename)))
    return Screen(
        "About phone",
        (
            w.Row("Device name", edit, subtitle=ctx.state.system.device_name, icon="edit"),
            value_row("Model", "CP-7", icon="phone"),
            value_row("System version", "14", icon="system"),
            value_row("Phone number", "555-0100", icon="signal"),
            value_row("Legal information", "Licences", icon="file"),
            value_row(
                "Build number", "CP7.2411", Do("settings.build_tap", (), ("system.developer_options",)), "developer"
            ),
        ),
    )


def build_tap(world: World) -> World:
    """Count taps on the build number."""
    if world.state.system.developer_options:
        return world.with_ui(toast="You are a developer")
    taps = int(world.get("ui.form.about.taps") or 0) + 1
    world = world.put("ui.form.about.taps", taps)
    if taps >= TAPS_TO_UNLOCK:
        return world.put("system.developer_options", True).with_ui(toast="You are a developer now")
    return world.with_ui(toast=f"{TAPS_TO_UNLOCK - taps} taps left") if taps > 2 else world


def reset_apps(world: World) -> World:
    """Allow notifications of all apps again."""
    for app in world.state.apps:
        world = world.put(f"apps.{app.key}.notifications", True)
    return world


PAGES: dict[str, Builder] = {
    "system": system, "language": language, "keyboard": keyboard, "date_time": date_time, "gestures": gestures,
    "backup": backup, "update": update, "users": users, "reset": reset, "developer": developer, "about": about,
}  # fmt: skip
ACTIONS: dict[str, Action] = {"settings.build_tap": build_tap, "settings.reset_apps": reset_apps}
