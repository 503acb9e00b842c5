"""Actions of a policy as GBox's requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.env.gbox.keys import UnknownKey, chord
from cuarl.env.held import beyond
from cuarl.env.points import outside
from cuarl.types import Action, Button, Click, Drag, Key, LongPress, Move, Scroll, Swipe, TypeText

PHONE = frozenset(
    {"click", "long_press", "swipe", "drag", "scroll", "type", "key", "button", "wait", "answer", "finish"}
)
DESKTOP = frozenset({"click", "long_press", "move", "drag", "scroll", "type", "key", "wait", "answer", "finish"})
KINDS: Mapping[str, frozenset[str]] = {"android": PHONE, "linux": DESKTOP}
"""What a policy can do, by type of box."""
POINTED = frozenset({"click", "long_press", "move", "swipe", "drag", "scroll"})
"""Kinds that are carried out at a place of the display."""
BUTTONS = {
    "back": "back", "home": "home", "recents": "appSwitch", "menu": "menu", "power": "power",
    "volume_up": "volumeUp", "volume_down": "volumeDown",
}  # fmt: skip
NOTCH_PX = 50
"""About what one notch of a wheel scrolls."""
_WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


def refusal(action: Action, size: tuple[int, int], box_type: str) -> str:
    """Why a box can't do it; empty if it can. ``size`` is the screenshot's, in pixels."""
    if action.kind not in KINDS[box_type]:
        return f"a box of type {box_type} has no {action.kind}"
    if isinstance(action, Click) and action.count == 3:
        return "a box has no triple click"
    if isinstance(action, Key):
        try:
            chord(action.keys)
        except UnknownKey as error:
            return str(error)
    return beyond(action, "a box") or outside(action, size)


def request(action: Action, scale: tuple[float, float], size: tuple[int, int]) -> tuple[str, dict[str, Any]] | None:
    """Route and body of an action; None for those that a box has no part in.

    ``scale`` is display units for one pixel of the screenshot, across and down; ``size`` the screenshot's, in pixels.
    """

    def at(x: int, y: int) -> dict[str, float]:
        return {"x": x * scale[0], "y": y * scale[1]}

    match action:
        case Click(button="left", count=1):
            return "tap" if size[1] > size[0] else "click", at(action.x, action.y)
        case Click():
            return "click", {**at(action.x, action.y), "button": action.button, "double": action.count == 2}
        case LongPress():
            return "long-press", {**at(action.x, action.y), "duration": f"{action.duration_ms}ms"}
        case Move():
            return "move", at(action.x, action.y)
        case Swipe():
            ends = {"start": at(action.x, action.y), "end": at(action.x2, action.y2)}
            return "swipe", {**ends, "duration": f"{action.duration_ms}ms"}
        case Drag():
            each = max(1, round(action.duration_ms / (len(action.path) - 1)))
            return "drag", {"path": [at(*point) for point in action.path], "duration": f"{each}ms"}
        case Scroll():
            return "scroll", _scroll(action, scale, size)
        case TypeText():
            return "type", {"text": action.text, "mode": "append", "pressEnter": action.submit}
        case Key():
            return "press-key", {"keys": chord(action.keys), "combination": True}
        case Button(name="enter"):
            return "press-key", {"keys": ["enter"], "combination": True}
        case Button():
            return "press-button", {"buttons": [BUTTONS[action.name]]}
        case _:
            return None


def _scroll(action: Scroll, scale: tuple[float, float], size: tuple[int, int]) -> dict[str, float]:
    x, y = (size[0] // 2, size[1] // 2) if action.x is None or action.y is None else (action.x, action.y)
    way, far = _WAYS[action.direction], action.amount * (NOTCH_PX if action.unit == "notch" else 1)
    return {
        "x": x * scale[0],
        "y": y * scale[1],
        "scrollX": way[0] * far * scale[0],
        "scrollY": way[1] * far * scale[1],
    }
