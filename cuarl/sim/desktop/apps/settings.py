"""Settings: a page a subject, each a few boxes of switches, choices and sliders bound to the state."""

from __future__ import annotations

from collections.abc import Callable

from cuarl.sim.desktop.apps.settings_parts import choice, field_row, fixed, group, level, switch
from cuarl.sim.desktop.records import User
from cuarl.sim.desktop.registry import Context, DesktopApp, Pane
from cuarl.sim.desktop.widgets import Caption, Item, Push
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Dialog, Dismiss, Open, Option, Put, Remove, Show

Page = Callable[[Context], tuple[w.Widget, ...]]


def wifi(ctx: Context) -> tuple[w.Widget, ...]:
    """Wi-Fi and the networks in range."""
    network = ctx.state.network
    online = network.wifi and not network.airplane_mode
    found = [
        fixed(name, Put("network.connected", name), value="Connected" if name == network.connected else "")
        for name in network.available
    ]
    networks = (Caption("Visible networks"), *group(*found)) if online else ()
    top = (switch(ctx, "Wi-Fi", "network.wifi"), switch(ctx, "Airplane mode", "network.airplane_mode"))
    return (*group(*top, switch(ctx, "Wi-Fi hotspot", "network.hotspot")), *networks)


def network(ctx: Context) -> tuple[w.Widget, ...]:
    """Wired network, VPN and proxy."""
    proxies = {"Off": "Off", "Manual": "Manual", "Automatic": "Automatic"}
    return group(
        switch(ctx, "Wired connection", "network.wired"),
        switch(ctx, "VPN", "network.vpn"),
        choice(ctx, "Proxy", "network.proxy", proxies),
    )


def bluetooth(ctx: Context) -> tuple[w.Widget, ...]:
    """Bluetooth."""
    visible = switch(ctx, "Visible to others", "bluetooth.visible")
    return (
        *group(switch(ctx, "Bluetooth", "bluetooth.enabled"), visible),
        *field_row(ctx, "Device name", "bluetooth.name"),
    )


def appearance(ctx: Context) -> tuple[w.Widget, ...]:
    """Style, colours and wallpaper."""
    accents = {"Seed": "Standard", **{n: n for n in ("Blue", "Green", "Orange", "Purple")}}
    walls = {"Seed": "Standard", **{n: n for n in ("Hills", "Sunset", "Waves", "Dunes", "Night", "Mist")}}
    return (
        *group(
            switch(ctx, "Dark style", "appearance.dark_style"),
            choice(ctx, "Accent colour", "appearance.accent", accents),
            choice(ctx, "Wallpaper", "appearance.wallpaper", walls),
        ),
        w.Space(6),
        *group(
            switch(ctx, "Animations", "appearance.animations"),
            switch(ctx, "Icons on desktop", "appearance.desktop_icons"),
        ),
    )


def sound(ctx: Context) -> tuple[w.Widget, ...]:
    """Volumes, devices and alerts."""
    outputs = {n: n for n in ("Speakers", "Headphones", "HDMI")}
    alerts = {n: n for n in ("Click", "Drop", "Hum", "None")}
    return (
        Caption("Output"),
        *group(
            choice(ctx, "Output device", "sound.output", outputs),
            level(ctx, "Volume", "sound.volume"),
            level(ctx, "Balance", "sound.balance"),
            switch(ctx, "Mute", "sound.muted"),
            switch(ctx, "Over-amplification", "sound.over_amplification"),
        ),
        Caption("Input"),
        *group(
            level(ctx, "Microphone level", "sound.input_volume"), switch(ctx, "Mute microphone", "sound.input_muted")
        ),
        Caption("Sounds"),
        *group(choice(ctx, "Alert sound", "sound.alert", alerts), switch(ctx, "System sounds", "sound.system_sounds")),
    )


