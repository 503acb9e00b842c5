"""Finding the call in an answer of the Qwen family: ``<tool_call>`` around JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cuarl.agent.formats.call import CallError, behind_samples, decode, loads, short

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FENCE = re.compile(r"```(?:json)?\s*(?=\{)")
_TAGGED = re.compile(_OPEN)
_BARE = re.compile(r'\{(?=\s*"(?:name|action)"\s*:)')
_ANY = re.compile(rf"{_OPEN}|{_BARE.pattern}")


def find_call(text: str, tool: str, *, strict: bool, warnings: list[str]) -> Mapping[str, Any]:
    """The arguments of the call to ``tool`` in ``text``. Raises ``CallError``."""
    text = behind_samples(text, _TAGGED if strict else _ANY, warnings)
    value = _strict_json(text) if strict else _lenient_json(text, warnings)
    if not isinstance(value, dict):
        raise CallError("bad_json", f"the call is no JSON object: {short(json.dumps(value))}")
    if not strict and "name" not in value and "action" in value:
        warnings.append("the call lacks its frame of name and arguments")
        return value
    name, arguments = value.get("name"), value.get("arguments")
    if name != tool:
        raise CallError("unknown_tool", f"there is no tool {short(json.dumps(name))}, only {tool}")
    if not strict and isinstance(arguments, str):
        warnings.append("the arguments are a text that holds JSON")
        arguments = decode(arguments, warnings).value
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
        raise CallError("bad_json", f"more text behind the call: {short(after.strip())}")
    if _CLOSE in before:
        raise CallError("bad_json", f"{_CLOSE} before the call")
    return loads(inside)


def _lenient_json(text: str, warnings: list[str]) -> Any:
    """The first whole JSON value where a call may be.

    Behind the tag, in a code fence, or a bare object with an action.
    """
    start = text.find(_OPEN)
    if start >= 0:
        start = text.find("{", start)
    else:
        fence = _FENCE.search(text)
        bare = _BARE.search(text)
        start = fence.end() if fence else bare.start() if bare else -1
        if start >= 0:
            warnings.append(f"the call is not within {_OPEN}")
    if start < 0:
        raise CallError("no_call", "no call in the answer")
    value, end = decode(text[start:], warnings, until=_CLOSE)
    rest = text[start + end :].replace(_CLOSE, "", 1).strip().removesuffix("```").strip()
    if rest:
        warnings.append(f"more text behind the call: {short(rest)}")
    return value
