"""The verbs of UI-TARS, and how they and our actions are turned into each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from cuarl.agent.formats.arguments import Arguments
from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import PLAIN_NUMBER, CallError, unknown
from cuarl.agent.formats.gestures import DIRECTIONS, dragged, plain, scrolled, usual_ms
from cuarl.agent.formats.points import to_grid
from cuarl.agent.formats.ui_tars.syntax import NUMBERS, POINTS, Call, written
from cuarl.errors import AgentError
from cuarl.types import Action, Button, Click, Drag, Finish, Key, LongPress, OpenApp, Scroll, Swipe, TypeText, Wait

Style = Literal["box", "point"]
"""How a point is written: ``start_box='(x,y)'`` or ``point='<point>x y</point>'``. Both are read."""

WAIT_S = 5.0
"""What ``wait()`` means."""
_NUMBER = PLAIN_NUMBER.pattern
_EXACT_POINT = re.compile(
    rf"(?:\(({_NUMBER}), ?({_NUMBER})\)|<\|box_start\|>\(({_NUMBER}), ?({_NUMBER})\)<\|box_end\|>"
    rf"|<point>({_NUMBER}) ({_NUMBER})</point>)"
)
_MARKUP = re.compile(r"<\|box_(?:start|end)\|>|</?(?:point|bbox)>|[()\[\],]")


def read_action(call: Call, kind: DeviceKind, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
    """The action that ``call`` asks for. Raises ``CallError``."""
    read = _WORDS[kind].get(call.verb)
    if read is None:
        raise unknown(call.verb, elsewhere=any(call.verb in words for words in _WORDS.values()))
    values = {name: _value(name, text, strict=strict, warnings=warnings) for name, text in call.arguments.items()}
    given = Arguments(values, screen, strict=strict, warnings=warnings, grid=grid, spent=())
    action = read(given, kind)
    given.finish()
    return action


def _value(name: str, text: str, *, strict: bool, warnings: list[str]) -> Any:
    """An argument's value: points as lists of numbers, numbers as such."""
    if name in NUMBERS and re.fullmatch(_NUMBER, text):
        return float(text)
    if name not in POINTS:
        return text
    exact = _EXACT_POINT.fullmatch(text.strip())
    if exact is not None:
        return [float(g) for g in exact.groups() if g is not None]
    if strict:
        raise CallError("bad_argument", f"{name} must be a point, not {text!r}")
    warnings.append(f"{name} is not written as the prompt says")
    words = _MARKUP.sub(" ", text).split()
    return [float(word) if re.fullmatch(_NUMBER, word) else word for word in words]


def _point(a: Arguments, *names: str) -> tuple[int, int]:
    return a.point(next((name for name in names if a.has(name)), names[0]))


def _click(a: Arguments, kind: DeviceKind) -> Action:
    x, y = _point(a, "start_box", "point")
    return Click(x=x, y=y)


def _double(a: Arguments, kind: DeviceKind) -> Action:
    x, y = _point(a, "start_box", "point")
    return Click(x=x, y=y, count=2)


def _right(a: Arguments, kind: DeviceKind) -> Action:
    x, y = _point(a, "start_box", "point")
    return Click(x=x, y=y, button="right")


def _long_press(a: Arguments, kind: DeviceKind) -> Action:
    x, y = _point(a, "start_box", "point")
    return LongPress(x=x, y=y, **a.duration_ms())


def _drag(a: Arguments, kind: DeviceKind) -> Action:
    return dragged(kind, (_point(a, "start_box", "start_point"), _point(a, "end_box", "end_point")))


def _scroll(a: Arguments, kind: DeviceKind) -> Action:
    at = _point(a, "start_box", "point") if a.has("start_box") or a.has("point") else None
    direction = a.choice("direction", DIRECTIONS)
    amount = a.pixels("amount") if a.has("amount") else None
    if amount is not None and amount < 0:
        raise CallError("bad_argument", "amount must not be negative")
    return scrolled(kind, a.screen, at, direction, amount)


def _type(a: Arguments, kind: DeviceKind) -> Action:
    text = a.text("content")
    return TypeText(text=text.removesuffix("\n"), submit=text.endswith("\n"))


def _hotkey(a: Arguments, kind: DeviceKind) -> Action:
    keys = tuple(a.text("key").split())
    if not keys:
        raise CallError("bad_argument", "key names no key")
    return Key(keys=keys)


def _open(a: Arguments, kind: DeviceKind) -> Action:
    return OpenApp(name=a.text("app_name"))


def _wait(a: Arguments, kind: DeviceKind) -> Action:
    return Wait(seconds=WAIT_S)


