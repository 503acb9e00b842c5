"""Lines of a task's ``plan``: what the planner can't work out from the checks, said in the words on the screen.

Each line is a mapping with one of these keys::

    open: settings/wifi          go to a page, app/KEY, layer/NAME (drawer, recents, shade, quick) or home tap: Save
    tap what is labelled so; scrolls to it if needed  (role: icon | button | row … to be exact) long_press: Chrome
    press and hold it type: Zoe, into: Name        make the field labelled Name say Zoe  (submit: true presses Enter as
    well) set: display.brightness, value: 200     make a state path have a value drag: Maps, to: Music        drag one
    thing onto another swipe: left                  slide the finger across the middle of the screen  (on: Rain soon,
    across what is labelled so) button: back                 press a device button answer: 83%                  tell the
    user something wait: 1                      wait some seconds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cuarl.errors import TaskError
from cuarl.sim.device.element import Element
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.scene import Placed
from cuarl.sim.phone.elements import usable
from cuarl.sim.phone.operate import holds, tap, typing
from cuarl.sim.phone.route import is_at, leads_to, scroll_until
from cuarl.sim.phone.world import World
from cuarl.tasks.task import Check
from cuarl.types import Action, Answer, Button, Click, Drag, Finish, LongPress, Swipe, TypeText, Wait

Toward = Callable[[World, Check], Action | None]
Line = Mapping[str, Any]
KEYS = ("open", "tap", "long_press", "type", "set", "drag", "swipe", "button", "answer", "wait")


def run(world: World, line: Line, toward: Toward) -> tuple[Action | None, bool]:
    """The next action of a line, and whether carrying it out completes the line; no action if it is complete already.

    Raises TaskError for a line that says nothing known.
    """
    key = next((k for k in KEYS if k in line), None)
    if key is None:
        raise TaskError(f"a line of the plan has none of {', '.join(KEYS)}", where=f"plan: {dict(line)}")
    value = line[key]
    match key:
        case "open":
            return (None, True) if is_at(world, str(value)) else (_way(leads_to(world, str(value)), str(value)), False)
        case "set":
            check = Check(path=str(value), value=line.get("value"))
            return (None, True) if holds(world, check) else (toward(world, check) or _stuck(str(value)), False)
        case "type":
            return _type(world, str(value), str(line.get("into", "")), submit=bool(line.get("submit")))
        case "tap" | "long_press" | "drag":
            return _touch(world, key, line)
        case "swipe" if "on" in line:
            return _touch(world, "on", line)
        case _:
            return _gesture(world, key, value), True


def _gesture(world: World, key: str, value: Any) -> Action:
    match key:
        case "swipe":
            return swipe(world, str(value))
        case "button":
            return Button(name=value)
        case "answer":
            return Answer(text=str(value))
    return Wait(seconds=float(value))


def swipe(world: World, direction: str, middle: tuple[int, int] | None = None) -> Swipe:
    """Slide the finger in a direction across ``middle`` (pixels; None: the middle of the screen)."""
    width, height = world.profile.width_px, world.profile.height_px
    x, y = middle or (width // 2, height // 2)
    dx, dy = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}[direction]
    return Swipe(
        x=x - dx * width * 3 // 10, y=y - dy * height // 4, x2=x + dx * width * 3 // 10, y2=y + dy * height // 4
    )


def _touch(world: World, key: str, line: Line) -> tuple[Action, bool]:
    label, role = str(line[key]), str(line.get("role", ""))
    item = find(world, label, role)
    if item is None:
        found = scroll_until(world, lambda spot: _named(spot.widget, label, role))
        return (found, False) if found else (_stuck(label), False)
    centre = tap(item)
    if key == "tap":
        return centre, True
    if key == "long_press":
        return LongPress(x=centre.x, y=centre.y), True
    if key == "on":
        return swipe(world, str(line["swipe"]), (centre.x, centre.y)), True
    goal = find(world, str(line["to"]), "")
    if goal is None:
        return _stuck(str(line["to"])), False
    end = tap(goal)
    return Drag(path=((centre.x, centre.y), (end.x, end.y))), True


def find(world: World, label: str, role: str = "") -> Placed | None:
    """The visible control of a label; the last painted one if there are several."""
    found = [item for item in usable(world) if _named(item.widget, label, role)]
    return found[-1] if found else None


def _named(widget: w.Widget, label: str, role: str) -> bool:
    if not isinstance(widget, w.Control) or (role and widget.role != role):
        return False
    return widget.label == label


def _type(world: World, text: str, into: str, *, submit: bool) -> tuple[Action | None, bool]:
    item = next((i for i in usable(world) if _is_field(i.widget, into, world)), None)
    if item is None:
        found = scroll_until(world, lambda spot: _is_field(spot.widget, into, world))
        return (found, False) if found else (_stuck(into or "text field"), False)
    field = item.widget
    assert isinstance(field, w.Field)
    if str(world.get(field.path)) == text:
        return (TypeText(text="", submit=True), True) if submit and world.ui.focus == field.path else (None, True)
    action = typing(world, item, text)
    if isinstance(action, TypeText) and submit:
        return TypeText(text=action.text, submit=True), True
    return action, False


def _is_field(widget: w.Widget, into: str, world: World) -> bool:
    if not isinstance(widget, w.Field):
        return False
    return into in (widget.label, widget.path) or (not into and world.ui.focus in ("", widget.path))


def _way(step: object, target: str) -> Action:
    if step is None:
        return _stuck(target)
    return Click(x=step.centre[0], y=step.centre[1]) if isinstance(step, Element) else step  # type: ignore[return-value]


def _stuck(what: str) -> Finish:
    return Finish(success=False, message=f"no way to {what!r}")
