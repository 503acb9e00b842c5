"""Parts of forms that several apps share: how a form opens and ends, and pickers for a time and a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Back, Effect, Focus, Open, Put, Seq, Toast
from cuarl.sim.phone.registry import Context, Screen

T = TypeVar("T")

HOUR = 60
DAY = 24 * HOUR


def start(page: str, values: Mapping[str, Any]) -> Seq:
    """Open a form with ``values`` (by form name) filled in, so that nothing is left from the last time."""
    return Seq((*(Put(f"ui.form.{name}", value) for name, value in values.items()), Open(page)))


def finish(*effects: Effect, toast: str = "") -> Seq:
    """Carry ``effects`` out and leave the form, even with the keyboard open."""
    told = (Toast(toast),) if toast else ()
    return Seq((*effects, Focus(""), Back(), *told))


def save_button(label: str, effect: Effect, *, enabled: bool = True) -> w.IconButton:
    """The tick at the top right of a form."""
    return w.IconButton(label, effect, icon="check", enabled=enabled)


def at(items: Sequence[T], arg: str) -> T | None:
    """The item whose position is a page's argument; None if it is gone (or was never there)."""
    return items[int(arg)] if arg.isdigit() and int(arg) < len(items) else None


def without(items: Sequence[T], index: int) -> tuple[T, ...]:
    """``items`` less the one at a position."""
    return (*items[:index], *items[index + 1 :])


def gone(title: str) -> Screen:
    """What a page shows when its item was deleted meanwhile."""
    return Screen(title, empty("It was deleted."))


def empty(text: str) -> tuple[w.Widget, ...]:
    """What a list shows that has nothing in it."""
    return (w.Space(40), w.Paragraph(text, align="centre"))


def time_text(ctx: Context, minutes: int) -> str:
    """A time of day as this device writes it: 07:30 or 7:30 AM. ``minutes`` counts from midnight."""
    hour, minute = divmod(minutes % DAY, HOUR)
    if ctx.state.system.use_24h:
        return f"{hour:02d}:{minute:02d}"
    return f"{(hour - 1) % 12 + 1}:{minute:02d} {'AM' if hour < 12 else 'PM'}"


def time_picker(ctx: Context, name: str) -> tuple[w.Widget, ...]:
    """A chip for each hour and for every fifth minute, and steps of one minute. Writes minutes to the form ``name``."""
    path = f"ui.form.{name}"
    now = int(ctx.form(name, 8 * HOUR))
    hour, minute = divmod(now, HOUR)

    def chip(label: str, minutes: int, chosen: bool) -> w.Chip:
        return w.Chip(label, Put(path, minutes), selected=chosen)

    hours = tuple(chip(_hour_text(ctx, h), h * HOUR + minute, h == hour) for h in range(24))
    fives = tuple(chip(f":{m:02d}", hour * HOUR + m, m == minute) for m in range(0, HOUR, 5))
    steps = (
        w.Button("1 min earlier", Put(path, (now - 1) % DAY), look="text"),
        w.Button("1 min later", Put(path, (now + 1) % DAY), look="text"),
    )
    columns = 6 if ctx.state.system.use_24h else 4
    return (
        w.Grid(hours, columns, 22, gap=1),
        w.Divider(),
        w.Grid(fives, 6, 22, gap=1),
        w.HBox(steps, pad=8),
    )


def keypad(ctx: Context, keys: tuple[w.Widget, ...], columns: int, *, taken: float, gap: float = 1) -> w.Grid:
    """Keys as high as the screen allows if everything else on it takes ``taken`` units."""
    rows = -(-len(keys) // columns)
    height = min(42.0, (ctx.world.profile.height - taken) / rows - gap)
    return w.Grid(keys, columns, height, gap=gap, pad=12)


def _hour_text(ctx: Context, hour: int) -> str:
    if ctx.state.system.use_24h:
        return f"{hour:02d}"
    return f"{(hour - 1) % 12 + 1} {'AM' if hour < 12 else 'PM'}"
