"""Finding the call in an answer: markup and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from cuarl.types import ParseError

Code = Literal[
    "no_call", "bad_json", "unknown_tool", "unsupported_action", "unsupported_on_device", "missing_argument",
    "bad_argument", "out_of_range",
]  # fmt: skip
assert set(get_args(Code)) < set(get_args(ParseError.model_fields["code"].annotation))

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FENCE = re.compile(r"```(?:json)?\s*(?=\{)")
_SHOWN = 80


class CallError(Exception):
    """Why an answer is not an action; becomes a ``ParseError``."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


def find_call(text: str, tool: str, *, strict: bool, warnings: list[str]) -> Mapping[str, Any]:
    """The arguments of the call to ``tool`` in ``text``. Raises ``CallError``."""
    value = _strict_json(text) if strict else _lenient_json(text, warnings)
    if not isinstance(value, dict):
        raise CallError("bad_json", f"the call is no JSON object: {_short(json.dumps(value))}")
    if not strict and "name" not in value and "action" in value:
        warnings.append("the call lacks its frame of name and arguments")
        return value
    name, arguments = value.get("name"), value.get("arguments")
    if name != tool:
        raise CallError("unknown_tool", f"there is no tool {_short(json.dumps(name))}, only {tool}")
    if not strict and isinstance(arguments, str):
        warnings.append("the arguments are a text that holds JSON")
        arguments = _decode(arguments)[0]
    if not isinstance(arguments, dict):
        raise CallError("bad_json", "the call has no arguments object")
    if strict and set(value) != {"name", "arguments"}:
        raise CallError("bad_json", "the call has more than a name and arguments")
    return arguments


def _strict_json(text: str) -> Any:
    """The JSON of the one call at the end of ``text``."""
    before, opened, rest = text.partition(_OPEN)
    if not opened:
        raise CallError("no_call", f"no {_OPEN} in the answer")
    inside, closed, after = rest.partition(_CLOSE)
    if not closed:
        raise CallError("no_call", f"the call is not closed by {_CLOSE}")
    if after.strip():
        raise CallError("bad_json", f"more text behind the call: {_short(after.strip())}")
    if _CLOSE in before:
        raise CallError("bad_json", f"{_CLOSE} before the call")
    try:
        return json.loads(inside, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CallError("bad_json", f"{error}: {_short(inside.strip())}") from error


def _lenient_json(text: str, warnings: list[str]) -> Any:
    """The first whole JSON value where a call may be: behind the tag, in a code fence, or a bare object with an action."""
    start = text.find(_OPEN)
    if start >= 0:
        start = text.find("{", start)
    else:
        fence = _FENCE.search(text)
        bare = re.search(r'\{(?=\s*"(?:name|action)"\s*:)', text)
        start = fence.end() if fence else bare.start() if bare else -1
        if start >= 0:
            warnings.append(f"the call is not within {_OPEN}")
    if start < 0:
        raise CallError("no_call", "no call in the answer")
    value, end, repaired = _decode(text[start:])
    if repaired:
        warnings.append("raw line breaks within a JSON text")
    rest = text[start + end :].replace(_CLOSE, "", 1).strip().removesuffix("```").strip()
    if rest:
        warnings.append(f"more text behind the call: {_short(rest)}")
    return value


def _decode(text: str) -> tuple[Any, int, bool]:
    """The first JSON value, where it ends, and whether it held raw control characters."""
    try:
        return (*_EXACT.raw_decode(text), False)
    except (ValueError, RecursionError) as first:
        try:
            return (*_LOOSE.raw_decode(text), True)
        except (ValueError, RecursionError):
            raise CallError("bad_json", f"{first}: {_short(text)}") from first


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_EXACT = json.JSONDecoder(parse_constant=_no_constant)
_LOOSE = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
