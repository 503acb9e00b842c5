"""What a Qwen3-VL model is told: the device's tool as a JSON schema, and how to call it.

The texts are constants (they depend on neither screen nor task), so that a tokenizer can hold each as a few tokens and
a sampler can keep what it computed for them.
"""

from __future__ import annotations

import json
from typing import Any

from cuarl.agent.formats.base import DeviceKind

TOOLS: dict[DeviceKind, str] = {"phone": "mobile_use", "desktop": "computer_use"}

_POINT = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_SHARED_PROPERTIES: dict[str, Any] = {
    "text": {"type": "string", "description": "for type, answer and open"},
    "time": {"type": "number", "description": "seconds, for wait and long presses"},
    "keys": {"type": "array", "items": {"type": "string"}, "description": "pressed together, for key"},
    "status": {"type": "string", "enum": ["success", "failure"], "description": "for terminate"},
}
_SHARED_ACTIONS = {
    "type": "type text into the focused field; a line break at its end presses Enter",
    "key": "press keys together",
    "answer": "tell the user text",
    "wait": "wait for time seconds",
    "terminate": "end the task and report its status",
}
_PHONE_ACTIONS = {
    "click": "tap at coordinate",
    "long_press": "press at coordinate for time seconds",
    "swipe": "slide from coordinate to coordinate2",
    "system_button": "press a button of the device",
    "open": "open the app named text",
}
_DESKTOP_ACTIONS = {
    "left_click": "click the left button at coordinate",
    "double_click": "click twice at coordinate",
    "triple_click": "click three times at coordinate",
    "right_click": "click the right button at coordinate",
    "middle_click": "click the middle button at coordinate",
    "mouse_move": "move the pointer to coordinate",
    "left_click_drag": "hold the left button from coordinate to coordinate2",
    "scroll": "turn the wheel by pixels: positive is up, negative is down",
    "hscroll": "turn the wheel sideways by pixels: positive is right, negative is left",
}


def _tool(name: str, device: str, actions: dict[str, str], properties: dict[str, Any], points: str) -> dict[str, Any]:
    known = actions | _SHARED_ACTIONS
    words = "; ".join(f"{word}: {meaning}" for word, meaning in known.items())
    described: dict[str, Any] = {"action": {"type": "string", "enum": list(known), "description": words}}
    described["coordinate"] = _POINT | {"description": "[x, y] on the screen"}
    described["coordinate2"] = _POINT | {"description": "[x, y] where the movement ends"}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Act on {device} that is seen through screenshots. {points}",
            "parameters": {
                "type": "object",
                "properties": described | properties | _SHARED_PROPERTIES,
                "required": ["action"],
            },
        },
    }


_RELATIVE = "Coordinates run from 0 to 1000 across the screen, from the top left corner, whatever its size."


def schema(kind: DeviceKind, points: str = _RELATIVE) -> dict[str, Any]:
    """The tool of a kind of device as a JSON schema; ``points`` is a sentence that says what coordinates mean."""
    if kind == "phone":
        buttons = {"button": {"type": "string", "enum": ["Back", "Home", "Menu", "Enter", "Recents"]}}
        return _tool(TOOLS[kind], "a phone with a touch screen", _PHONE_ACTIONS, buttons, points)
    pixels = {"pixels": {"type": "integer", "description": "for scroll and hscroll"}}
    return _tool(TOOLS[kind], "a desktop computer with mouse and keyboard", _DESKTOP_ACTIONS, pixels, points)


def system_prompt(kind: DeviceKind, points: str = _RELATIVE) -> str:
    """The system message of a kind of device."""
    example = json.dumps({"name": TOOLS[kind], "arguments": {"action": "wait", "time": 1}})
    return (
        "You carry out tasks on a device. Each time you are shown its screen, choose the next action.\n\n"
        f"# Tools\n\nThis function is there for you:\n<tools>\n{json.dumps(schema(kind, points))}\n</tools>\n\n"
        "Answer with one call of it, as a JSON object with its name and arguments within <tool_call> tags, and "
        f"nothing behind it. For example:\n<tool_call>\n{example}\n</tool_call>"
    )


SCHEMAS: dict[DeviceKind, dict[str, Any]] = {kind: schema(kind) for kind in TOOLS}
"""The tool of each kind of device as a JSON schema, with relative coordinates."""
SYSTEM_PROMPTS: dict[DeviceKind, str] = {kind: system_prompt(kind) for kind in TOOLS}
"""The system message of each kind of device, with relative coordinates."""
