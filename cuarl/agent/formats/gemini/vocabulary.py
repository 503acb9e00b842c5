"""The functions of Gemini's computer use, and how they and our actions are turned into each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from cuarl.agent.formats.arguments import Arguments
from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import CallError, unknown
from cuarl.agent.formats.gestures import BUTTON_KEYS, DIRECTIONS, dragged, plain, pressed, scrolled, usual_ms
from cuarl.agent.formats.points import RELATIVE, to_grid
from cuarl.errors import AgentError
from cuarl.types import (
    Action,
    Button,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

_MOUSE: dict[str, tuple[Literal["left", "right", "middle"], Literal[1, 2, 3]]] = {
    "click": ("left", 1), "double_click": ("left", 2), "triple_click": ("left", 3), "right_click": ("right", 1),
    "middle_click": ("middle", 1),
}  # fmt: skip
_SIDE_REMARKS = ("intent", "safety_decision")
LAST_SAID = 1
"""Steps from the end of the scale to the largest coordinate: 999."""
LONG_PRESS_MS = 2000
"""What ``long_press`` takes where it is not said."""
WAIT_S = 1.0
"""What ``wait`` takes where it is not said."""


def read_action(
    name: str, arguments: Mapping[str, Any], kind: DeviceKind, screen: Size, *, strict: bool, warnings: list[str]
) -> Action:
    """The action that a function is called for. Raises ``CallError``."""
    read = _WORDS[kind].get(name)
    if read is None:
        raise unknown(name, elsewhere=any(name in words for words in _WORDS.values()))
    given = Arguments(arguments, screen, strict=strict, warnings=warnings, spent=_SIDE_REMARKS)
    action = read(given, name, kind)
    given.finish()
    return action


def _click(a: Arguments, name: str, kind: DeviceKind) -> Action:
    button, count = _MOUSE[name]
    x, y = a.xy()
    return Click(x=x, y=y, button=button, count=count)


def _move(a: Arguments, name: str, kind: DeviceKind) -> Action:
    x, y = a.xy()
    return Move(x=x, y=y)


def _mouse(a: Arguments, name: str, kind: DeviceKind) -> Action:
    x, y = a.xy()
    return MouseDown(x=x, y=y) if name == "mouse_down" else MouseUp(x=x, y=y)


def _one_key(a: Arguments, name: str, kind: DeviceKind) -> Action:
    key = _named(a)
    return KeyDown(key=key) if name == "key_down" else KeyUp(key=key)


def _named(a: Arguments) -> str:
    key = a.text("key")
    if not key:
        raise CallError("bad_argument", "key names no key")
    return key


def _long_press(a: Arguments, name: str, kind: DeviceKind) -> Action:
    x, y = a.xy()
    return LongPress(x=x, y=y, **({"duration_ms": LONG_PRESS_MS} | a.duration_ms("seconds")))


def _drag(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return dragged(kind, (a.xy("start_x", "start_y"), a.xy("end_x", "end_y")))


def _scroll(a: Arguments, name: str, kind: DeviceKind) -> Action:
    at = a.xy() if a.has("x") or a.has("y") else None
    amount = a.pixels("magnitude_in_pixels") if a.has("magnitude_in_pixels") else None
    if amount is not None and amount < 0:
        raise CallError("bad_argument", "magnitude_in_pixels must not be negative")
    return scrolled(kind, a.screen, at, a.choice("direction", DIRECTIONS), amount)


def _type(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return TypeText(text=a.text("text"), submit=a.flag("press_enter"))


def _press(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return pressed(kind, (_named(a),), a.presses(documented=False))


def _hotkey(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return Key(keys=a.keys(), count=a.presses(documented=False))


def _back(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return Button(name="back")


def _open(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return OpenApp(name=a.text("app_name"))


def _wait(a: Arguments, name: str, kind: DeviceKind) -> Action:
    return Wait(seconds=a.seconds("seconds", most=60.0) if a.has("seconds") else WAIT_S)


def _look(a: Arguments, name: str, kind: DeviceKind) -> Action:
    """A picture follows every action, so nothing is to be done for one."""
    return Wait(seconds=0)


_Read = Callable[[Arguments, str, DeviceKind], Action]
_BOTH: dict[str, _Read] = {
    "click": _click,
    "drag_and_drop": _drag,
    "type": _type,
    "press_key": _press,
    "wait": _wait,
    "take_screenshot": _look,
}
_WORDS: dict[DeviceKind, dict[str, _Read]] = {
    "phone": _BOTH | {"long_press": _long_press, "go_back": _back, "open_app": _open},
    "desktop": _BOTH
    | dict.fromkeys(_MOUSE, _click)
    | {"move": _move, "scroll": _scroll, "hotkey": _hotkey}
    | dict.fromkeys(("mouse_down", "mouse_up"), _mouse)
    | dict.fromkeys(("key_down", "key_up"), _one_key),
}
WORDS: dict[DeviceKind, tuple[str, ...]] = {kind: tuple(words) for kind, words in _WORDS.items()}


def write_action(action: Action, kind: DeviceKind, screen: Size) -> tuple[str, dict[str, Any]]:
    """The function for ``action`` and its arguments. Raises ``AgentError`` if there is none."""

    def point(x: int, y: int, before: str = "") -> dict[str, int]:
        x, y = to_grid(x, y, screen, RELATIVE, last=LAST_SAID)
        return {f"{before}x": x, f"{before}y": y}

    call = None
    if plain(action):
        call = _write_shared(action, point) or (_write_phone if kind == "phone" else _write_desktop)(action, point)
    if call is None:
        raise AgentError(f"Gemini's computer use has no word for {action!r} on a {kind}")
    return call


_Point = Callable[..., dict[str, int]]
_Call = tuple[str, dict[str, Any]]


def _write_shared(action: Action, point: _Point) -> _Call | None:
    match action:
        case Click(x=x, y=y, button="left", count=1):
            return "click", point(x, y)
        case TypeText(text=text, submit=submit):
            return "type", {"text": text} | ({"press_enter": True} if submit else {})
        case Wait(seconds=seconds):
            return "wait", {"seconds": _number(seconds)}
    return None


def _write_phone(action: Action, point: _Point) -> _Call | None:
    match action:
        case LongPress(x=x, y=y, duration_ms=duration):
            return "long_press", point(x, y) | {"seconds": _number(duration / 1000)}
        case Swipe(x=x, y=y, x2=x2, y2=y2, duration_ms=duration) if duration == usual_ms(Swipe):
            return "drag_and_drop", point(x, y, "start_") | point(x2, y2, "end_")
        case Button(name="back"):
            return "go_back", {}
        case Button(name=name) if name in BUTTON_KEYS:
            return "press_key", {"key": name}
        case Key(keys=keys) if len(keys) == 1 and isinstance(pressed("phone", keys), Key):
            return "press_key", {"key": keys[0]}
        case OpenApp(name=name):
            return "open_app", {"app_name": name}
    return None


def _write_desktop(action: Action, point: _Point) -> _Call | None:
    match action:
        case Click(x=x, y=y, button=button, count=count):
            name = next((n for n, pressed_ in _MOUSE.items() if pressed_ == (button, count)), None)
            return (name, point(x, y)) if name else None
        case Move(x=x, y=y):
            return "move", point(x, y)
        case Drag(path=path, duration_ms=duration) if duration == usual_ms(Drag) and len(path) == 2:
            return "drag_and_drop", point(*path[0], "start_") | point(*path[1], "end_")
        case Scroll(x=x, y=y, direction=direction, amount=amount, unit="px"):
            where: dict[str, Any] = point(x, y) if x is not None and y is not None else {}
            return "scroll", where | {"direction": direction, "magnitude_in_pixels": amount}
        case MouseDown(x=int(x), y=int(y), button="left") | MouseUp(x=int(x), y=int(y), button="left"):
            return action.kind, point(x, y)
        case KeyDown(key=key) | KeyUp(key=key):
            return action.kind, {"key": key}
        case Key(keys=keys):
            return ("press_key", {"key": keys[0]}) if len(keys) == 1 else ("hotkey", {"keys": list(keys)})
    return None


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