def _finished(a: Arguments, kind: DeviceKind) -> Action:
    return Finish(message=a.text("content") if a.has("content") else "")


def _call_user(a: Arguments, kind: DeviceKind) -> Action:
    return Finish(success=False, message=a.text("content") if a.has("content") else "")


def _home(a: Arguments, kind: DeviceKind) -> Action:
    return Button(name="home")


def _back(a: Arguments, kind: DeviceKind) -> Action:
    return Button(name="back")


_Read = Callable[[Arguments, DeviceKind], Action]
_BOTH: dict[str, _Read] = {
    "click": _click,
    "drag": _drag,
    "scroll": _scroll,
    "type": _type,
    "wait": _wait,
    "finished": _finished,
    "call_user": _call_user,
}
_WORDS: dict[DeviceKind, dict[str, _Read]] = {
    "phone": _BOTH | {"long_press": _long_press, "open_app": _open, "press_home": _home, "press_back": _back},
    "desktop": _BOTH | {"left_double": _double, "right_single": _right, "hotkey": _hotkey},
}
WORDS: dict[DeviceKind, tuple[str, ...]] = {kind: tuple(words) for kind, words in _WORDS.items()}


def write_action(action: Action, kind: DeviceKind, screen: Size, grid: Size, style: Style) -> str:
    """The call for ``action``. Raises ``AgentError`` if the vocabulary has no word for it."""

    def point(x: int, y: int) -> str:
        x, y = to_grid(x, y, screen, grid)
        return f"({x},{y})" if style == "box" else f"<point>{x} {y}</point>"

    call = None
    if plain(action):
        call = _write_shared(action) or (_write_phone if kind == "phone" else _write_desktop)(action, point, style)
    if call is None:
        raise AgentError(f"the {kind} vocabulary of UI-TARS has no word for {action!r}")
    return call


def _write_shared(action: Action) -> str | None:
    match action:
        case TypeText(text=text, submit=submit):
            if text.endswith("\n") and not submit:
                raise AgentError("a final line break can't be typed without Enter: it means Enter")
            return written("type", content=text + "\n" * submit)
        case Wait(seconds=seconds) if seconds == WAIT_S:
            return written("wait")
        case Finish(success=success, message=message):
            verb = "finished" if success else "call_user"
            return written(verb, content=message) if message else written(verb)
    return None


_Write = Callable[[int, int], str]


def _write_phone(action: Action, point: _Write, style: Style) -> str | None:
    at = "start_box" if style == "box" else "point"
    match action:
        case Click(x=x, y=y, button="left", count=1):
            return written("click", **{at: point(x, y)})
        case LongPress(x=x, y=y, duration_ms=duration):
            usual = duration == usual_ms(LongPress)
            return written("long_press", **{at: point(x, y)}, **({} if usual else {"time": f"{duration / 1000:g}"}))
        case Swipe(x=x, y=y, x2=x2, y2=y2, duration_ms=duration):
            return _write_move(((x, y), (x2, y2)), duration, Swipe, point, style)
        case OpenApp(name=name):
            return written("open_app", app_name=name)
        case Button(name="home" | "back" as name):
            return written(f"press_{name}")
    return None


def _write_desktop(action: Action, point: _Write, style: Style) -> str | None:
    at = "start_box" if style == "box" else "point"
    match action:
        case Click(x=x, y=y, button=button, count=count):
            verb = {("left", 1): "click", ("left", 2): "left_double", ("right", 1): "right_single"}.get((button, count))
            return written(verb, **{at: point(x, y)}) if verb else None
        case Drag(path=path, duration_ms=duration):
            return _write_move(path, duration, Drag, point, style)
        case Scroll(x=x, y=y, direction=direction, amount=amount, unit="px"):
            where = {at: point(x, y)} if x is not None and y is not None else {}
            usual = amount == Scroll.model_fields["amount"].default
            return written("scroll", **where, direction=direction, **({} if usual else {"amount": str(amount)}))
        case Key(keys=keys) if all(k.split() == [k] for k in keys):
            return written("hotkey", key=" ".join(keys))
    return None


def _write_move(
    path: tuple[tuple[int, int], ...], duration: int, kind: type[Drag | Swipe], point: _Write, style: Style
) -> str | None:
    """From one point to another in the usual time; the family has no words for more."""
    if len(path) != 2 or duration != usual_ms(kind):
        return None
    end = "box" if style == "box" else "point"
    return written("drag", **{f"start_{end}": point(*path[0]), f"end_{end}": point(*path[1])})
