"""The actions of OpenAI's computer tool, and how they and ours are turned into each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from cuarl.agent.formats.arguments import Arguments
from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import CallError, unknown, word_of
from cuarl.agent.formats.gestures import BUTTON_KEYS, dragged, plain, pressed, scrolled, usual_ms
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
    Move,
    Scroll,
    Swipe,
    TypeText,
    Wait,
    held_keys,
)

WAIT_S = 2.0
"""What ``wait`` means: the tool gives no time."""
_BUTTONS: dict[str, Literal["left", "right", "middle"]] = {"left": "left", "right": "right", "wheel": "middle"}


def read_action(
    call: Mapping[str, Any], kind: DeviceKind, screen: Size, grid: Size, *, strict: bool, warnings: list[str]
) -> Action:
    """The action that the tool is called with. Raises ``CallError``."""
    word = word_of(call, "type")
    read = _WORDS[kind].get(word)
    if read is None:
        raise unknown(word, elsewhere=any(word in words for words in _WORDS.values()))
    given = Arguments(call, screen, strict=strict, warnings=warnings, grid=grid, spent=("type",), objects=True)
    action = read(given, kind)
    given.finish()
    return action


def _click(a: Arguments, kind: DeviceKind) -> Action:
    button = a.choice("button", tuple(_BUTTONS)) if a.has("button") else "left"
    if kind == "phone" and button != "left":
        raise CallError("unsupported_on_device", f"a finger has no {button} button")
    x, y = a.xy()
    return Click(x=x, y=y, button=_BUTTONS[button], held=_held(a, kind))


def _double(a: Arguments, kind: DeviceKind) -> Action:
    x, y = a.xy()
    return Click(x=x, y=y, count=2, held=_held(a, kind))


def _move(a: Arguments, kind: DeviceKind) -> Action:
    x, y = a.xy()
    return Move(x=x, y=y, held=_held(a, kind))


def _held(a: Arguments, kind: DeviceKind) -> Held:
    """Keys held meanwhile. A phone holds none, so that they are left over there, which is refused by name."""
    return a.held("keys") if kind == "desktop" else ()


def _drag(a: Arguments, kind: DeviceKind) -> Action:
    return dragged(kind, a.path("path"), holds=True, held=_held(a, kind))


def _scroll(a: Arguments, kind: DeviceKind) -> Action:
    """Positive is down and right."""
    across, down = (a.whole(n) if a.has(n) else 0 for n in ("scroll_x", "scroll_y"))
    if not across and not down:
        raise CallError("bad_argument", "scroll_x and scroll_y are both 0")
    if across and down:
        a.fault("scrolls in two directions at once; the longer one is meant")
    at = a.xy() if a.has("x") or a.has("y") else None
    held = _held(a, kind)
    if abs(down) >= abs(across):
        return scrolled(kind, a.screen, at, "down" if down > 0 else "up", abs(down), held)
    return scrolled(kind, a.screen, at, "right" if across > 0 else "left", abs(across), held)


def _type(a: Arguments, kind: DeviceKind) -> Action:
    text = a.text("text")
    return TypeText(text=text.removesuffix("\n"), submit=text.endswith("\n"))


def _keys(a: Arguments, kind: DeviceKind) -> Action:
    return pressed(kind, a.keys(), a.presses(documented=False))


def _wait(a: Arguments, kind: DeviceKind) -> Action:
    return Wait(seconds=WAIT_S)


def _look(a: Arguments, kind: DeviceKind) -> Action:
    """A picture follows every action, so nothing is to be done for one."""
    return Wait(seconds=0)


_Read = Callable[[Arguments, DeviceKind], Action]
_BOTH: dict[str, _Read] = {
    "click": _click,
    "drag": _drag,
    "scroll": _scroll,
    "type": _type,
    "keypress": _keys,
    "wait": _wait,
    "screenshot": _look,
}
_WORDS: dict[DeviceKind, dict[str, _Read]] = {
    "phone": _BOTH,
    "desktop": _BOTH | {"double_click": _double, "move": _move},
}
WORDS: dict[DeviceKind, tuple[str, ...]] = {kind: tuple(words) for kind, words in _WORDS.items()}


def write_action(action: Action, kind: DeviceKind, screen: Size, grid: Size) -> dict[str, Any]:
    """What the tool is called with for ``action``. Raises ``AgentError`` if it has no word for it."""

    def point(x: int, y: int) -> dict[str, int]:
        x, y = to_grid(x, y, screen, grid)
        return {"x": x, "y": y}

    call = None
    if plain(action) or (kind == "desktop" and held_keys(action)):
        call = _write_shared(action, point) or (_write_phone if kind == "phone" else _write_desktop)(action, point)
        call = call | {"keys": list(held_keys(action))} if call and held_keys(action) else call
    if call is None:
        raise AgentError(f"OpenAI's computer tool has no word for {action!r} on a {kind}")
    return call


_Point = Callable[[int, int], dict[str, int]]


def _write_shared(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case Click(x=x, y=y, button="left", count=1):
            return {"type": "click", "button": "left"} | point(x, y)
        case TypeText(text=text, submit=submit):
            if text.endswith("\n") and not submit:
                raise AgentError("a final line break can't be typed without Enter: it means Enter")
            return {"type": "type", "text": text + "\n" * submit}
        case Wait(seconds=seconds) if seconds in (0, WAIT_S):
            return {"type": "wait" if seconds else "screenshot"}
    return None


def _write_phone(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case LongPress(x=x, y=y, duration_ms=duration) if duration == usual_ms(LongPress):
            return {"type": "drag", "path": [point(x, y), point(x, y)]}
        case Swipe(x=x, y=y, x2=x2, y2=y2) if action.duration_ms == usual_ms(Swipe) and point(x, y) != point(x2, y2):
            return {"type": "drag", "path": [point(x, y), point(x2, y2)]}
        case Key(keys=keys) if isinstance(pressed("phone", keys), Key):
            return {"type": "keypress", "keys": list(keys)}
        case Button(name=name) if name in BUTTON_KEYS:
            return {"type": "keypress", "keys": [name]}
    return None


def _write_desktop(action: Action, point: _Point) -> dict[str, Any] | None:
    match action:
        case Click(x=x, y=y, button="left", count=2):
            return {"type": "double_click"} | point(x, y)
        case Click(x=x, y=y, button=button, count=1):
            return {"type": "click", "button": "wheel" if button == "middle" else button} | point(x, y)
        case Move(x=x, y=y):
            return {"type": "move"} | point(x, y)
        case Drag(path=path, duration_ms=duration) if duration == usual_ms(Drag):
            return {"type": "drag", "path": [point(x, y) for x, y in path]}
        case Scroll(x=x, y=y, direction=direction, amount=amount, unit="px"):
            where: dict[str, int] = point(x, y) if x is not None and y is not None else {}
            signed = amount if direction in ("down", "right") else -amount
            down = direction in ("up", "down")
            return {"type": "scroll"} | where | {"scroll_x": 0 if down else signed, "scroll_y": signed if down else 0}
        case Key(keys=keys):
            return {"type": "keypress", "keys": list(keys)}
    return None
