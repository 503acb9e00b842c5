"""BrowserGym's action strings (``mouse_click(12, 30)``, one call a line) as cuarl's actions, and back.

Only calls by coordinates, keyboard, history and message are read. Calls by element id (``click('12')``) name no place
on the picture, so they are refused. Names and arguments follow browsergym.core.action.functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from cuarl.env.browser.keys import UnknownKey, chord
from cuarl.types import (
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Record,
    Scroll,
    Swipe,
    TypeText,
    Wait,
    held_keys,
)


class UnmappedAction(ValueError):
    """An action that has no counterpart on the other side."""


def _scroll(delta_x: float, delta_y: float) -> list[Action]:
    found: list[Action] = []
    if round(delta_y):
        found.append(Scroll(direction="down" if delta_y > 0 else "up", amount=abs(round(delta_y))))
    if round(delta_x):
        found.append(Scroll(direction="right" if delta_x > 0 else "left", amount=abs(round(delta_x))))
    return found


def _at(x: float, y: float) -> dict[str, int]:
    return {"x": round(x), "y": round(y)}


_READ: Mapping[str, Callable[..., list[Action]]] = {
    "mouse_click": lambda x, y, button="left": [Click(**_at(x, y), button=button)],
    "mouse_dblclick": lambda x, y, button="left": [Click(**_at(x, y), button=button, count=2)],
    "mouse_move": lambda x, y: [Move(**_at(x, y))],
    "mouse_drag_and_drop": lambda from_x, from_y, to_x, to_y: [
        Drag(path=((round(from_x), round(from_y)), (round(to_x), round(to_y))))
    ],
    "scroll": _scroll,
    "scroll_at": lambda x, y, dx, dy: [one.model_copy(update=_at(x, y)) for one in _scroll(dx, dy)],
    "go_back": lambda: [Button(name="back")],
    "keyboard_type": lambda text: [TypeText(text=text)],
    "keyboard_insert_text": lambda text: [TypeText(text=text)],
    "keyboard_press": lambda key: [Key(keys=tuple(re.split(r"(?<=.)\+(?=.)", key)))],
    "mouse_down": lambda x, y, button="left": [MouseDown(**_at(x, y), button=button)],
    "mouse_up": lambda x, y, button="left": [MouseUp(**_at(x, y), button=button)],
    "keyboard_down": lambda key: [KeyDown(key=key)],
    "keyboard_up": lambda key: [KeyUp(key=key)],
    "noop": lambda wait_ms=1000: [Wait(seconds=wait_ms / 1000)],
    "send_msg_to_user": lambda text: [Answer(text=text)],
    "report_infeasible": lambda reason: [Finish(success=False, message=reason)],
}


def read(text: str) -> list[Action]:
    """Read calls in pixels of the screenshot. Raises UnmappedAction for anything but a known call of literals."""
    try:
        lines = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise UnmappedAction(f"{text!r} is not a list of calls") from error
    return [action for line in lines for action in _call(line)]


def _call(line: ast.stmt) -> list[Action]:
    shown = ast.unparse(line)
    if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Call) and isinstance(line.value.func, ast.Name)):
        raise UnmappedAction(f"{shown} is not a call")
    call, name = line.value, line.value.func.id
    if name not in _READ:
        raise UnmappedAction(f"{name} is not one of {', '.join(_READ)}: an element id names no place on the picture")
    try:
        given = [ast.literal_eval(value) for value in call.args]
        named = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        return _READ[name](*given, **named)
    except (TypeError, ValueError, AttributeError) as error:
        raise UnmappedAction(f"{shown} has arguments that {name} does not take") from error


def write(action: Record) -> str:
    """Write an action as calls, one a line. Raises UnmappedAction for one that BrowserGym has no call for."""
    try:
        held = list(chord(held_keys(action))) if isinstance(action, Click | Move | Drag | Scroll) else []
    except UnknownKey as error:
        raise UnmappedAction(str(error)) from error
    downs = [f"keyboard_down({name!r})" for name in held]
    return "\n".join([*downs, _written(action), *(f"keyboard_up({name!r})" for name in reversed(held))])


def _written(action: Record) -> str:
    match action:
        case Click(count=1 | 2 as count):
            name = "mouse_click" if count == 1 else "mouse_dblclick"
            return f"{name}({action.x}, {action.y}, button={action.button!r})"
        case Move():
            return f"mouse_move({action.x}, {action.y})"
        case Drag(path=((x, y), (x2, y2))) | Swipe(x=x, y=y, x2=x2, y2=y2):
            return f"mouse_drag_and_drop({x}, {y}, {x2}, {y2})"
        case LongPress():
            at = f"{action.x}, {action.y}"
            return f"mouse_down({at})\nnoop({action.duration_ms})\nmouse_up({at})"
        case Button(name="back"):
            return "go_back()"
        case Button(name="enter"):
            return "keyboard_press('Enter')"
        case Scroll(unit="px"):
            return _written_scroll(action)
        case TypeText():
            return f"keyboard_type({action.text!r})" + ("\nkeyboard_press('Enter')" if action.submit else "")
        case Key():
            try:
                return "\n".join([f"keyboard_press({'+'.join(chord(action.keys))!r})"] * action.count)
            except UnknownKey as error:
                raise UnmappedAction(str(error)) from error
        case MouseDown(x=int(x), y=int(y)) | MouseUp(x=int(x), y=int(y)):
            return f"{action.kind}({x}, {y}, button={action.button!r})"
        case KeyDown() | KeyUp():
            try:
                return f"keyboard_{'down' if isinstance(action, KeyDown) else 'up'}({chord((action.key,))[0]!r})"
            except UnknownKey as error:
                raise UnmappedAction(str(error)) from error
        case Wait():
            return f"noop({round(action.seconds * 1000)})"
        case Answer():
            return f"send_msg_to_user({action.text!r})"
        case Finish(success=False):
            return f"report_infeasible({action.message!r})"
    raise UnmappedAction(f"BrowserGym has no call for {action!r}")


def _written_scroll(action: Scroll) -> str:
    signed = action.amount if action.direction in ("down", "right") else -action.amount
    call = f"scroll(0, {signed})" if action.direction in ("up", "down") else f"scroll({signed}, 0)"
    placed = action.x is not None and action.y is not None
    return f"mouse_move({action.x}, {action.y})\n{call}" if placed else call
