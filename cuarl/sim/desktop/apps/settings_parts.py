"""Ready-made lines for pages of settings, and the box around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cuarl.sim.desktop.registry import Context
from cuarl.sim.desktop.widgets import Level, Push, Setting
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Effect, Option, Put, Show, Toggle


def switch(ctx: Context, label: str, path: str) -> Setting:
    """A line whose switch flips the boolean at ``path``."""
    return Setting(label, Toggle(path), trailing="switch", checked=bool(ctx.get(path)))


def choice(ctx: Context, label: str, path: str, options: Mapping[Any, str]) -> Setting:
    """A line that shows the chosen option and opens a menu of all of them."""
    now = ctx.get(path)
    lines = tuple(Option(text, Put(path, value), value == now) for value, text in options.items())
    menu = Dialog(label, options=lines, kind="menu")
    return Setting(label, Show(menu), value=options.get(now, str(now)), trailing="menu")


def level(ctx: Context, label: str, path: str) -> Level:
    """A slider for the percentage at ``path``."""
    return Level(label, path=path, value=int(ctx.get(path)))


def fixed(label: str, effect: Effect | None = None, value: str = "") -> Setting:
    """A line that states something."""
    return Setting(label, effect, value=value)


def field_row(ctx: Context, label: str, path: str) -> tuple[w.Widget, ...]:
    """A text field for a new value of the text at ``path``, with a button that sets it."""
    text = ctx.window.box(path).text.strip()
    apply = Put(path, text)
    ready = bool(text) and text != ctx.get(path)
    row = (ctx.entry(f"New {label.lower()}", path, apply if ready else None), Push("Apply", apply, enabled=ready))
    return (w.Space(6), *group(fixed(label, value=str(ctx.get(path)))), w.HBox(row, (3, 1), height=27, pad=7))


def group(*rows: Setting | Level) -> tuple[w.Widget, ...]:
    """Lines in one box."""
    last = len(rows) - 1
    return tuple(replace(row, first=i == 0, last=i == last) for i, row in enumerate(rows))
