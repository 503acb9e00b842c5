"""Actions of a policy as commands of Android's shell."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from cuarl.env.held import beyond
from cuarl.env.points import outside
from cuarl.keys import named, parts
from cuarl.types import Action, Button, Click, Drag, Key, LongPress, Scroll, Swipe, TypeText, Wait

ACTIONS = frozenset(
    {"click", "long_press", "swipe", "drag", "scroll", "type", "key", "button", "open_app", "wait", "answer", "finish"}
)
BUTTONS: Mapping[str, int] = {
    "back": 4, "home": 3, "recents": 187, "menu": 82, "power": 26, "volume_up": 24, "volume_down": 25, "enter": 66,
}  # fmt: skip
UNICODE_IME = "com.android.adbkeyboard/.AdbIME"
"""The keyboard that types what ``input text`` can't: ADBKeyBoard, which the user installs."""
IME_S = 0.3
"""What a keyboard that has just been chosen takes until it listens."""
NOTCH_PX = 50
MOST_SWIPES = 10
_WAYS = {"up": (0, 1), "down": (0, -1), "left": (1, 0), "right": (-1, 0)}


def refusal(action: Action, size: tuple[int, int], *, unicode: bool) -> str:
    """Why the device can't do it; empty if it can.

    ``size`` is the screenshot's; ``unicode`` whether ADBKeyBoard is there.
    """
    if action.kind not in ACTIONS:
        return f"a phone behind adb has no {action.kind}"
    if isinstance(action, Click) and action.button != "left":
        return f"a touch screen has no {action.button} button"
    if isinstance(action, TypeText) and not unicode and not _plain(action.text):
        return "text beyond ASCII needs ADBKeyBoard on the device"
    if isinstance(action, Key):
        strange = [key for key in chord(action.keys) if _code(key) is None]
        if strange:
            return f"a phone has no key {strange[0]}"
    return beyond(action, "a phone", repeats=True) or outside(action, size)


def commands(action: Action, size: tuple[int, int]) -> list[str]:
    """What to run, in order.

    Empty for actions that the device has no part in, and for apps, which must be found first.
    """
    match action:
        case Click():
            return ["; ".join([f"input tap {action.x} {action.y}"] * action.count)]
        case LongPress(x=x, y=y):
            return [f"input swipe {x} {y} {x} {y} {action.duration_ms}"]
        case Swipe():
            return [_swipe(action)]
        case Drag():
            return _drag(action)
        case Scroll():
            return [_swipe(swipe) for swipe in swipes(action, size)]
        case TypeText():
            return _type(action)
        case Key(keys=keys):
            codes = [str(_code(key)) for key in chord(keys)]
            if len(codes) == 1:
                return [f"input keyevent {' '.join(codes * action.count)}"]
            return ["; ".join([f"input keycombination {' '.join(codes)}"] * action.count)]
        case Button():
            return [f"input keyevent {BUTTONS[action.name]}"]
        case Wait():
            return [f"sleep {action.seconds:g}"]
        case _:
            return []


def chord(keys: Sequence[str]) -> list[str]:
    """The keys of a chord in lower case.

    ``ctrl+c`` may be given as one word, and a capital alone is held with shift.
    """
    one_by_one = parts(keys)
    if len(one_by_one) == 1 and one_by_one[0] in set(ascii_uppercase):
        return ["shift", one_by_one[0].lower()]
    return [part.lower() if len(part) == 1 else part.strip().lower() for part in one_by_one]


def _code(key: str) -> int | None:
    """Android's code of a key; None if it has none."""
    found = named(key)
    return found.android if found else None


def swipes(action: Scroll, size: tuple[int, int]) -> list[Swipe]:
    """A scroll as slow swipes that stay on the screen, so that nothing is flung further.

    Up and down they add up to the distance; sideways one is made, since pages turn one at a time.
    """
    x, y = (size[0] // 2, size[1] // 2) if action.x is None or action.y is None else (action.x, action.y)
    dx, dy = _WAYS[action.direction]
    room = {(0, 1): size[1] - 1 - y, (0, -1): y, (1, 0): size[0] - 1 - x, (-1, 0): x}[dx, dy]
    left, made = action.amount * (NOTCH_PX if action.unit == "notch" else 1), list[Swipe]()
    while room and left > 0 and len(made) < (1 if dx else MOST_SWIPES):
        far = min(left, room)
        made.append(Swipe(x=x, y=y, x2=x + dx * far, y2=y + dy * far, duration_ms=max(300, far * 2)))
        left -= far
    return made


def _swipe(action: Swipe) -> str:
    return f"input swipe {action.x} {action.y} {action.x2} {action.y2} {action.duration_ms}"


def _plain(text: str) -> bool:
    return all(" " <= char <= "~" or char == "\n" for char in text)


def _type(action: TypeText) -> list[str]:
    """One command line, so that a field is not left half typed by a link that drops between two."""
    enter = ["input keyevent 66"] if action.submit else []
    if not _plain(action.text):
        encoded = base64.b64encode(action.text.encode()).decode()
        typed = [
            f"ime enable {UNICODE_IME}",
            f"ime set {UNICODE_IME}",
            f"sleep {IME_S:g}",
            f"am broadcast -a ADB_INPUT_B64 --es msg {encoded}",
            *enter,
            "ime reset",
        ]
    else:
        typed = [*_lines(action.text), *enter]
    return [" && ".join(typed)] if typed else []


def _lines(text: str) -> list[str]:
    typed: list[str] = []
    for number, line in enumerate(text.split("\n")):
        typed += ["input keyevent 66"] if number else []
        # "%s" stands for a space, so that a literal one must arrive in two parts
        parts = line.replace("%s", "%\0s").split("\0")
        typed += [f"input text {shlex.quote(part.replace(' ', '%s'))}" for part in parts if part]
    return typed


def _drag(action: Drag) -> list[str]:
    (x, y), *between, (x2, y2) = action.path
    if not between:
        return [f"input draganddrop {x} {y} {x2} {y2} {action.duration_ms}"]
    moves = [f"input motionevent MOVE {a} {b}" for a, b in (*between, (x2, y2))]
    return ["; ".join([f"input motionevent DOWN {x} {y}", *moves, f"input motionevent UP {x2} {y2}"])]
