"""The visible interactive elements of a screen, with labels exactly as drawn."""

from __future__ import annotations

from collections.abc import Iterator

from cuarl.sim.device.element import VISIBLE_SHARE, Element
from cuarl.sim.device.memory import remember
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, dialog_of, opens, writes
from cuarl.sim.kit.scene import Box, Placed
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import World


@remember(64)
def elements(world: World) -> tuple[Element, ...]:
    """What can be seen and used, from top to bottom of the painting order."""
    found, seen = [], dict[str, int]()
    for item in usable(world):
        control = item.widget
        assert isinstance(control, w.Control)
        name = f"{control.role}:{control.label}"
        seen[name] = seen.get(name, 0) + 1
        found.append(_element(item, control, name if seen[name] == 1 else f"{name}#{seen[name]}"))
    return tuple(found)


def usable(world: World) -> Iterator[Placed]:
    """The placed controls that can be seen and reached, in painting order."""
    scene = view(world)
    items = scene.items[scene.modal_from :]
    covers = [(i, item.visible) for i, item in enumerate(items) if isinstance(item.widget, w.Bar | w.Fab)]
    for index, item in enumerate(items):
        control = item.widget
        if not isinstance(control, w.Control) or (control.on_tap is None and not isinstance(control, w.Slider)):
            continue
        if _shown(item) and not _covered(item, index, covers):
            yield item


def _shown(item: Placed) -> bool:
    x0, y0, x1, y1 = item.visible
    return x1 > x0 and (y1 - y0) >= VISIBLE_SHARE * (item.box[3] - item.box[1])


def _covered(item: Placed, index: int, covers: list[tuple[int, Box]]) -> bool:
    x0, y0, x1, y1 = item.visible
    cx, cy = (x0 + x1) // 2, (y0 + y1) // 2
    return any(i > index and a <= cx < c and b <= cy < d for i, (a, b, c, d) in covers)


def _element(item: Placed, widget: w.Control, name: str) -> Element:
    path, value = _written(widget.on_tap), ""
    match widget:
        case w.Slider():
            path, value = widget.path, str(widget.value)
        case w.Field():
            path, value = widget.path, widget.text
        case w.Row():
            value = widget.value or widget.subtitle
    checked: bool | None = getattr(widget, "checked", None)
    if isinstance(widget, w.Tab | w.Chip):
        checked = widget.selected
    return Element(
        id=name,
        role=widget.role,
        label=widget.label,
        box=item.visible,
        checked=checked,
        value=value,
        writes=path,
        opens=opens(widget.on_tap) or "",
        enabled=widget.enabled,
        effect=widget.on_tap,
        app=getattr(widget, "app", ""),
    )


def _written(effect: Effect | None) -> str:
    direct = writes(effect)
    if direct:
        return direct[0][0]
    dialog = dialog_of(effect)
    if dialog is None:
        return ""
    for option in (*dialog.options, *dialog.buttons):
        inner = writes(option.effect)
        if inner:
            return inner[0][0]
    return ""
