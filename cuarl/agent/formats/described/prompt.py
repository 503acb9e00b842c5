"""The device's tool of ``qwen3-vl`` with targets in words in the place of coordinates."""

from __future__ import annotations

import json
from typing import Any

from cuarl.agent.formats.base import DeviceKind
from cuarl.agent.formats.qwen3_vl.prompt import TOOLS, schema

PARTS = ("element", "label", "color", "size", "location", "shape")
"""What a target is described by; the first is a must."""
_TARGET = {
    "type": "object",
    "properties": {
        "element": {"type": "string", "description": "what it is, such as button, switch, icon or text field"},
        "label": {"type": "string", "description": "the text on it or beside it"},
        "color": {"type": "string"},
        "size": {"type": "string"},
        "location": {"type": "string", "description": "where on the screen, such as top left"},
        "shape": {"type": "string"},
    },
    "required": ["element"],
}
_POINTS = "Say what to act on in words that fit one thing on the screen only; somebody else finds it there."
_SCROLL = "scroll: show what lies in direction, with the finger on target or in the middle"


def described_schema(kind: DeviceKind) -> dict[str, Any]:
    """The tool as a JSON schema."""
    tool: dict[str, Any] = json.loads(json.dumps(schema(kind, _POINTS)).replace("coordinate", "target"))
    properties = tool["function"]["parameters"]["properties"]
    properties["target"] = _TARGET | {"description": "what to act on"}
    properties["target2"] = _TARGET | {"description": "where the movement ends"}
    if kind == "phone":
        action = properties["action"]
        action["enum"].append("scroll")
        action["description"] += f"; {_SCROLL}"
        properties["direction"] = {
            "type": "string",
            "enum": ["up", "down", "left", "right"],
            "description": "for scroll",
        }
    return tool


def described_prompt(kind: DeviceKind) -> str:
    """The system message."""
    word = "click" if kind == "phone" else "left_click"
    target = {"element": "switch", "label": "Wi-Fi"}
    example = json.dumps({"name": TOOLS[kind], "arguments": {"action": word, "target": target}})
    return (
        "You carry out tasks on a device. Each time you are shown its screen, choose the next action.\n\n"
        f"# Tools\n\nThis function is there for you:\n<tools>\n{json.dumps(described_schema(kind))}\n</tools>\n\n"
        "Answer with one call of it, as a JSON object with its name and arguments within <tool_call> tags, and "
        f"nothing behind it. For example:\n<tool_call>\n{example}\n</tool_call>"
    )
