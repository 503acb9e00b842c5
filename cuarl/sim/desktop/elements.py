"""The interactive elements of a desktop that can be seen and reached, with labels exactly as drawn."""

from __future__ import annotations

from collections.abc import Iterator

from cuarl.sim.desktop import widgets as d
from cuarl.sim.desktop.pointing import hit_test
from cuarl.sim.desktop.view import MENU, NOTICE, layout
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.device.element import VISIBLE_SHARE, Element
from cuarl.sim.device.memory import remember
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, dialog_of, opens, writes
from cuarl.sim.kit.scene import Placed


@remember(64)
def elements(world: DesktopWorld) -> tuple[Element, ...]:
    """What can be seen and used, in painting order."""
    found, seen = [], dict[str, int]()
    for item in usable(world):
        control = item.widget
        assert isinstance(control, w.Control)
        name = f"{control.role}:{control.label}"
        seen[name] = seen.get(name, 0) + 1
        found.append(_element(item, control, name if seen[name] == 1 else f"{name}#{seen[name]}"))
    return tuple(found)


def usable(world: DesktopWorld) -> Iterator[Placed]:
    """The placed controls that a click would reach, in painting order; with a menu open only its entries."""
    scene = layout(world)
    for item, owner in zip(scene.scene.items, scene.owners, strict=True):
        control = item.widget
        if not isinstance(control, w.Control) or not control.role or not _reacts(control) or not _shown(item):
            continue
        if world.ui.menu is not None and owner not in (MENU, NOTICE):
            continue
        window = world.window(owner)
        if window is not None and window.dialog is not None and not isinstance(control, d.TitleBar):
            continue
        if hit_test(world, *centre(item)).widget is control:
            yield item


def centre(item: Placed) -> tuple[int, int]:
    """Middle of the visible part, pixels."""
    x0, y0, x1, y1 = item.visible
    return (x0 + x1) // 2, (y0 + y1) // 2


def _reacts(control: w.Control) -> bool:
    doubles = isinstance(control, d.Clickable) and control.on_double is not None
    return doubles or control.on_tap is not None or isinstance(control, w.Slider | d.Entry)


def _shown(item: Placed) -> bool:
    x0, y0, x1, y1 = item.visible
    return x1 > x0 and (y1 - y0) >= VISIBLE_SHARE * (item.box[3] - item.box[1])


def _element(item: Placed, control: w.Control, name: str) -> Element:
    path, value, checked = _written(control.on_tap), "", getattr(control, "checked", None)
    match control:
        case w.Slider():
            path, value = control.path, str(control.value)
        case d.Entry():
            value = control.content.text
        case d.Setting():
            value = control.value
        case d.Item() | d.DeskIcon():
            value = control.path
    effect = control.on_tap
    if isinstance(control, d.Clickable) and control.on_double is not None:
        effect = control.on_double
    return Element(
        id=name,
        role=control.role,
        label=control.label,
        box=item.visible,
        checked=checked,
        value=value,
        writes=path,
        opens=opens(effect) or "",
        enabled=control.enabled,
        effect=effect,
        app=getattr(control, "app", ""),
    )


def _written(effect: Effect | None) -> str:
    """The state path that an effect writes, at once or in the menu that it opens."""
    direct = writes(effect)
    if direct:
        return direct[0][0]
    box = dialog_of(effect)
    inner = [found for option in (box.options if box else ()) for found in writes(option.effect)]
    return inner[0][0] if inner else ""
