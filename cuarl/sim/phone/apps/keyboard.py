"""GBox Keyboard: an app without an icon, whose settings are opened from those of the system."""

from __future__ import annotations

from cuarl.sim.phone.apps.settings.system import LANGUAGES
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import link, switch, value_row

APP = AppModule("keyboard", home="keyboard/settings")


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """How typing works."""
    rows = (
        link(ctx, "Corrections", "keyboard/corrections", "Suggestions, spelling", "check"),
        link(ctx, "Feel and sound", "keyboard/feel", "Keypress, gestures", "vibrate"),
        value_row("Language", LANGUAGES[ctx.state.system.language], icon="language"),
        link(ctx, "About this app", "settings/app:keyboard", "Storage, permissions", "info"),
    )
    return Screen("GBox Keyboard", rows)


@APP.page("corrections")
def corrections(ctx: Context) -> Screen:
    """Help with words."""
    rows = (
        switch(ctx, "Auto-correction", "system.autocorrect"),
        switch(ctx, "Show suggestions", "system.suggestions"),
        switch(ctx, "Spell checker", "system.spell_checker"),
    )
    return Screen("Corrections", ctx.shuffled(rows))


@APP.page("feel")
def feel(ctx: Context) -> Screen:
    """What a key does besides writing."""
    rows = (
        switch(ctx, "Sound on keypress", "system.key_sounds"),
        switch(ctx, "Vibrate on keypress", "sound.touch_vibration"),
        switch(ctx, "Glide typing", "system.glide_typing", "Slide from key to key"),
    )
    return Screen("Feel and sound", ctx.shuffled(rows))
