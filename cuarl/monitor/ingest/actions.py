"""Actions as other trainers report them, in the terms of the recipe's tools, as ours; None where they can't be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from cuarl.types import ACTION, Action

_BUTTONS = {"volumeUp": "volume_up", "volumeDown": "volume_down"}


def read_action(row: Mapping[str, Any]) -> Action | None:
    """The action of a row of ``actions``: ``action_json``, or ``tool_name`` and ``tool_args``."""
    whole = _object(row.get("action_json"))
    name = row.get("action_name") or whole.get("name") or row.get("tool_name") or row.get("action_type")
    given = [row.get("action_args"), whole.get("args"), whole.get("arguments"), row.get("tool_args")]
    args = next((found for one in given if (found := _object(one))), whole)
    try:
        return ACTION.validate_python(_fields(str(args.get("action_type") or args.get("action") or name), args))
    except (ValidationError, ValueError, TypeError, LookupError, OverflowError):
        return None


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _fields(kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of our action. Raises what reading strange values raises."""
    if kind in ("tap", "click", "touch", "long_press"):
        x, y = _point(args, "target")
        count = 2 if args.get("option") == "double" else 1
        if kind == "long_press":
            return {"kind": "long_press", "x": x, "y": y}
        button = "right" if args.get("option") == "right" else "left"
        return {"kind": "click", "x": x, "y": y, "button": button, "count": count}
    if kind in ("swipe", "drag"):
        (x, y), (x2, y2) = _point(args, "start_target"), _point(args, "end_target")
        return {"kind": "swipe", "x": x, "y": y, "x2": x2, "y2": y2} | (
            {"kind": "drag", "path": ((x, y), (x2, y2))} if kind == "drag" else {}
        )
    return _without_place(kind, args)


def _without_place(kind: str, args: Mapping[str, Any]) -> dict[str, Any]:
    match kind:
        case "input" | "type":
            return {"kind": "type", "text": str(args["text"])}
        case "scroll":
            return {"kind": "scroll", "direction": args["direction"], "amount": int(args.get("distance", 300))}
        case "key_press" | "key":
            return {"kind": "key", "keys": tuple(map(str, args["keys"]))}
        case "button_press":
            name = args["button"] if isinstance(args["button"], str) else args["button"][0]
            return {"kind": "button", "name": _BUTTONS.get(name, name)}
        case "wait":
            return {"kind": "wait", "seconds": float(args.get("duration", 1.0))}
        case "finish":
            message = str(args.get("result_message", ""))
            return {"kind": "finish", "success": bool(args.get("success", True)), "message": message}
    raise ValueError(kind)


def _point(args: Mapping[str, Any], name: str) -> tuple[int, int]:
    """Where: in the coordinates of a target, or beside it. Raises LookupError, TypeError, ValueError."""
    target = args.get(name)
    found = target.get("coordinates") if isinstance(target, dict) else args.get("coordinate", args.get("coordinates"))
    if found is None:
        found = (args["x"], args["y"])
    return round(float(found[0])), round(float(found[1]))
