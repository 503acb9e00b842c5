"""How a visible control is used so that a check holds.

Tapped, slid to a value, typed into, or opened for its dialog.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Copy, Effect, dialog_of, flat, writes
from cuarl.sim.kit.scene import Placed
from cuarl.sim.phone import rules
from cuarl.sim.phone.device import slider_value
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.report import state_mapping
from cuarl.sim.phone.world import World
from cuarl.tasks.check import evaluate
from cuarl.tasks.task import Check
from cuarl.types import Action, Click, Key, TypeText


def holds(world: World, check: Check) -> bool:
    """Whether a check holds in a world."""
    if check.path.startswith("ui.form."):
        return evaluate(check.model_copy(update={"path": "x"}), {"x": world.get(check.path)}).passed
    return evaluate(check, state_mapping(world)).passed


def targets(world: World, check: Check) -> tuple[str, ...]:
    """State paths whose change can make an unmet check hold: its own, or for apps the wanted fields of the app."""
    if check.path != "apps" or check.op not in ("has", "lacks") or not isinstance(check.value, dict):
        return (check.path,)
    wanted = dict(check.value)
    names = {k: v for k, v in wanted.items() if k in ("key", "package", "name")}
    app = next((a for a in world.state.apps if all(getattr(a, k) == v for k, v in names.items())), None)
    if app is None:
        return (check.path,)
    return tuple(f"apps.{app.key}.{field}" for field in wanted if field not in names)


def outcomes(effect: Effect | None) -> Iterator[Effect]:
    """What using a control may do: its own effect, or each option of the dialog that it opens, at any depth."""
    box = dialog_of(effect)
    if box is None:
        if effect is not None:
            yield effect
        return
    for option in (*box.options, *box.buttons):
        yield from outcomes(option.effect)


def price(world: World, effect: Effect, check: Check) -> int | None:
    """How many leaves of the state an effect changes if it makes the check hold; None if it doesn't."""
    after = apply(world, effect)
    if after is world or not holds(after, check):
        return None
    return changed_leaves(world.state, after.state)


def changed_leaves(a: Any, b: Any) -> int:
    """Leaves that differ between two trees; shared subtrees cost nothing."""
    if a is b:
        return 0
    if hasattr(a, "__dataclass_fields__") and type(a) is type(b):
        return sum(changed_leaves(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__)
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) == len(b):
            return sum(changed_leaves(x, y) for x, y in zip(a, b, strict=True))
        return sum(x not in b for x in a) + sum(y not in a for y in b)
    return int(a != b)


def best_price(world: World, control: w.Control, check: Check, paths: tuple[str, ...]) -> int | None:
    """The cheapest way in which a control makes the check hold; None if it can't."""
    if not control.enabled:
        return None
    if isinstance(control, w.Slider):
        return 1 if control.path in paths and any(_slides(world, control, check)) else None
    if isinstance(control, w.Field):
        return 1 if control.path in paths and wanted_text(check) is not None else None
    prices = [price(world, e, check) for e in outcomes(control.on_tap) if touches(e, paths)]
    return min((p for p in prices if p is not None), default=None)


def touches(effect: Effect, paths: tuple[str, ...]) -> bool:
    """Whether an effect writes one of the paths, or a list or record around it."""
    return any(p == path or path.startswith(f"{p}.") for p, _ in writes(effect) for path in paths)


def copies(effect: Effect | None, paths: tuple[str, ...]) -> Copy | None:
    """The part of a control's outcomes that copies a form field to one of the paths."""
    for outcome in outcomes(effect):
        for part in flat(outcome):
            if isinstance(part, Copy) and part.target in paths:
                return part
    return None


def wanted_text(check: Check) -> str | None:
    """The text that makes a check on a text hold."""
    if check.op in ("equals", "contains", "icontains") and isinstance(check.value, str):
        return check.value
    return "" if check.op == "empty" else None


def use(world: World, item: Placed, check: Check) -> Action:
    """The action that uses a visible control towards the check."""
    control = item.widget
    if isinstance(control, w.Slider):
        values = list(_slides(world, control, check, item))
        return Click(x=values[len(values) // 2], y=slider_y(item))
    if isinstance(control, w.Field):
        return typing(world, item, wanted_text(check) or "")
    return tap(item)


def slider_y(item: Placed) -> int:
    """A height on a slider's track that can be seen, pixels."""
    y0, y1 = item.visible[1], item.visible[3]
    return (y0 + 2 * y1) // 3


def _slides(world: World, slider: w.Slider, check: Check, item: Placed | None = None) -> Iterator[int]:
    """Columns of pixels at which a tap on the slider makes the check hold."""
    x0, x1 = (item.box[0], item.box[2]) if item else (0, world.profile.width_px)
    last = None
    passes = False
    for x in range(x0, x1):
        value = slider_value(world, slider, (x0, x1), x)
        if value != last:
            last, passes = value, holds(rules.put(world, slider.path, value), check)
        if passes:
            yield x


def typing(world: World, item: Placed, text: str) -> Action:
    """The next action towards ``text`` in a field: focus it, empty it, type the rest."""
    field = item.widget
    assert isinstance(field, w.Field)
    now = str(world.get(field.path))
    if world.ui.focus != field.path:
        return tap(item)
    if text.startswith(now) and text != now:
        return TypeText(text=text[len(now) :])
    return Key(keys=("BackSpace",))


def tap(item: Placed) -> Click:
    """A tap in the middle of what can be seen."""
    x0, y0, x1, y1 = item.visible
    return Click(x=(x0 + x1) // 2, y=(y0 + y1) // 2)
