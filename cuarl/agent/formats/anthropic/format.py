"""Anthropic's computer use: an answer is one content block of the Messages API, as JSON.

    {"type": "tool_use", "name": "computer", "input": {"action": "left_click", "coordinate": [512, 233]}}

Points are pixels of the picture that the model sees. The service shrinks a picture whose long side or number of tokens
is too large, so it is shrunk here, before it is sent, by the same rule. A block of text ends the task. Readings of
ours: on a phone ``left_click_drag`` slides a finger (or holds a point, if it ends where it began) and ``key`` presses
back, home, recents …
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, ClassVar

from cuarl.agent.formats.anthropic.vocabulary import read_action, write_action
from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import CallError, as_object, dumped, short, sound, whole_object
from cuarl.agent.formats.family import Family
from cuarl.agent.prompt import Window
from cuarl.errors import AgentError
from cuarl.types import Action, Finish

TOOL = "computer"
LONG_SIDE = 1568
"""Pixels of the longest side that a picture keeps."""
TOKENS, TOKEN_SIDE = 1568, 28
"""Tokens that a picture may take, and the pixels of a token's side."""
_START = re.compile(r"\{(?=\s*[\"'])")
_ACTIONS: dict[DeviceKind, tuple[tuple[str, str], ...]] = {
    "phone": (
        ('{"action": "left_click", "coordinate": [512, 233]}', "tap a point"),
        (
            '{"action": "left_click_drag", "start_coordinate": [512, 233], "coordinate": [512, 80]}',
            "slide a finger from one point to another; to the same point, hold it",
        ),
        (
            '{"action": "scroll", "coordinate": [512, 233], "scroll_direction": "down", "scroll_amount": 3}',
            "bring into view what lies there",
        ),
        ('{"action": "key", "text": "back"}', "press back, home, recents, menu or a key"),
        ('{"action": "type", "text": "tea"}', "type; a line break at the end presses Enter"),
        ('{"action": "wait", "duration": 1}', "let seconds pass"),
    ),
    "desktop": (
        ('{"action": "left_click", "coordinate": [512, 233]}', "click the left button"),
        ('{"action": "double_click", "coordinate": [512, 233]}', "click twice"),
        ('{"action": "triple_click", "coordinate": [512, 233]}', "click three times"),
        ('{"action": "right_click", "coordinate": [512, 233]}', "click the right button"),
        ('{"action": "middle_click", "coordinate": [512, 233]}', "click the middle button"),
        ('{"action": "mouse_move", "coordinate": [512, 233]}', "move the pointer"),
        (
            '{"action": "left_click_drag", "start_coordinate": [512, 233], "coordinate": [512, 80]}',
            "hold the left button from one point to another",
        ),
        (
            '{"action": "scroll", "coordinate": [512, 233], "scroll_direction": "down", "scroll_amount": 3}',
            "turn the wheel by notches",
        ),
        ('{"action": "left_click", "coordinate": [512, 233], "text": "ctrl"}', "hold keys meanwhile"),
        ('{"action": "left_mouse_down", "coordinate": [512, 233]}', "press the left button and keep it down"),
        ('{"action": "left_mouse_up", "coordinate": [512, 233]}', "let the left button go"),
        ('{"action": "key", "text": "ctrl+c"}', "press keys together"),
        ('{"action": "key", "text": "Down", "repeat": 3}', "press a key several times"),
        ('{"action": "type", "text": "tea"}', "type; a line break at the end presses Enter"),
        ('{"action": "wait", "duration": 1}', "let seconds pass"),
    ),
}


class AnthropicComputer(Family):
    """The format for one kind of device."""

    family: ClassVar[str] = "anthropic"
    absolute: ClassVar[bool] = True
    window = Window(history_images=3, history_turns=10)
    notes = True

    @property
    def examples(self) -> tuple[str, ...]:
        """An answer for every action that the prompt offers."""
        return tuple(f'{{"type": "tool_use", "name": "computer", "input": {a}}}' for a, _ in _ACTIONS[self.kind])

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        device = "a phone" if self.kind == "phone" else "a computer"
        actions = "\n".join(f"{action}  ({meaning})" for action, meaning in _ACTIONS[self.kind])
        return (
            f"You work on {device}, of which each message shows the screen. Reply with one content block as JSON and "
            f'nothing else. To act:\n{{"type": "tool_use", "name": "{TOOL}", "input": INPUT}}\n'
            f"where INPUT is one of\n{actions}\n\nOnce the task is done, or can't be, close with what there is to "
            'tell:\n{"type": "text", "text": "It is 5 pm."}\n\nCoordinates are pixels of the screenshot, from its '
            "top left corner."
        )

    def sent(self, screen: Size) -> Size:
        """As it is, or the largest picture of the same shape that the service would not shrink."""
        return fitting(screen)

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        block = whole_object(text, may_start=_START, strict=strict, warnings=warnings)
        if block.get("type") == "text":
            return _end(block)
        call = _input(block, strict=strict, warnings=warnings)
        return read_action(call, self.kind, screen, grid, strict=strict, warnings=warnings)

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        if isinstance(action, Finish):
            if not action.success:
                raise AgentError("Anthropic's blocks have no word for giving up")
            return dumped({"type": "text", "text": action.message})
        call = write_action(action, self.kind, screen, grid)
        return dumped({"type": "tool_use", "name": TOOL, "input": call})


def fitting(screen: Size) -> Size:
    """The largest size of a screen's shape within the bounds on long side and tokens; the screen's own if it fits."""
    long = max(screen)

    def scaled(side: int) -> Size:
        return Size(max(1, round(screen.width * side / long)), max(1, round(screen.height * side / long)))

    def tokens(size: Size) -> int:
        return math.ceil(size.width / TOKEN_SIDE) * math.ceil(size.height / TOKEN_SIDE)

    low, high = 1, min(long, LONG_SIDE)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens(scaled(middle)) <= TOKENS else (low, middle - 1)
    return scaled(low)


def _input(block: dict[str, Any], *, strict: bool, warnings: list[str]) -> dict[str, Any]:
    """The input of the one call. Raises ``CallError``."""
    if block.get("type") == "tool_use":
        if block.get("name") != TOOL:
            raise CallError("unknown_tool", f"there is no tool {short(json.dumps(block.get('name')))}, only {TOOL}")
        needless = sorted(set(block) - {"type", "id", "name", "input"})
        if strict and needless:
            raise CallError("bad_argument", f"needless fields: {', '.join(needless)}")
        if "input" not in block:
            raise CallError("missing_argument", "the call has no input")
        return as_object(block["input"])
    if strict or "action" not in block:
        raise CallError("unknown_tool", f"neither tool_use nor text: {short(json.dumps(block))}")
    warnings.append("the input lacks its tool_use block")
    return block


def _end(block: dict[str, Any]) -> Finish:
    text = block.get("text")
    if not isinstance(text, str) or not sound(text):
        raise CallError("bad_argument", "the block of text holds no text")
    return Finish(message=text)