def display(ctx: Context) -> tuple[w.Widget, ...]:
    """The screen."""
    sizes = {n: n.replace("x", " x ") for n in ("1920x1080", "1600x900", "1280x720")}
    turns = {n: n for n in ("Landscape", "Portrait", "Upside down")}
    return (
        *group(
            level(ctx, "Brightness", "display.brightness"),
            choice(ctx, "Resolution", "display.resolution", sizes),
            choice(ctx, "Refresh rate", "display.refresh_hz", {n: f"{n} Hz" for n in (60, 75, 144)}),
            choice(ctx, "Orientation", "display.orientation", turns),
            switch(ctx, "Fractional scaling", "display.fractional_scaling"),
        ),
        Caption("Night light"),
        *group(switch(ctx, "Night light", "display.night_light"), level(ctx, "Colour warmth", "display.night_warmth")),
    )


def power(ctx: Context) -> tuple[w.Widget, ...]:
    """Power modes and saving."""
    modes = {n: n for n in ("Performance", "Balanced", "Power saver")}
    minutes = {1: "1 minute", 5: "5 minutes", 10: "10 minutes", 15: "15 minutes", 0: "Never"}
    buttons = {n: n for n in ("Suspend", "Power off", "Nothing")}
    return (
        *group(
            fixed("Battery level", value=f"{ctx.state.power.battery} %"), choice(ctx, "Power mode", "power.mode", modes)
        ),
        Caption("Power saving"),
        *group(
            switch(ctx, "Dim screen", "power.dim_screen"),
            choice(ctx, "Screen blank", "power.blank_minutes", minutes),
            switch(ctx, "Automatic suspend", "power.auto_suspend"),
        ),
        Caption("General"),
        *group(
            choice(ctx, "Power button", "power.power_button", buttons),
            switch(ctx, "Show battery percentage", "power.show_percentage"),
        ),
    )


def notifications(ctx: Context) -> tuple[w.Widget, ...]:
    """Notifications."""
    return group(
        switch(ctx, "Do not disturb", "notifications.do_not_disturb"),
        switch(ctx, "Show on lock screen", "notifications.on_lock_screen"),
    )


def mouse(ctx: Context) -> tuple[w.Widget, ...]:
    """Mouse and touchpad."""
    return group(
        level(ctx, "Pointer speed", "input.pointer_speed"),
        switch(ctx, "Natural scrolling", "input.natural_scrolling"),
        switch(ctx, "Left-handed", "input.left_handed"),
        switch(ctx, "Tap to click", "input.tap_to_click"),
    )


def keyboard(ctx: Context) -> tuple[w.Widget, ...]:
    """Keyboard."""
    layouts = {n: n for n in ("English (US)", "English (UK)", "German", "French")}
    return group(choice(ctx, "Layout", "input.layout", layouts), switch(ctx, "Key repeat", "input.key_repeat"))


def datetime(ctx: Context) -> tuple[w.Widget, ...]:
    """Date and time."""
    zones = {n: n for n in ("Berlin", "London", "New York", "Tokyo", "Sydney")}
    return (
        *group(
            switch(ctx, "Automatic date and time", "datetime.automatic"),
            switch(ctx, "Automatic time zone", "datetime.automatic_zone"),
            choice(ctx, "Time zone", "datetime.zone", zones),
        ),
        Caption("Clock"),
        *group(
            switch(ctx, "24-hour time", "datetime.use_24h"),
            switch(ctx, "Show weekday", "datetime.show_weekday"),
            switch(ctx, "Show date", "datetime.show_date"),
            switch(ctx, "Show seconds", "datetime.show_seconds"),
            switch(ctx, "Week numbers", "datetime.week_numbers"),
        ),
    )


