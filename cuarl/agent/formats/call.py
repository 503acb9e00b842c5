"""Finding JSON in an answer: exactly as it must be in training, with small repairs in evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from cuarl.types import ParseError

Code = Literal[
    "no_call", "bad_json", "unknown_tool", "unsupported_action", "unsupported_on_device", "missing_argument",
    "bad_argument", "out_of_range",
]  # fmt: skip
assert set(get_args(Code)) < set(get_args(ParseError.model_fields["code"].annotation))

THINKING = "think|thinking|thought|reasoning|seed:think"
"""Names of the tags around what a model thinks."""
_FENCE = "```"
_KEYED = re.compile(r'\{\s*"')
_MARK = re.compile(rf"<(?=\||/?(?:{THINKING}|tool_call)\s*>)|◁(?=/?think▷)|\[(?=/?THINK\])", re.I)
_SHOWN = 80
_LONGEST_REPAIR, _DEEPEST_REPAIR = 8_000, 64
"""Characters and brackets beyond which an answer is not mended: no call has so many, and mending takes long."""


class CallError(Exception):
    """Why an answer is not an action; becomes a ``ParseError``."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


class Decoded(NamedTuple):
    """A JSON value and where it ends in its text."""

    value: Any
    end: int


def whole_object(text: str, *, may_start: re.Pattern[str], strict: bool, warnings: list[str]) -> dict[str, Any]:
    """The JSON object that an answer is; if not ``strict``, the first in it that begins as ``may_start`` says.

    Raises ``CallError``.
    """
    if strict:
        if "{" not in text:
            raise CallError("no_call", "no JSON object in the answer")
        return as_object(loads(text))
    text = behind_samples(text, may_start, warnings, follows=_KEYED)
    found = may_start.search(text)
    if found is None:
        raise CallError("no_call", "no JSON object in the answer")
    value, end = decode(text[found.start() :], warnings)
    around = (text[: found.start()] + text[found.start() + end :]).replace("```json", "").replace("```", "").strip()
    if around:
        warnings.append(f"more text around the object: {short(around)}")
    return as_object(value)


def behind_samples(
    text: str, call: re.Pattern[str], warnings: list[str], *, follows: re.Pattern[str] | None = None
) -> str:
    """``text`` from behind the code fences whose calls are examples: those that a call outside of any fence follows.

    ``follows`` is how such a call begins, if it is told more strictly than ``call``.
    """
    while (first := call.search(text)) is not None and text.count(_FENCE, 0, first.start()) % 2:
        end = text.find(_FENCE, first.start())
        if end < 0:
            break
        rest = text[end + len(_FENCE) :]
        if not any(rest.count(_FENCE, 0, c.start()) % 2 == 0 for c in (follows or call).finditer(rest)):
            break
        warnings.append("a call in a code fence is an example: one outside of it follows")
        text = rest
    return text


def dumped(value: Any) -> str:
    """``value`` as JSON without tags and special tokens in it: the first character of each is written as an escape."""
    return escaped(json.dumps(value, ensure_ascii=False))


def escaped(text: str) -> str:
    r"""A string literal's inside with ``<`` written as ``\u003c`` where a tag or a special token would begin."""
    return _MARK.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_object(value: Any) -> dict[str, Any]:
    """``value``, which must be an object. Raises ``CallError``."""
    if not isinstance(value, dict):
        raise CallError("bad_json", f"no JSON object: {short(json.dumps(value))}")
    return value


def loads(text: str) -> Any:
    """All of ``text`` as JSON. Raises ``CallError``."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CallError("bad_json", f"{error}: {short(text.strip())}") from error


def decode(text: str, warnings: list[str], *, until: str | None = None) -> Decoded:
    """The first JSON value of ``text``, mended if need be; each repair is a warning. Raises ``CallError``.

    A broken value ends at ``until`` at the latest.
    """
    try:
        return Decoded(*_EXACT.raw_decode(text))
    except (ValueError, RecursionError) as first:
        try:
            value, end = _LOOSE.raw_decode(text)
        except (ValueError, RecursionError):
            broken = text if until is None else text.partition(until)[0]
            return Decoded(_mended(broken, first, warnings), len(broken))
        warnings.append("raw line breaks within a JSON text")
        return Decoded(value, end)


def _mended(text: str, why: Exception, warnings: list[str]) -> Any:
    """What json-repair makes of a broken value. Raises ``CallError`` if that is nothing."""
    import json_repair  # takes 40 ms, and only answers in evaluation are mended

    mended: Any = None
    if len(text) <= _LONGEST_REPAIR and text.count("{") + text.count("[") <= _DEEPEST_REPAIR:
        try:
            mended = json_repair.loads(text, skip_json_loads=True)
        except (ValueError, RecursionError):
            mended = None
    if isinstance(mended, list):
        mended = next((v for v in mended if isinstance(v, dict)), None)
    if not isinstance(mended, dict) or not mended:
        raise CallError("bad_json", f"{why}: {short(text)}") from why
    warnings.append(f"json-repair: {why}")
    return mended


def unknown(word: str, *, elsewhere: bool) -> CallError:
    """For a word that the device does not know; ``elsewhere``: other devices do."""
    return CallError("unsupported_on_device" if elsewhere else "unsupported_action", f"no action {word!r} here")


def word_of(call: Mapping[str, Any], name: str) -> str:
    """The word under ``name`` that says which action is meant. Raises ``CallError``."""
    word = call.get(name)
    if not isinstance(word, str):
        code: Code = "bad_argument" if name in call else "missing_argument"
        raise CallError(code, "the call does not say which action")
    return word


def sound(text: str) -> bool:
    """Whether a string is text that can be stored and encoded: without zeros and halves of surrogate pairs."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def short(text: str) -> str:
    """``text``, or its beginning."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_EXACT = json.JSONDecoder(parse_constant=_no_constant)
_LOOSE = json.JSONDecoder(parse_constant=_no_constant, strict=False)
