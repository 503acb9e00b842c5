"""Ready-made rows for pages: a switch bound to a path, a link, a choice, a slider, a text field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Dismiss, Effect, Focus, Open, Option, Put, Seq, Show, Toggle
from cuarl.sim.phone.registry import Context


def switch(ctx: Context, label: str, path: str, subtitle: str = "", icon: str = "", confirm: str = "") -> w.Row:
    """A row whose switch flips the boolean at ``path``; ``confirm`` asks before switching it on."""
    on = bool(ctx.get(path))
    effect: Effect = Toggle(path)
    if confirm and not on:
        effect = Show(confirmation(f"{label}?", confirm, Put(path, True)))
    return w.Row(label, effect, subtitle=hint(ctx, subtitle), icon=icon, trailing="switch", checked=on)


def link(
    ctx: Context, label: str, page: str, subtitle: str = "", icon: str = "", *, path: str = "", keep: bool = False
) -> w.Row:
    """A row that opens a page; with ``path`` it has a switch of its own at the end.

    ``keep`` never hides the subtitle.
    """
    shown = subtitle if keep else hint(ctx, subtitle)
    if not path:
        return w.Row(label, Open(page), subtitle=shown, icon=icon)
    own = w.Switch(label, Toggle(path), checked=bool(ctx.get(path)))
    return w.Row(label, Open(page), subtitle=shown, icon=icon, trailing="split", switch=own)


def choice(ctx: Context, label: str, path: str, options: Mapping[Any, str], icon: str = "", title: str = "") -> w.Row:
    """A row that shows the chosen option and opens a dialog of all of them."""
    now = ctx.get(path)
    lines = tuple(Option(text, Put(path, value), value == now) for value, text in options.items())
    dialog = Dialog(title or label, options=lines, buttons=(Option("Cancel", Dismiss()),))
    return w.Row(label, Show(dialog), subtitle=options.get(now, str(now)), icon=icon)


def radio(ctx: Context, label: str, path: str, value: Any, subtitle: str = "") -> w.Row:
    """A row that sets ``path`` to ``value`` and is marked while it is."""
    on = ctx.get(path) == value
    return w.Row(label, Put(path, value), subtitle=subtitle, trailing="radio", checked=on)


def check(ctx: Context, label: str, path: str, subtitle: str = "") -> w.Row:
    """A row with a check box for the boolean at ``path``."""
    return w.Row(label, Toggle(path), subtitle=subtitle, trailing="check", checked=bool(ctx.get(path)))


def slider(ctx: Context, label: str, path: str, low: int = 0, high: int = 100, icon: str = "") -> w.Slider:
    """A slider for the integer at ``path``."""
    return w.Slider(label, path=path, value=int(ctx.get(path)), low=low, high=high, icon=icon)


def text_field(
    ctx: Context, label: str, path: str, *, submit: Effect | None = None, search: bool = False, lines: int = 1
) -> w.Field:
    """A text field for the text at ``path``, with a cross that empties it."""
    text, focused = str(ctx.get(path)), ctx.ui.focus == path
    empty = Seq((Put(path, ""), Focus(path)))
    return w.Field(
        label,
        Focus(path),
        path=path,
        text=text,
        focused=focused,
        search=search,
        submit=submit,
        lines=lines,
        clear=empty,
    )


def confirmation(title: str, text: str, effect: Effect, button: str = "OK") -> Dialog:
    """A question with a Cancel button and one that goes on."""
    return Dialog(title, text, buttons=(Option("Cancel", Dismiss()), Option(button, effect)))


def value_row(label: str, value: str, effect: Effect | None = None, icon: str = "") -> w.Row:
    """A row that states something."""
    return w.Row(label, effect, subtitle=value, icon=icon)


def hint(ctx: Context, subtitle: str) -> str:
    """An optional subtitle: not every device shows them."""
    return subtitle if ctx.world.look.show_hint else ""
