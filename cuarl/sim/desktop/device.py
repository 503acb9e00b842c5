"""``step(world, action) -> world``: what mouse and keyboard do. Pure; ``Rejected`` says why nothing can happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuarl.sim.desktop import widgets as d
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.apps.files.move import throw_away, transfer
from cuarl.sim.desktop.apps.files.pane import TRASH
from cuarl.sim.desktop.filesystem import find
from cuarl.sim.desktop.keyboard import press, type_text
from cuarl.sim.desktop.lines import position_in
from cuarl.sim.desktop.paint import entry_left
from cuarl.sim.desktop.panel import desk_menu
from cuarl.sim.desktop.pointing import Hit, hit_test, region_at, scroll_by
from cuarl.sim.desktop.reduce import apply, write
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.view import DESK, MENU, MODAL
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.device.rejected import Rejected
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Do, Focus, Show
from cuarl.sim.kit.marks import slider_track
from cuarl.sim.kit.style import font_px, text_width
from cuarl.types import Action, Click, Drag, Key, Move, Scroll, TypeText, held_keys

__all__ = ["ACTIONS", "Rejected", "step"]

ACTIONS = frozenset({"click", "move", "drag", "scroll", "type", "key", "wait", "answer", "finish"})
"""Kinds of actions that a desktop carries out."""
NOTCH = 40.0
"""Units that one notch of the wheel scrolls."""
SHORT = 3
"""A drag of fewer pixels is a click."""


def step(world: DesktopWorld, action: Action) -> DesktopWorld:
    """Carry an action out. Raises ``Rejected``."""
    if action.kind not in ACTIONS:
        raise Rejected(f"a desktop has no {action.kind}")
    if held_keys(action):
        raise Rejected(f"this desktop can't hold {'+'.join(held_keys(action))} during a {action.kind}")
    run = HANDLERS.get(type(action))
    if world.ui.tip and run is not None:
        world = world.with_ui(tip="")
    return run(world, action) if run else world


def _click(world: DesktopWorld, action: Click) -> DesktopWorld:
    _inside(world, action.x, action.y)
    world = world.with_ui(pointer=(action.x, action.y))
    for count in range(1, action.count + 1):
        world = PRESSES[action.button](world, action.x, action.y, count)
    return world


def _reached(world: DesktopWorld, hit: Hit) -> tuple[DesktopWorld, bool]:
    """The world after a press at a thing, before the thing itself reacts, and whether it may.

    An open menu closes and takes presses beside it; a window comes to the top; under a box nothing reacts.
    """
    if world.ui.menu is not None and hit.owner != MENU:
        return world.with_ui(menu=None), False
    key = hit.owner.removesuffix(MODAL)
    window = world.window(key)
    if window is None:
        return world, True
    world = windows.focus(world, key)
    return world, window.dialog is None or hit.owner.endswith(MODAL) or isinstance(hit.widget, d.TitleBar)


def press_left(world: DesktopWorld, x: int, y: int, count: int = 1) -> DesktopWorld:
    """One press of the left button, the ``count``-th at this place."""
    hit = hit_test(world, x, y)
    world, may = _reached(world, hit)
    control = hit.widget
    if not may:
        return world
    if hit.owner == MENU:
        world = world.with_ui(menu=None) if isinstance(control, d.MenuEntry) and control.enabled else world
    if hit.owner == DESK and control is None:
        return world.with_ui(picked="")
    if isinstance(control, d.Entry | d.TextLine | d.Sheet) and (isinstance(control, d.Entry) or control.name):
        return _into_text(world, hit, control, x, count)
    if isinstance(control, w.Slider):
        return slide(world, hit, x)
    if isinstance(control, d.ScrollBar):
        return _scroll_bar(world, hit, y)
    if not isinstance(control, w.Control) or not control.enabled:
        return world
    if count == 2 and isinstance(control, d.Clickable) and control.on_double is not None:
        return apply(world, control.on_double)
    if isinstance(control, d.Clickable) and control.on_double is not None and count > 2:
        return world
    return apply(world, control.on_tap)


def press_right(world: DesktopWorld, x: int, y: int, count: int = 1) -> DesktopWorld:
    """One press of the right button: a menu of what is there. Files become the selected ones."""
    hit = hit_test(world, x, y)
    world, may = _reached(world, hit)
    if not may:
        return world
    control = hit.widget
    if control is None:
        return apply(world, Show(desk_menu())) if hit.owner == DESK else world
    if isinstance(control, d.Item) and control.path and isinstance(control.on_tap, Do):
        world = apply(world, control.on_tap)
    return apply(world, control.on_long)


def press_middle(world: DesktopWorld, x: int, y: int, count: int = 1) -> DesktopWorld:
    """One press of the middle button: closes windows from the panel, pastes text."""
    hit = hit_test(world, x, y)
    world, may = _reached(world, hit)
    control = hit.widget
    if not may or control is None:
        return world
    if isinstance(control, d.TextLine | d.Sheet) and control.name:
        text = world.state.clipboard.text
        return type_text(_into_text(world, hit, control, x, 1), text) if text else world
    return apply(world, control.on_middle) if isinstance(control, d.Clickable) else world


PRESSES: dict[str, Callable[[DesktopWorld, int, int, int], DesktopWorld]] = {
    "left": press_left,
    "right": press_right,
    "middle": press_middle,
}


def _into_text(
    world: DesktopWorld, hit: Hit, control: d.Entry | d.TextLine | d.Sheet, x: int, count: int
) -> DesktopWorld:
    """Put the caret where the pointer is; a double click selects the word, a triple click the line."""
    world = apply(world, Focus(control.name if isinstance(control, d.Entry) else ""))
    window = world.focused
    if window is None:
        return world
    content = window.box(control.name)
    at = _position(world, hit, x, content)
    chosen = {1: content.at, 2: content.word_at}.get(count, content.line_at)(at)
    return world.with_window(window.put(control.name, chosen))


def _position(world: DesktopWorld, hit: Hit, x: int, content: TextBox) -> int:
    """The position in a text under a column of pixels."""
    across = (x - hit.box[0]) / world.screen.scale
    match hit.widget:
        case d.TextLine() as line:
            return position_in(line, across)
        case d.Entry() as entry:
            px = font_px(world.style, 11.0)
            room = (across - entry_left(entry)) * world.screen.scale
            return next(
                (i for i in range(len(content.text)) if text_width(content.text[: i + 1], px) > room), len(content.text)
            )
    return len(content.text)


def slide(world: DesktopWorld, hit: Hit, x: int) -> DesktopWorld:
    """Set a slider to the value under a column of pixels."""
    slider = hit.widget
    if not isinstance(slider, w.Slider) or not slider.enabled:
        return world
    return write(world, slider.path, slider_value(world, slider, (hit.box[0], hit.box[2]), x))


def slider_value(world: DesktopWorld, slider: w.Slider, span: tuple[int, int], x: int) -> int:
    """The value at pixel column ``x`` of a slider that fills the columns of ``span``."""
    scale = world.screen.scale
    left, right = slider_track((span[1] - span[0]) / scale, bool(slider.icon))
    share = ((x - span[0]) / scale - left) / (right - left)
    return slider.low + round(min(1.0, max(0.0, share)) * (slider.high - slider.low))


def _scroll_bar(world: DesktopWorld, hit: Hit, y: int) -> DesktopWorld:
    """Bring the middle of a scroll bar's handle to a row of pixels."""
    bar = hit.widget
    region = next((r for r in hit.layout.scene.regions if isinstance(bar, d.ScrollBar) and r.id == bar.region), None)
    if region is None or not isinstance(bar, d.ScrollBar):
        return world
    room = max(1, hit.box[3] - hit.box[1] - bar.length)
    share = min(1.0, max(0.0, (y - hit.box[1] - bar.length / 2) / room))
    return scroll_by(world, region, share * region.reach - region.offset)


