"""Lines of a task's ``plan``: what can't be told from the checks, said in the words on the screen.

Each line is a mapping with one of these keys::

    open: files/Documents        show a place: an app, or APP/PAGE (folder, page of settings, address, text file) click:
    Save                  click what is labelled so  (role: button | row | menuitem … to be exact) double_click:
    notes.txt      twice right_click: notes.txt       with the other button, which opens its menu type: Zoe, into: Name
    make a field say Zoe; without ``into``, type where the focus is  (submit: true presses Enter) key: ctrl+s
    press keys together run: ls Documents            type a command into a terminal drag: notes.txt, to: Music   drag
    one thing onto another set: sound.volume, value: 30     make a state path have a value answer: 320
    tell the user something wait: 1                      wait some seconds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cuarl.errors import TaskError
from cuarl.sim.desktop import widgets as d
from cuarl.sim.desktop.elements import centre, usable
from cuarl.sim.desktop.report import state_mapping
from cuarl.sim.desktop.route import click_item, is_at, leads_to, scroll_to
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.scene import Placed
from cuarl.tasks.check import evaluate
from cuarl.tasks.task import Check
from cuarl.types import Action, Answer, Click, Drag, Finish, Key, TypeText, Wait

Toward = Callable[[DesktopWorld, Check], Action | None]
Line = Mapping[str, Any]
KEYS = ("open", "click", "double_click", "right_click", "type", "key", "run", "drag", "set", "answer", "wait")


def run(world: DesktopWorld, line: Line, toward: Toward) -> tuple[Action | None, bool]:
    """The next action of a line, and whether carrying it out completes the line; no action if it is complete already.

    Raises TaskError for a line that says nothing known.
    """
    key = next((k for k in KEYS if k in line), None)
    if key is None:
        raise TaskError(f"a line of the plan has none of {', '.join(KEYS)}", where=f"plan: {dict(line)}")
    value = line[key]
    match key:
        case "open":
            return _open(world, str(value))
        case "run":
            here = is_at(world, "terminal")
            return (TypeText(text=str(value), submit=True), True) if here else _open(world, "terminal")
        case "set":
            check = Check(path=str(value), value=line.get("value"))
            done = evaluate(check, state_mapping(world)).passed
            return (None, True) if done else (toward(world, check) or stuck(str(value)), False)
        case "type":
            return _type(world, str(value), str(line.get("into", "")), submit=bool(line.get("submit")))
        case "key":
            return Key(keys=tuple(str(value).split("+"))), True
        case "answer":
            return Answer(text=str(value)), True
        case "wait":
            return Wait(seconds=float(value)), True
    return _mouse(world, key, str(value), line)


def _open(world: DesktopWorld, place: str) -> tuple[Action | None, bool]:
    if is_at(world, place):
        return None, True
    return leads_to(world, place) or stuck(place), False


def _mouse(world: DesktopWorld, key: str, label: str, line: Line) -> tuple[Action, bool]:
    role = str(line.get("role", ""))
    item = find(world, label, role)
    if item is None:
        top = world.focused
        found = scroll_to(world, top, "body", lambda widget: _named(widget, label, role)) if top else None
        return found or stuck(label), False
    if key == "drag":
        goal = find(world, str(line["to"]), str(line.get("to_role", "")))
        if goal is None:
            return stuck(str(line["to"])), False
        return Drag(path=(centre(item), centre(goal))), True
    return click_item(
        item, count=2 if key == "double_click" else 1, button="right" if key == "right_click" else "left"
    ), True


def find(world: DesktopWorld, label: str, role: str = "") -> Placed | None:
    """The visible control of a label; the last painted one if there are several."""
    found = [item for item in usable(world) if _named(item.widget, label, role)]
    return found[-1] if found else None


def _named(widget: w.Widget, label: str, role: str) -> bool:
    return isinstance(widget, w.Control) and widget.label == label and role in ("", widget.role)


def _type(world: DesktopWorld, text: str, into: str, *, submit: bool) -> tuple[Action | None, bool]:
    """Type where the focus is, or fill the field of a label: focus it, select what it says, type over it."""
    top = world.focused
    if not into or top is None:
        return TypeText(text=text, submit=submit), True
    item = next((i for i in usable(world) if isinstance(i.widget, d.Entry) and i.widget.label == into), None)
    if item is None:
        return scroll_to(world, top, "body", lambda widget: _named(widget, into, "field")) or stuck(into), False
    field = item.widget
    assert isinstance(field, d.Entry)
    if field.content.text == text and not submit:
        return None, True
    if top.focus != field.name:
        return Click(x=centre(item)[0], y=centre(item)[1]), False
    if field.content.text and field.content.selected != field.content.text:
        return Key(keys=("ctrl", "a")), False
    return TypeText(text=text, submit=submit), True


def stuck(what: str) -> Finish:
    """Giving up."""
    return Finish(success=False, message=f"no way to {what!r}")
