"""OpenAI's computer use: an answer is one output item of the Responses API, as JSON.

    {"type": "computer_call", "action": {"type": "click", "button": "left", "x": 512, "y": 233}}

Points are pixels of the screenshot. A message ends the task, and a refusal within one ends it without success. Readings
of ours: on a phone ``drag`` slides a finger (or holds a point, if it ends where it began) and ``keypress`` of BACK,
HOME, RECENTS … presses that button.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.agent.formats.call import CallError, as_object, behind_samples, decode, dumped, short, sound, whole_object
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.openai.vocabulary import read_action, write_action
from cuarl.agent.prompt import Window
from cuarl.types import Action, Finish

_START = re.compile(r"[\[{](?=\s*(?:\{\s*)?[\"'])")
_CALL_FIELDS = {"type", "id", "call_id", "status", "action", "pending_safety_checks"}
_ACTIONS: dict[DeviceKind, tuple[tuple[str, str], ...]] = {
    "phone": (
        ('{"type": "click", "button": "left", "x": 512, "y": 233}', "tap a point"),
        (
            '{"type": "drag", "path": [{"x": 512, "y": 233}, {"x": 512, "y": 80}]}',
            "slide a finger along a path; from a point to itself, hold it",
        ),
        ('{"type": "scroll", "x": 512, "y": 233, "scroll_x": 0, "scroll_y": 300}', "positive is down and right"),
        ('{"type": "keypress", "keys": ["BACK"]}', "press BACK, HOME, RECENTS, MENU or a key"),
        ('{"type": "type", "text": "tea"}', "type; a line break at the end presses Enter"),
        ('{"type": "wait"}', "let two seconds pass"),
    ),
    "desktop": (
        ('{"type": "click", "button": "left", "x": 512, "y": 233}', "click left, right or wheel"),
        ('{"type": "double_click", "x": 512, "y": 233}', "click twice"),
        ('{"type": "move", "x": 512, "y": 233}', "move the pointer"),
        ('{"type": "drag", "path": [{"x": 512, "y": 233}, {"x": 512, "y": 80}]}', "hold the button along a path"),
        ('{"type": "scroll", "x": 512, "y": 233, "scroll_x": 0, "scroll_y": 300}', "positive is down and right"),
        ('{"type": "click", "button": "left", "x": 512, "y": 233, "keys": ["ctrl"]}', "hold keys meanwhile"),
        ('{"type": "keypress", "keys": ["ctrl", "c"]}', "press keys together"),
        ('{"type": "type", "text": "tea"}', "type; a line break at the end presses Enter"),
        ('{"type": "wait"}', "let two seconds pass"),
    ),
}


class OpenAIComputer(Family):
    """The format for one kind of device."""

    family: ClassVar[str] = "openai"
    absolute: ClassVar[bool] = True
    window = Window(history_images=3, history_turns=10)
    notes = True

    @property
    def examples(self) -> tuple[str, ...]:
        """An answer for every action that the prompt offers."""
        return tuple(f'{{"type": "computer_call", "action": {action}}}' for action, _ in _ACTIONS[self.kind])

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        device = "a phone" if self.kind == "phone" else "a computer"
        actions = "\n".join(f"{action}  ({meaning})" for action, meaning in _ACTIONS[self.kind])
        return (
            f"You operate {device} through its screen. Answer each screenshot with one output item as JSON, and "
            f'nothing else. To act:\n{{"type": "computer_call", "action": ACTION}}\nwhere ACTION is one of\n'
            f"{actions}\n\nWhen the task is done, say so and answer what was asked:\n"
            f"{_message('It is 5 pm.')}\nIf it can't be done:\n"
            f"{_refusal('There is no such contact.')}\n\nx and y are pixels of the screenshot, from its top left "
            "corner."
        )

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        item = whole_object(text, may_start=_START, strict=True, warnings=warnings) if strict else _item(text, warnings)
        if item.get("type") == "message":
            return _end(item)
        if item.get("type") == "computer_call":
            return read_action(
                _action(item, strict=strict, warnings=warnings),
                self.kind,
                screen,
                grid,
                strict=strict,
                warnings=warnings,
            )
        if strict:
            raise CallError("unknown_tool", f"neither a computer_call nor a message: {short(json.dumps(item))}")
        warnings.append("the action lacks its computer_call")
        return read_action(item, self.kind, screen, grid, strict=False, warnings=warnings)

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        if isinstance(action, Finish):
            return _message(action.message) if action.success else _refusal(action.message)
        call = {"type": "computer_call", "action": write_action(action, self.kind, screen, grid)}
        return dumped(call)


def _item(text: str, warnings: list[str]) -> dict[str, Any]:
    """The item that counts, of an answer that may be a list of them or have other text around it."""
    text = behind_samples(text, _START, warnings)
    found = _START.search(text)
    if found is None:
        raise CallError("no_call", "no output item in the answer")
    value, end = decode(text[found.start() :], warnings)
    if (text[: found.start()] + text[found.start() + end :]).strip():
        warnings.append("more text around the item")
    if not isinstance(value, list):
        return as_object(value)
    items = [i for i in value if isinstance(i, dict) and i.get("type") in ("computer_call", "message")]
    if not items:
        raise CallError("no_call", "no computer_call and no message among the items")
    chosen = next((i for i in items if i["type"] == "computer_call"), items[0])
    if len(value) > 1:
        warnings.append(f"{len(value)} items, of which a {chosen['type']} counts")
    return chosen


def _action(item: Mapping[str, Any], *, strict: bool, warnings: list[str]) -> Mapping[str, Any]:
    """The action of a call: ``action``, or the only one of ``actions``. Raises ``CallError``."""
    actions = item.get("actions")
    if isinstance(actions, list) and "action" not in item:
        if not actions:
            raise CallError("missing_argument", "the call has no action")
        if len(actions) > 1:
            if strict:
                raise CallError("bad_argument", "one action at a time")
            warnings.append(f"{len(actions)} actions, of which the first counts")
        return as_object(actions[0])
    if "action" not in item:
        raise CallError("missing_argument", "the call has no action")
    if strict and set(item) - _CALL_FIELDS:
        raise CallError("bad_argument", f"needless fields: {', '.join(sorted(set(item) - _CALL_FIELDS))}")
    return as_object(item["action"])


def _end(item: Mapping[str, Any]) -> Finish:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
    refusals = [p["refusal"] for p in parts if isinstance(p, dict) and isinstance(p.get("refusal"), str)]
    if not texts and not refusals:
        raise CallError("missing_argument", "the message has no text")
    message = "".join(refusals or texts)
    if not sound(message):
        raise CallError("bad_argument", "the message holds code points that are no text")
    return Finish(success=not refusals, message=message)


def _message(text: str) -> str:
    return _said({"type": "output_text", "text": text})


def _refusal(text: str) -> str:
    return _said({"type": "refusal", "refusal": text})


def _said(part: dict[str, str]) -> str:
    return dumped({"type": "message", "role": "assistant", "content": [part]})
