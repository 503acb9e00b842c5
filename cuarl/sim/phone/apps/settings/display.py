"""Display, wallpaper and style."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Put
from cuarl.sim.kit.pictures import WALLPAPERS
from cuarl.sim.phone.registry import Builder, Context, Screen
from cuarl.sim.phone.rows import choice, link, radio, slider, switch

TIMEOUTS = {
    15000: "15 seconds", 30000: "30 seconds", 60000: "1 minute", 120000: "2 minutes", 300000: "5 minutes",
    600000: "10 minutes", 1800000: "30 minutes",
}  # fmt: skip


def display(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            link(ctx, "Brightness", "settings/brightness", "Level and adaptive", "brightness"),
            switch(ctx, "Dark theme", "display.dark_theme", icon="dark"),
            link(ctx, "Night Light", "settings/night_light", "Warmer colours", "night"),
            choice(ctx, "Screen timeout", "display.timeout_ms", TIMEOUTS, "timeout"),
            switch(ctx, "Auto-rotate", "display.auto_rotate", icon="rotate"),
            choice(ctx, "Font size", "display.font_size", {v: v for v in ("Small", "Default", "Large")}, "font"),
            link(ctx, "Lock screen", "settings/lock_display", "Always on, wake", "lock"),
            switch(ctx, "Smooth display", "display.smooth_display", "Up to 90 Hz", "gesture"),
            choice(ctx, "Colours", "display.colours", {v: v for v in ("Natural", "Boosted", "Adaptive")}, "palette"),
            switch(ctx, "Screen saver", "display.screensaver", icon="photo"),
        )
    )
    return Screen("Display", rows)


def brightness(ctx: Context) -> Screen:
    """Brightness."""
    level = ctx.state.display.brightness
    return Screen(
        "Brightness",
        (
            slider(ctx, "Brightness level", "display.brightness", 1, 255, "brightness"),
            w.Row("Level", subtitle=f"{round(100 * (level - 1) / 254)}%"),
            switch(ctx, "Adaptive brightness", "display.auto_brightness", "Adjusts to light around"),
        ),
    )


def night_light(ctx: Context) -> Screen:
    """Night Light."""
    return Screen(
        "Night Light",
        (
            switch(ctx, "Use Night Light", "display.night_light"),
            slider(ctx, "Intensity", "display.night_light_strength"),
            w.Paragraph("Night Light tints the screen amber, which may help to fall asleep."),
        ),
    )


def lock_display(ctx: Context) -> Screen:
    """What the lock screen shows, and what wakes it."""
    return Screen(
        "Lock screen",
        ctx.shuffled(
            (
                switch(ctx, "Always show time", "display.always_on"),
                switch(ctx, "Lift to wake", "display.lift_to_wake"),
                switch(ctx, "Tap to wake", "display.tap_to_wake"),
                switch(ctx, "Show device info", "display.show_lock_info"),
            )
        ),
    )


def style(ctx: Context) -> Screen:
    """Wallpaper and style."""
    return Screen(
        "Wallpaper & style",
        (
            w.HBox((w.Picture("Wallpaper preview", None, subject=ctx.world.wallpaper, height=84),), pad=50),
            link(ctx, "Change wallpaper", "settings/wallpaper", "", "wallpaper"),
            switch(ctx, "Dark theme", "display.dark_theme", icon="dark"),
            switch(ctx, "Notification dots", "notifications.badges", icon="bell"),
            switch(ctx, "Add icons of new apps", "launcher.add_new_icons", icon="apps"),
            switch(ctx, "Lock home layout", "launcher.lock_layout", icon="lock"),
        ),
    )


def wallpaper(ctx: Context) -> Screen:
    """The wallpapers to choose from."""
    names = [n.capitalize() for n in ctx.shuffled(WALLPAPERS)]
    now = ctx.get("display.wallpaper")
    tiles = tuple(
        w.Picture(n, Put("display.wallpaper", n), subject=n.lower(), height=70, badge=n, selected=n == now)
        for n in names
    )
    return Screen("Wallpapers", (radio(ctx, "As delivered", "display.wallpaper", "Seed"), w.Grid(tiles, 2, 70, gap=6)))


PAGES: dict[str, Builder] = {
    "display": display,
    "brightness": brightness,
    "night_light": night_light,
    "lock_display": lock_display,
    "style": style,
    "wallpaper": wallpaper,
}