def _move(world: DesktopWorld, action: Move) -> DesktopWorld:
    """Rest the pointer somewhere: buttons without a text say their names."""
    _inside(world, action.x, action.y)
    control = hit_test(world, action.x, action.y).widget
    tip = ""
    if isinstance(control, w.IconButton | d.WindowButton | d.Task) or (
        isinstance(control, d.PanelButton) and not control.text
    ):
        tip = control.label
    return world.with_ui(pointer=(action.x, action.y), tip=tip)


def _drag(world: DesktopWorld, action: Drag) -> DesktopWorld:
    (x, y), (x2, y2) = action.path[0], action.path[-1]
    _inside(world, x, y)
    x2, y2 = min(x2, world.screen.width_px - 1), min(y2, world.screen.height_px - 1)
    if abs(x2 - x) < SHORT and abs(y2 - y) < SHORT:
        return press_left(world.with_ui(pointer=(x, y)), x, y)
    hit = hit_test(world, x, y)
    world, may = _reached(world.with_ui(pointer=(x2, y2)), hit)
    window = world.window(hit.owner.removesuffix(MODAL))
    scale = world.screen.scale
    dx, dy = (x2 - x) / scale, (y2 - y) / scale
    if window is not None and windows.on_grip(window, x / scale, y / scale):
        return windows.resize(world, window, dx, dy)
    if window is not None and isinstance(hit.widget, d.TitleBar):
        return windows.move(world, window, dx, dy)
    return _drag_control(world, hit, (x, y), (x2, y2)) if may else world