def users(ctx: Context) -> tuple[w.Widget, ...]:
    """Who can sign in."""
    people = ctx.state.users.people
    rows = []
    for i, user in enumerate(people):
        gone = Remove("users.people", user)
        ask = Dialog(f"Remove {user.name}?", buttons=(Option("Cancel", Dismiss()), Option("Remove", gone)))
        kind = "Administrator" if user.admin else "Standard"
        rows.append(fixed(user.name, Show(ask) if i else None, value=kind))
    name = ctx.window.box("user").text.strip()
    taken = any(user.name == name for user in people)
    add = Append("users.people", User(name))
    return (
        Caption("People"),
        *group(*rows),
        w.HBox(
            (ctx.entry("Name of a new user", "user", add), Push("Add User", add, enabled=bool(name) and not taken)),
            (3, 1.4),
            height=27,
            pad=7,
        ),
        w.Space(4),
        *group(switch(ctx, "Automatic login", "users.automatic_login"), switch(ctx, "Guest account", "users.guest")),
    )


def accessibility(ctx: Context) -> tuple[w.Widget, ...]:
    """Accessibility."""
    sizes = {n: n for n in ("Small", "Default", "Large")}
    return group(
        choice(ctx, "Text size", "accessibility.text_size", sizes),
        switch(ctx, "High contrast", "accessibility.high_contrast"),
        switch(ctx, "Screen reader", "accessibility.screen_reader"),
        switch(ctx, "Sticky keys", "accessibility.sticky_keys"),
        switch(ctx, "Large pointer", "accessibility.large_pointer"),
        switch(ctx, "Visual alerts", "accessibility.visual_alerts"),
    )


def privacy(ctx: Context) -> tuple[w.Widget, ...]:
    """Privacy."""
    minutes = {0: "At once", 1: "1 minute", 5: "5 minutes", 30: "30 minutes"}
    return (
        *group(
            switch(ctx, "Location services", "privacy.location"),
            switch(ctx, "Camera access", "privacy.camera"),
            switch(ctx, "Microphone access", "privacy.microphone"),
        ),
        Caption("Screen lock"),
        *group(
            switch(ctx, "Automatic lock", "privacy.screen_lock"),
            choice(ctx, "Lock delay", "privacy.lock_minutes", minutes),
        ),
        Caption("Files"),
        *group(
            switch(ctx, "File history", "privacy.file_history"),
            switch(ctx, "Empty trash by itself", "privacy.empty_trash"),
        ),
    )


def about(ctx: Context) -> tuple[w.Widget, ...]:
    """What machine this is."""
    return group(
        fixed("Device name", value="desk"),
        fixed("Memory", value="16 GB"),
        fixed("Processor", value="8 cores"),
        fixed("Disk", value="512 GB"),
        fixed("System", value="Linux 64-bit"),
    )


PAGES: dict[str, tuple[str, str, Page]] = {
    "wifi": ("Wi-Fi", "wifi", wifi), "network": ("Network", "network", network),
    "bluetooth": ("Bluetooth", "bluetooth", bluetooth), "appearance": ("Appearance", "palette", appearance),
    "notifications": ("Notifications", "bell", notifications), "sound": ("Sound", "volume", sound),
    "power": ("Power", "battery", power), "display": ("Displays", "screen", display),
    "mouse": ("Mouse", "mouse", mouse),
    "keyboard": ("Keyboard", "keyboard", keyboard), "datetime": ("Date & Time", "clock", datetime),
    "users": ("Users", "people", users), "accessibility": ("Accessibility", "accessibility", accessibility),
    "privacy": ("Privacy", "privacy", privacy), "about": ("About", "info", about),
}  # fmt: skip
"""Title, icon and content of each page."""


def pane(ctx: Context) -> Pane:
    """The shown page beside the list of pages."""
    title, _, content = PAGES.get(ctx.window.page, PAGES["wifi"])
    side = tuple(
        Item(name, Open(f"settings/{key}"), icon=icon, selected=key == ctx.window.page)
        for key, (name, icon, _) in ctx.shuffled(list(PAGES.items()), "settings")
    )
    return Pane(f"Settings - {title}", (w.Space(7), *content(ctx), w.Space(8)), side=side, ground="bar")


APP = DesktopApp("settings", "Settings", pane, (372, 246), page="wifi", single=True)
