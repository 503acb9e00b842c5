"""The calls that answer requests, in the words of Qwen3-VL's two tools."""

from __future__ import annotations

import json
import random
from typing import Literal

from cuarl.policy.tiny import GRID

Kind = Literal["phone", "desktop"]
TOOLS: dict[Kind, str] = {"phone": "mobile_use", "desktop": "computer_use"}
Box = tuple[int, int, int, int]
Size = tuple[int, int]
"""Width and height, pixels."""


def call(kind: Kind, arguments: dict[str, object]) -> str:
    """The tool call as the model writes it."""
    text = json.dumps({"name": TOOLS[kind], "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{text}\n</tool_call>"


def point(rng: random.Random, box: Box, size: Size) -> list[int]:
    """A point in the middle part of a box, 0-1000: the spread keeps the policy from becoming certain of one pixel."""
    return [_inside(rng, box[0], box[2], size[0]), _inside(rng, box[1], box[3], size[1])]


def _inside(rng: random.Random, low: float, high: float, size: int) -> int:
    middle, half = (low + high) / 2, min((high - low) * 0.36, size * 0.12)
    first = -(-int((middle - half) * 1000) // (size * GRID))
    last = int((middle + half) * 1000) // (size * GRID)
    if last < first:
        return round(middle * 1000 / size)
    return min(rng.randint(first, last) * GRID, 990)


def click(rng: random.Random, kind: Kind, box: Box, size: Size) -> str:
    """A tap, or a click of the left button."""
    return call(kind, {"action": "click" if kind == "phone" else "left_click", "coordinate": point(rng, box, size)})


def gesture(rng: random.Random, kind: Kind, action: str, box: Box, size: Size) -> str:
    """Another call with one point: ``long_press``, ``double_click``, ``right_click``."""
    return call(kind, {"action": action, "coordinate": point(rng, box, size)})


def press(button: str) -> str:
    """A button of the phone."""
    return call("phone", {"action": "system_button", "button": button})


def key(kind: Kind, *keys: str) -> str:
    """Keys pressed together."""
    return call(kind, {"action": "key", "keys": list(keys)})


def type_text(kind: Kind, text: str) -> str:
    """Text into the focused field."""
    return call(kind, {"action": "type", "text": text})


def open_app(name: str) -> str:
    """An app of the phone by its name."""
    return call("phone", {"action": "open", "text": name})


def answer(kind: Kind, text: str) -> str:
    """Words to the user."""
    return call(kind, {"action": "answer", "text": text})


def finish(kind: Kind, success: bool = True) -> str:
    """The end of the episode."""
    return call(kind, {"action": "terminate", "status": "success" if success else "failure"})


def swipe(rng: random.Random, direction: str) -> str:
    """A swipe of the finger ``up`` or ``down`` (the list scrolls the other way), ``left`` or ``right``."""
    across = rng.randrange(300, 710, GRID)
    ends = rng.randrange(680, 760, GRID), rng.randrange(260, 340, GRID)
    start, end = ends if direction in ("up", "left") else ends[::-1]
    if direction in ("left", "right"):
        return _swipe([start, across], [end, across])
    return _swipe([across, start], [across, end])


def swipe_from(rng: random.Random, box: Box, size: Size, direction: str) -> str:
    """A swipe sideways that begins on a thing, or down from the upper edge of the screen."""
    x, y = point(rng, box, size)
    reach = rng.randrange(300, 500, GRID)
    if direction == "down":
        return _swipe([x, y], [x, min(990, y + reach)])
    return _swipe([x, y], [max(10, x - reach) if direction == "left" else min(990, x + reach), y])


def _swipe(start: list[int], end: list[int]) -> str:
    return call("phone", {"action": "swipe", "coordinate": start, "coordinate2": end})


def wheel(rng: random.Random, down: bool) -> str:
    """A turn of the mouse's wheel."""
    pixels = rng.choice((100, 120, 160, 200))
    return call("desktop", {"action": "scroll", "pixels": -pixels if down else pixels})
