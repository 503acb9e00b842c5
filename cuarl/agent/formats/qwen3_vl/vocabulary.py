"""The vocabularies: which words a device knows, and how they and our actions are turned into each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from cuarl.agent.formats.arguments import Arguments
from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import unknown, word_of
from cuarl.agent.formats.gestures import plain, usual_ms
from cuarl.agent.formats.points import RELATIVE, to_grid
from cuarl.errors import AgentError
from cuarl.types import (
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

_MOUSE: dict[str, tuple[Literal["left", "right", "middle"], Literal[1, 2, 3]]] = {
    "left_click": ("left", 1), "double_click": ("left", 2), "triple_click": ("left", 3),
    "right_click": ("right", 1), "middle_click": ("middle", 1),
}  # fmt: skip
DIRECTIONS = ("up", "down", "left", "right")
BUTTONS = {"Back": "back", "Home": "home", "Menu": "menu", "Enter": "enter", "Recents": "recents"}
_BUTTON_KEYS = ("power", "volume_up", "volume_down")
"""Buttons that the phone's vocabulary presses with ``key``."""


def read_action(
    arguments: Mapping[str, Any],
    kind: DeviceKind,
    screen: Size,
    *,
    strict: bool,
    warnings: list[str],
    grid: Size = RELATIVE,
) -> Action:
    """The action that ``arguments`` call for, coordinates in ``grid``. Raises ``CallError``."""
    word = word_of(arguments, "action")
    read = _WORDS[kind].get(word)
    if read is None:
        raise unknown(word, elsewhere=any(word in words for words in _WORDS.values()))
    given = Arguments(arguments, screen, strict=strict, warnings=warnings, grid=grid)
    action = read(given, word)
    given.finish()
    return action


def _click(a: Arguments, word: str) -> Action:
    button, count = _MOUSE.get(word, ("left", 1))
    x, y = a.point("coordinate")
    return Click(x=x, y=y, button=button, count=count)


def _long_press(a: Arguments, word: str) -> Action:
    x, y = a.point("coordinate")
    return LongPress(x=x, y=y, **a.duration_ms())


def _swipe(a: Arguments, word: str) -> Action:
    (x, y), (x2, y2) = a.point("coordinate"), a.point("coordinate2")
    return Swipe(x=x, y=y, x2=x2, y2=y2, **a.duration_ms())


def _drag(a: Arguments, word: str) -> Action:
    path = a.path("path") if a.has("path") else (a.point("coordinate"), a.point("coordinate2"))
    return Drag(path=path, **a.duration_ms())


def _move(a: Arguments, word: str) -> Action:
    x, y = a.point("coordinate")
    return Move(x=x, y=y)


def _scroll(a: Arguments, word: str) -> Action:
    """The family counts upwards: positive pixels show what is further up (or, sideways, further right)."""
    if a.has("scroll_direction") and not a.has("pixels"):
        return _other_scroll(a)
    pixels = a.pixels("pixels")
    ahead, behind = ("up", "down") if word == "scroll" else ("right", "left")
    direction = cast("Literal['up', 'down', 'left', 'right']", ahead if pixels > 0 else behind)
    x, y = a.point("coordinate") if a.has("coordinate") else (None, None)
    return Scroll(x=x, y=y, direction=direction, amount=abs(pixels))


def _other_scroll(a: Arguments) -> Scroll:
    """In words of another family, which counts notches of the wheel."""
    a.fault("scrolls by scroll_direction and scroll_amount instead of pixels")
    x, y = a.point("coordinate") if a.has("coordinate") else (None, None)
    direction = cast("Literal['up', 'down', 'left', 'right']", a.choice("scroll_direction", DIRECTIONS))
    return Scroll(x=x, y=y, direction=direction, amount=abs(a.pixels("scroll_amount")), unit="notch")


def _type(a: Arguments, word: str) -> Action:
    text = a.text("text")
    return TypeText(text=text.removesuffix("\n"), submit=text.endswith("\n"))


def _key(a: Arguments, word: str) -> Action:
    keys = a.keys()
    return Key(keys=keys)


def _phone_key(a: Arguments, word: str) -> Action:
    keys = a.keys()
    return Button(name=cast(Any, keys[0])) if len(keys) == 1 and keys[0] in _BUTTON_KEYS else Key(keys=keys)


def _button(a: Arguments, word: str) -> Action:
    return Button(name=cast(Any, BUTTONS[a.choice("button", tuple(BUTTONS))]))


