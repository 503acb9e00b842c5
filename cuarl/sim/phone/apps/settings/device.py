"""Battery, storage, accessibility."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Do, Show
from cuarl.sim.phone.registry import Builder, Context, Screen
from cuarl.sim.phone.rows import choice, confirmation, link, switch, value_row


def battery(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            link(ctx, "Battery Saver", "settings/battery_saver", "On" if ctx.state.battery.saver else "Off", "saver"),
            switch(ctx, "Battery percentage", "battery.show_percentage", "In the status bar", "battery"),
            switch(ctx, "Adaptive Battery", "battery.adaptive", icon="brightness"),
            switch(ctx, "Optimised charging", "battery.optimised_charging", icon="clock"),
            switch(ctx, "Battery Share", "battery.share", icon="share"),
        )
    )
    return Screen("Battery", (w.Display(f"{ctx.state.battery.level}%", 26), *rows))


def battery_saver(ctx: Context) -> Screen:
    """Battery Saver."""
    return Screen(
        "Battery Saver",
        (
            switch(ctx, "Use Battery Saver", "battery.saver"),
            choice(ctx, "Set a schedule", "battery.saver_schedule", {v: v for v in ("None", "At 10%", "At 20%")}),
            w.Paragraph("Battery Saver limits background use and some effects."),
        ),
    )


def storage(ctx: Context) -> Screen:
    """Storage."""
    used = sum(a.storage_mb for a in ctx.state.apps if a.installed) // 1024 + 12
    clean = confirmation("Free up space?", "Temporary files are removed.", Do("settings.clean"), "Clean")
    return Screen(
        "Storage",
        (
            w.Display(f"{used} GB of 128 GB", 17, height=38),
            link(ctx, "Apps", "settings/apps", "All installed apps", "apps"),
            value_row("System", "12 GB", icon="system"),
            value_row("Pictures", f"{len(ctx.state.media.photos)} items", icon="photo"),
            switch(ctx, "Storage manager", "system.storage_manager", "Removes old backups", "storage"),
            w.Row("Free up space", Show(clean), icon="trash"),
        ),
    )


def accessibility(ctx: Context) -> Screen:
    """The category's own page."""
    rows = ctx.shuffled(
        (
            link(ctx, "Screen reader", "settings/screen_reader", "Speaks what is shown", "volume"),
            link(ctx, "Text and display", "settings/text_display", "Bold, contrast", "font"),
            link(ctx, "Colour and motion", "settings/colour_motion", "Correction, inversion", "palette"),
            switch(ctx, "Magnification", "accessibility.magnification", icon="zoom"),
            switch(ctx, "Select to Speak", "accessibility.select_to_speak", icon="message"),
            link(ctx, "Hearing", "settings/hearing", "Captions, mono", "headset"),
            switch(ctx, "Power ends call", "accessibility.power_ends_call", icon="power"),
        )
    )
    return Screen("Accessibility", rows)


def screen_reader(ctx: Context) -> Screen:
    """The screen reader."""
    return Screen(
        "Screen reader",
        (
            switch(ctx, "Use screen reader", "accessibility.screen_reader", confirm="The phone will speak aloud."),
            w.Paragraph("It reads what you touch."),
        ),
    )


def text_display(ctx: Context) -> Screen:
    """Text and display."""
    return Screen(
        "Text and display",
        ctx.shuffled(
            (
                switch(ctx, "Bold text", "accessibility.bold_text"),
                switch(ctx, "High contrast text", "accessibility.high_contrast"),
                switch(ctx, "Large pointer", "accessibility.large_pointer"),
                switch(ctx, "Extra dim", "accessibility.extra_dim"),
            )
        ),
    )


def colour_motion(ctx: Context) -> Screen:
    """Colour and motion."""
    return Screen(
        "Colour and motion",
        ctx.shuffled(
            (
                switch(ctx, "Colour correction", "accessibility.colour_correction"),
                switch(ctx, "Colour inversion", "accessibility.colour_inversion"),
                switch(ctx, "Remove animations", "accessibility.reduce_motion"),
            )
        ),
    )


def hearing(ctx: Context) -> Screen:
    """Hearing."""
    return Screen(
        "Hearing",
        ctx.shuffled(
            (
                switch(ctx, "Captions", "accessibility.captions", icon="captions"),
                switch(ctx, "Mono audio", "accessibility.mono_audio", icon="headset"),
                switch(ctx, "Flash alerts", "accessibility.flash_alerts", icon="flashlight"),
                switch(ctx, "Hearing aids", "accessibility.hearing_aids", icon="volume"),
            )
        ),
    )


PAGES: dict[str, Builder] = {
    "battery": battery, "battery_saver": battery_saver, "storage": storage, "accessibility": accessibility,
    "screen_reader": screen_reader, "text_display": text_display, "colour_motion": colour_motion, "hearing": hearing,
}  # fmt: skip
