"""Gemini's computer use: an answer is one part of a reply, as JSON, that calls a predefined function.

    {"name": "click", "args": {"x": 512, "y": 233}}

Points run from 0 to 999 across the screen. The names are those of Gemini 3.5 for phones and desktops; ``intent``, the
model's reason, may be given. A text ends the task. A reading of ours: ``press_key`` of back, home, recents … presses
that button of a phone.
"""

from __future__ import annotations

import json
import re
from typing import ClassVar

from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import CallError, as_object, dumped, short, sound, whole_object
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.gemini.vocabulary import LAST_SAID, read_action, write_action
from cuarl.agent.prompt import Window
from cuarl.errors import AgentError
from cuarl.types import Action, Finish

_START = re.compile(r"\{(?=\s*[\"'])")
_FRAMES = ("function_call", "functionCall")
_CALLS: dict[DeviceKind, tuple[tuple[str, str], ...]] = {
    "phone": (
        ('{"name": "click", "args": {"x": 512, "y": 233}}', "tap a point"),
        ('{"name": "long_press", "args": {"x": 512, "y": 233, "seconds": 1}}', "hold a point"),
        (
            '{"name": "drag_and_drop", "args": {"start_x": 512, "start_y": 233, "end_x": 512, "end_y": 80}}',
            "slide a finger",
        ),
        ('{"name": "type", "args": {"text": "tea", "press_enter": true}}', "type, and press Enter if wanted"),
        ('{"name": "press_key", "args": {"key": "home"}}', "press home, recents, menu or a key"),
        ('{"name": "go_back", "args": {}}', "go back"),
        ('{"name": "open_app", "args": {"app_name": "Clock"}}', "open an app by its name"),
        ('{"name": "wait", "args": {"seconds": 1}}', "let time pass"),
    ),
    "desktop": (
        ('{"name": "click", "args": {"x": 512, "y": 233}}', "click the left button"),
        ('{"name": "double_click", "args": {"x": 512, "y": 233}}', "click twice"),
        ('{"name": "triple_click", "args": {"x": 512, "y": 233}}', "click three times"),
        ('{"name": "right_click", "args": {"x": 512, "y": 233}}', "click the right button"),
        ('{"name": "middle_click", "args": {"x": 512, "y": 233}}', "click the middle button"),
        ('{"name": "move", "args": {"x": 512, "y": 233}}', "move the pointer"),
        ('{"name": "mouse_down", "args": {"x": 512, "y": 233}}', "press the left button and keep it down"),
        ('{"name": "mouse_up", "args": {"x": 512, "y": 233}}', "let the left button go"),
        (
            '{"name": "drag_and_drop", "args": {"start_x": 512, "start_y": 233, "end_x": 512, "end_y": 80}}',
            "hold the left button",
        ),
        (
            '{"name": "scroll", "args": {"x": 512, "y": 233, "direction": "down", "magnitude_in_pixels": 300}}',
            "bring into view what lies there",
        ),
        ('{"name": "type", "args": {"text": "tea", "press_enter": true}}', "type, and press Enter if wanted"),
        ('{"name": "press_key", "args": {"key": "Escape"}}', "press a key"),
        ('{"name": "hotkey", "args": {"keys": ["ctrl", "c"]}}', "press keys together"),
        ('{"name": "key_down", "args": {"key": "ctrl"}}', "press a key and keep it down"),
        ('{"name": "key_up", "args": {"key": "ctrl"}}', "let a key go"),
        ('{"name": "wait", "args": {"seconds": 1}}', "let time pass"),
    ),
}


class GeminiComputer(Family):
    """The format for one kind of device."""

    family: ClassVar[str] = "gemini"
    last_said: ClassVar[int] = LAST_SAID
    window = Window(history_images=3, history_turns=10)
    notes = True

    @property
    def examples(self) -> tuple[str, ...]:
        """An answer for every function that the prompt offers."""
        return tuple(call for call, _ in _CALLS[self.kind])

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        device = "a phone" if self.kind == "phone" else "a desktop computer"
        calls = "\n".join(f"{call}  ({meaning})" for call, meaning in _CALLS[self.kind])
        return (
            f"You use {device} by looking at its screen. Answer with one function call as JSON, without any other "
            f"text. These are the functions:\n{calls}\n\nWhen nothing is left to do, report to the user instead:\n"
            '{"text": "It is 5 pm."}\n\nx and y run from 0 to 999 across the screen, from its top left corner.'
        )

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        part = whole_object(text, may_start=_START, strict=strict, warnings=warnings)
        frame = next((f for f in _FRAMES if f in part), None)
        if frame is not None:
            if strict:
                raise CallError("bad_argument", f"{frame} is needless")
            warnings.append(f"the call is within {frame}")
            part = as_object(part[frame])
        if "name" not in part and "text" in part:
            return _end(part["text"])
        name = part.get("name")
        if not isinstance(name, str):
            raise CallError("unknown_tool", f"neither a call nor a text: {short(json.dumps(part))}")
        if strict and set(part) != {"name", "args"}:
            raise CallError("bad_json", "a call has a name and args, and nothing else")
        arguments = as_object(part.get("args", {}))
        return read_action(name, arguments, self.kind, screen, strict=strict, warnings=warnings)

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        if isinstance(action, Finish):
            if not action.success:
                raise AgentError("Gemini's parts have no word for giving up")
            return dumped({"text": action.message})
        name, arguments = write_action(action, self.kind, screen)
        return dumped({"name": name, "args": arguments})


def _end(text: object) -> Finish:
    if not isinstance(text, str) or not sound(text):
        raise CallError("bad_argument", "the text is none")
    return Finish(message=text)
