"""The actions of Anthropic's computer tool, and how they and ours are turned into each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from cuarl.agent.formats.arguments import Arguments
from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import CallError, unknown, word_of
from cuarl.agent.formats.gestures import BUTTON_KEYS, DIRECTIONS, Direction, dragged, pressed, scrolled, usual_ms
from cuarl.agent.formats.points import to_grid
from cuarl.errors import AgentError
from cuarl.types import (
    Action,
    Button,
    Click,
    Drag,
    Held,
    Key,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    Swipe,
    TypeText,
    Wait,
    held_keys,
)

NOTCH_PX = 100
"""Pixels that a finger slides for one notch of a wheel."""
_MOUSE: dict[str, tuple[Literal["left", "right", "middle"], Literal[1, 2, 3]]] = {
    "left_click": ("left", 1), "double_click": ("left", 2), "triple_click": ("left", 3),
    "right_click": ("right", 1), "middle_click": ("middle", 1),
}  # fmt: skip


def read_action(
    call: Mapping[str, Any], kind: DeviceKind, screen: Size, grid: Size, *, strict: bool, warnings: list[str]
) -> Action:
    """The action that the tool is called with. Raises ``CallError``."""
    word = word_of(call, "action")
    read = _WORDS[kind].get(word)
    if read is None:
        raise unknown(word, elsewhere=any(word in words for words in _WORDS.values()))
    given = Arguments(call, screen, strict=strict, warnings=warnings, grid=grid, held=("text",))
    action = read(given, word, kind)
    given.finish()
    return action


def _click(a: Arguments, word: str, kind: DeviceKind) -> Action:
    button, count = _MOUSE[word]
    x, y = a.point("coordinate")
    return Click(x=x, y=y, button=button, count=count, held=_held(a, kind))


def _move(a: Arguments, word: str, kind: DeviceKind) -> Action:
    x, y = a.point("coordinate")
    return Move(x=x, y=y, held=_held(a, kind))


def _held(a: Arguments, kind: DeviceKind) -> Held:
    """Keys held meanwhile. A phone holds none, so that they are left over there, which is refused by name."""
    return a.held("text", other="key") if kind == "desktop" else ()


def _mouse(a: Arguments, word: str, kind: DeviceKind) -> Action:
    x, y = a.point("coordinate") if a.has("coordinate") else (None, None)
    return MouseDown(x=x, y=y) if word == "left_mouse_down" else MouseUp(x=x, y=y)


def _drag(a: Arguments, word: str, kind: DeviceKind) -> Action:
    return dragged(kind, (a.point("start_coordinate"), a.point("coordinate")), holds=True, held=_held(a, kind))


def _scroll(a: Arguments, word: str, kind: DeviceKind) -> Action:
    at = a.point("coordinate") if a.has("coordinate") else None
    direction = cast(Direction, a.choice("scroll_direction", DIRECTIONS))
    notches = a.pixels("scroll_amount")
    if notches < 0:
        raise CallError("bad_argument", "scroll_amount must not be negative")
    if kind == "phone":
        return scrolled(kind, a.screen, at, direction, notches * NOTCH_PX)
    x, y = at or (None, None)
    return Scroll(x=x, y=y, direction=direction, amount=notches, unit="notch", held=_held(a, kind))


def _type(a: Arguments, word: str, kind: DeviceKind) -> Action:
    text = a.text("text")
    return TypeText(text=text.removesuffix("\n"), submit=text.endswith("\n"))


def _key(a: Arguments, word: str, kind: DeviceKind) -> Action:
    """A chord as xdotool writes it, its keys joined by plus signs."""
    keys = tuple(a.text("text").split("+"))
    if not all(keys):
        raise CallError("bad_argument", "text must name keys joined by +")
    return pressed(kind, keys, a.presses(documented=True))


def _wait(a: Arguments, word: str, kind: DeviceKind) -> Action:
    return Wait(seconds=a.seconds("duration", most=60.0))


def _look(a: Arguments, word: str, kind: DeviceKind) -> Action:
    """A picture follows every action, so nothing is to be done for one."""
    return Wait(seconds=0)


_Read = Callable[[Arguments, str, DeviceKind], Action]
_BOTH: dict[str, _Read] = {
    "left_click": _click,
    "left_click_drag": _drag,
    "scroll": _scroll,
    "type": _type,
    "key": _key,
    "wait": _wait,
    "screenshot": _look,
}
_WORDS: dict[DeviceKind, dict[str, _Read]] = {
    "phone": _BOTH,
    "desktop": _BOTH
    | dict.fromkeys(_MOUSE, _click)
    | {"mouse_move": _move, "left_mouse_down": _mouse, "left_mouse_up": _mouse},
}
WORDS: dict[DeviceKind, tuple[str, ...]] = {kind: tuple(words) for kind, words in _WORDS.items()}


def write_action(action: Action, kind: DeviceKind, screen: Size, grid: Size) -> dict[str, Any]:
    """What the tool is called with for ``action``. Raises ``AgentError`` if it has no word for it."""

    def point(x: int, y: int) -> list[int]:
        return list(to_grid(x, y, screen, grid))

    call, held = None, held_keys(action)
    if not held or (kind == "desktop" and not any("+" in key for key in held)):
        call = _write_shared(action, point) or (_write_phone if kind == "phone" else _write_desktop)(action, point)
        call = call | {"text": "+".join(held)} if call and held else call
    if call is None:
        raise AgentError(f"Anthropic's computer tool has no word for {action!r} on a {kind}")
    return call


_Point = Callable[[int, int], list[int]]


def _write_shared(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case Click(x=x, y=y, button="left", count=1):
            return {"action": "left_click", "coordinate": point(x, y)}
        case TypeText(text=text, submit=submit):
            if text.endswith("\n") and not submit:
                raise AgentError("a final line break can't be typed without Enter: it means Enter")
            return {"action": "type", "text": text + "\n" * submit}
        case Wait(seconds=seconds):
            return {"action": "wait", "duration": int(seconds) if seconds == int(seconds) else seconds}
    return None


def _write_phone(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case LongPress(x=x, y=y, duration_ms=duration) if duration == usual_ms(LongPress):
            return {"action": "left_click_drag", "start_coordinate": point(x, y), "coordinate": point(x, y)}
        case Swipe(x=x, y=y, x2=x2, y2=y2) if action.duration_ms == usual_ms(Swipe) and point(x, y) != point(x2, y2):
            return {"action": "left_click_drag", "start_coordinate": point(x, y), "coordinate": point(x2, y2)}
        case Key(keys=keys) if isinstance(pressed("phone", keys), Key):
            return _chord(keys, action.count)
        case Button(name=name) if name in BUTTON_KEYS:
            return _chord((name,))
    return None


def _write_desktop(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case Click(x=x, y=y, button=button, count=count):
            word = next((w for w, pressed_ in _MOUSE.items() if pressed_ == (button, count)), None)
            return {"action": word, "coordinate": point(x, y)} if word else None
        case Move(x=x, y=y):
            return {"action": "mouse_move", "coordinate": point(x, y)}
        case Drag(path=path, duration_ms=duration) if duration == usual_ms(Drag) and len(path) == 2:
            return {"action": "left_click_drag", "start_coordinate": point(*path[0]), "coordinate": point(*path[1])}
        case Scroll(x=x, y=y, direction=direction, amount=amount, unit="notch"):
            where = {"coordinate": point(x, y)} if x is not None and y is not None else {}
            return {"action": "scroll"} | where | {"scroll_direction": direction, "scroll_amount": amount}
        case MouseDown(button="left") | MouseUp(button="left"):
            where = {"coordinate": point(action.x, action.y)} if action.x is not None and action.y is not None else {}
            return {"action": "left_mouse_down" if isinstance(action, MouseDown) else "left_mouse_up"} | where
        case Key(keys=keys):
            return _chord(keys, action.count)
    return None


def _chord(keys: tuple[str, ...], count: int = 1) -> dict[str, Any] | None:
    if any("+" in key for key in keys):
        return None
    return {"action": "key", "text": "+".join(keys)} | ({"repeat": count} if count > 1 else {})