def _open(a: Arguments, word: str) -> Action:
    return OpenApp(name=a.text("text"))


def _answer(a: Arguments, word: str) -> Action:
    return Answer(text=a.text("text"))


def _wait(a: Arguments, word: str) -> Action:
    return Wait(seconds=a.seconds("time", most=60.0))


def _terminate(a: Arguments, word: str) -> Action:
    status = a.choice("status", ("success", "failure"))
    return Finish(success=status == "success", message=a.text("text") if a.has("text") else "")


_Read = Callable[[Arguments, str], Action]
_BOTH: dict[str, _Read] = {"type": _type, "answer": _answer, "wait": _wait, "terminate": _terminate}
_WORDS: dict[DeviceKind, dict[str, _Read]] = {
    "phone": {
        "click": _click,
        "long_press": _long_press,
        "swipe": _swipe,
        "system_button": _button,
        "open": _open,
        "key": _phone_key,
        **_BOTH,
    },
    "desktop": {
        **dict.fromkeys(_MOUSE, _click),
        "mouse_move": _move,
        "left_click_drag": _drag,
        "scroll": _scroll,
        "hscroll": _scroll,
        "key": _key,
        **_BOTH,
    },
}
WORDS: dict[DeviceKind, tuple[str, ...]] = {kind: tuple(words) for kind, words in _WORDS.items()}


def write_action(action: Action, kind: DeviceKind, screen: Size, grid: Size = RELATIVE) -> dict[str, Any]:
    """The arguments of a call for ``action``. Raises ``AgentError`` if the vocabulary has no word for it."""

    def point(x: int, y: int) -> list[int]:
        return list(to_grid(x, y, screen, grid))

    written = None
    if plain(action):
        written = _write_shared(action) or (_write_phone if kind == "phone" else _write_desktop)(action, point)
    if written is None:
        raise AgentError(f"the {kind} vocabulary has no word for {action!r}")
    return written


_Point = Callable[[int, int], list[int]]


def _write_shared(action: Action) -> dict[str, Any] | None:
    match action:
        case TypeText(text=text, submit=submit):
            if text.endswith("\n") and not submit:
                raise AgentError("a final line break can't be typed without Enter: it means Enter")
            return {"action": "type", "text": text + "\n" * submit}
        case Answer(text=text):
            return {"action": "answer", "text": text}
        case Wait(seconds=seconds):
            return {"action": "wait", "time": _number(seconds)}
        case Key(keys=keys):
            return {"action": "key", "keys": list(keys)}
        case Finish(success=success, message=message):
            status = {"action": "terminate", "status": "success" if success else "failure"}
            return status | ({"text": message} if message else {})
    return None


def _write_phone(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case Click(x=x, y=y, button="left", count=1):
            return {"action": "click", "coordinate": point(x, y)}
        case LongPress(x=x, y=y):
            return {"action": "long_press", "coordinate": point(x, y)} | _time(action)
        case Swipe(x=x, y=y, x2=x2, y2=y2):
            ends = {"coordinate": point(x, y), "coordinate2": point(x2, y2)}
            return {"action": "swipe"} | ends | _time(action)
        case Button(name=name):
            if name in _BUTTON_KEYS:
                return {"action": "key", "keys": [name]}
            return {"action": "system_button", "button": name.capitalize()}
        case OpenApp(name=name):
            return {"action": "open", "text": name}
    return None


def _write_desktop(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case Click(x=x, y=y, button=button, count=count):
            word = next((w for w, pressed in _MOUSE.items() if pressed == (button, count)), None)
            return {"action": word, "coordinate": point(x, y)} if word else None
        case Move(x=x, y=y):
            return {"action": "mouse_move", "coordinate": point(x, y)}
        case Drag(path=path):
            points = [point(x, y) for x, y in path]
            two = {"coordinate": points[0], "coordinate2": points[1]}
            return {"action": "left_click_drag"} | (two if len(points) == 2 else {"path": points}) | _time(action)
        case Scroll(x=x, y=y, direction=direction, amount=amount, unit="px"):
            word = "scroll" if direction in ("up", "down") else "hscroll"
            where = {"coordinate": point(x, y)} if x is not None and y is not None else {}
            return {"action": word} | where | {"pixels": amount if direction in ("up", "right") else -amount}
    return None


def _time(action: LongPress | Swipe | Drag) -> dict[str, Any]:
    """``time`` in seconds, where it is not the usual one."""
    return {} if action.duration_ms == usual_ms(type(action)) else {"time": _number(action.duration_ms / 1000)}


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