def _drag_control(world: DesktopWorld, hit: Hit, start: tuple[int, int], end: tuple[int, int]) -> DesktopWorld:
    """Drag what lies in a window or on the desktop: a handle, a selection, a file."""
    match hit.widget:
        case w.Slider():
            return slide(world, hit, end[0])
        case d.ScrollBar():
            return _scroll_bar(world, hit, end[1])
        case d.TextLine(name=name) | d.Entry(name=name) if name:
            return _select(world, hit, name, start, end)
        case (d.Item() | d.DeskIcon()) as item if item.path and not _is_place(item):
            return _drop(world, item.path, end)
    return world


def _is_place(item: d.Item | d.DeskIcon) -> bool:
    """Whether it is a place of a sidebar rather than a file."""
    return not isinstance(item, d.DeskIcon) and not isinstance(item.on_tap, Do)


def _select(world: DesktopWorld, hit: Hit, name: str, start: tuple[int, int], end: tuple[int, int]) -> DesktopWorld:
    """Select text from one point to another."""
    control = hit.widget
    assert isinstance(control, d.Entry | d.TextLine)
    world = _into_text(world, hit, control, start[0], 1)
    window, last = world.focused, hit_test(world, *end)
    if window is None:
        return world
    content = window.box(name)
    target = last if isinstance(last.widget, d.Entry | d.TextLine) and last.widget.name == name else hit
    return world.with_window(window.put(name, content.at(_position(world, target, end[0], content), extend=True)))


def _drop(world: DesktopWorld, path: str, end: tuple[int, int]) -> DesktopWorld:
    """Let a dragged file go over a folder, a place, a window of Files, the trash or the desktop."""
    target = _folder_at(world, end)
    if target is None or target == path:
        return world
    if target == TRASH:
        return throw_away(world, "", path)
    found = find(world.state.files, target)
    return transfer(world, path, target, moving=True) if found is not None and found.folder else world


def _folder_at(world: DesktopWorld, point: tuple[int, int]) -> str | None:
    """The folder that something dropped at a point goes into; None if it goes nowhere."""
    onto = hit_test(world, *point)
    window = world.window(onto.owner)
    match onto.widget:
        case d.DeskIcon(label="Home"):
            return ""
        case (d.Item(folder=True) | d.DeskIcon()) as item if isinstance(item, d.Item) or item.path:
            return item.path
    if window is not None and window.app == "files":
        return window.page
    return "Desktop" if onto.owner == DESK else None


def _scroll(world: DesktopWorld, action: Scroll) -> DesktopWorld:
    screen = world.screen
    x = screen.width_px // 2 if action.x is None else action.x
    y = screen.height_px // 2 if action.y is None else action.y
    _inside(world, x, y)
    units = action.amount * NOTCH if action.unit == "notch" else action.amount / screen.scale
    region = region_at(world, x, y)
    if region is None or action.direction in ("left", "right"):
        return world
    return scroll_by(world, region, units if action.direction == "down" else -units)


def _type(world: DesktopWorld, action: TypeText) -> DesktopWorld:
    world = type_text(world.with_ui(menu=None) if world.ui.menu else world, action.text)
    return press(world, ("Return",)) if action.submit else world


def _key(world: DesktopWorld, action: Key) -> DesktopWorld:
    for _ in range(action.count):
        world = press(world, action.keys)
    return world


def _inside(world: DesktopWorld, x: int, y: int) -> None:
    width, height = world.screen.width_px, world.screen.height_px
    if not (0 <= x < width and 0 <= y < height):
        raise Rejected(f"({x}, {y}) is outside of the screen of {width} by {height} pixels")


HANDLERS: dict[type, Callable[[DesktopWorld, Any], DesktopWorld]] = {
    Click: _click,
    Move: _move,
    Drag: _drag,
    Scroll: _scroll,
    TypeText: _type,
    Key: _key,
}
