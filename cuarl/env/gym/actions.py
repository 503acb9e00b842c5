"""Actions in the words of gbox-mini-agent, whose points are shares of the screen, as actions in pixels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from cuarl.types import ACTION, Action, ParseError

FINISHED = "finished"
_BUTTONS: Mapping[str, str] = {
    "back": "back", "home": "home", "menu": "menu", "enter": "enter", "recents": "recents", "appswitch": "recents",
    "power": "power", "volumeup": "volume_up", "volumedown": "volume_down",
}  # fmt: skip
_WAIT_S = 1.0


def read_action(name: str, args: Mapping[str, Any], size: tuple[int, int]) -> Action | ParseError:
    """The action of a call, on a screen of ``size`` pixels; why it is none otherwise. Pure."""
    reader = _READERS.get(_plain(name))
    if reader is None:
        return ParseError(code="unsupported_action", message=f"the agent did {name!r}, which cuarl has no action for")
    try:
        return ACTION.validate_python(reader(args, size))
    except KeyError as error:
        return ParseError(code="missing_argument", message=f"{name} without {error.args[0]}")
    except (TypeError, ValueError, ValidationError) as error:
        return ParseError(code="bad_argument", message=f"{name}: {str(error).splitlines()[0]}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.casefold())


def _at(point: Any, size: tuple[int, int]) -> dict[str, int]:
    """Shares of the screen as a pixel within it. Raises TypeError, KeyError or ValueError."""
    if not isinstance(point, Mapping):
        raise TypeError(f"{point!r} is no point")
    shares = float(point["x"]), float(point["y"])
    if not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"({shares[0]:g}, {shares[1]:g}) is not within the screen")
    return {name: min(int(share * extent), extent - 1) for name, share, extent in zip("xy", shares, size, strict=True)}


def _first(args: Mapping[str, Any], *names: str) -> Any:
    found = next((args[name] for name in names if args.get(name) is not None), None)
    if found is None:
        raise KeyError(names[0])
    return found


def _point(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, int]:
    return _at(_first(args, "point", "startPoint", "target"), size)


def _click(**fields: Any) -> Callable[[Mapping[str, Any], tuple[int, int]], dict[str, Any]]:
    return lambda args, size: {"kind": "click", **_point(args, size), **fields}


def _held(args: Mapping[str, Any], kind: str) -> dict[str, Any]:
    held = args.get("durationMs")
    return {"kind": kind, **({"duration_ms": round(float(held))} if held is not None else {})}


def _long_press(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    return {**_held(args, "long_press"), **_point(args, size)}


def _ends(args: Mapping[str, Any], size: tuple[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    return _at(_first(args, "startPoint", "point", "target"), size), _at(_first(args, "endPoint", "destination"), size)


def _swipe(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    if args.get("endPoint") is None and args.get("destination") is None and args.get("direction") is not None:
        return _pushed(args, size)
    start, end = _ends(args, size)
    return {**_held(args, "swipe"), **start, "x2": end["x"], "y2": end["y"]}


def _pushed(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """A swipe in a direction, a third of the screen far."""
    across, down = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[str(args["direction"]).casefold()]
    start = _point(args, size) if args.get("point") is not None else {"x": size[0] // 2, "y": size[1] // 2}
    end = start["x"] + across * size[0] // 3, start["y"] + down * size[1] // 3
    x2, y2 = (max(0, min(value, extent - 1)) for value, extent in zip(end, size, strict=True))
    return {**_held(args, "swipe"), **start, "x2": x2, "y2": y2}


def _drag(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    start, end = _ends(args, size)
    return {**_held(args, "drag"), "path": [(start["x"], start["y"]), (end["x"], end["y"])]}


def _scroll(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    where = _point(args, size) if args.get("point") is not None else {}
    return {"kind": "scroll", **where, "direction": str(_first(args, "direction")).casefold()}


def _type(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    return {"kind": "type", "text": str(_first(args, "content", "text"))}


def _key(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    key = _first(args, "key", "keys", "content")
    if isinstance(key, str) and _plain(key) in _BUTTONS and "+" not in key:
        return {"kind": "button", "name": _BUTTONS[_plain(key)]}
    return {"kind": "key", "keys": re.split(r"[+\s]+", key.strip()) if isinstance(key, str) else list(key)}


def _button(name: str) -> Callable[[Mapping[str, Any], tuple[int, int]], dict[str, Any]]:
    return lambda args, size: {"kind": "button", "name": name}


def _wait(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    waited = args.get("durationMs")
    return {"kind": "wait", "seconds": min(60.0, float(waited) / 1000 if waited is not None else _WAIT_S)}


def _finished(args: Mapping[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    return {"kind": "finish", "success": args.get("success") is not False, "message": str(args.get("content") or "")}


_READERS: Mapping[str, Callable[[Mapping[str, Any], tuple[int, int]], dict[str, Any]]] = {
    **dict.fromkeys(("click", "tap", "leftclick", "touch"), _click()),
    **dict.fromkeys(("doubleclick", "doubletap", "leftdouble"), _click(count=2)),
    **dict.fromkeys(("rightclick", "rightsingle"), _click(button="right")),
    **dict.fromkeys(("longpress", "longclick"), _long_press),
    "swipe": _swipe, "drag": _drag, "scroll": _scroll, "wait": _wait, FINISHED: _finished, "finish": _finished,
    "move": lambda args, size: {"kind": "move", **_point(args, size)},
    **dict.fromkeys(("type", "input", "inputtext"), _type),
    **dict.fromkeys(("key", "presskey", "keypress", "hotkey", "button", "pressbutton", "systembutton"), _key),
    **{f"press{name}": _button(name) for name in ("back", "home")}, "back": _button("back"), "home": _button("home"),
    "openapp": lambda args, size: {"kind": "open_app", "name": str(_first(args, "content", "target", "name"))},
    "open": lambda args, size: {"kind": "open_app", "name": str(_first(args, "content", "target", "name"))},
    "answer": lambda args, size: {"kind": "answer", "text": str(_first(args, "content", "text"))},
}  # fmt: skip
