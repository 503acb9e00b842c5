"""Finding JSON in an answer: exactly as it must be in training, with small repairs in evaluation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args

from cuarl.agent.formats.base import REPAIRED, UNCLOSED
from cuarl.types import ParseError

Code = Literal[
    "no_call",
    "bad_json",
    "unknown_tool",
    "unsupported_action",
    "unsupported_on_device",
    "missing_argument",
    "bad_argument",
    "out_of_range",
]
assert set(get_args(Code)) < set(get_args(ParseError.model_fields["code"].annotation))

THINKING = "think|thinking|thought|reasoning|seed:think"
"""Names of the tags around what a model thinks."""
_FENCE = "```"
_KEYED = re.compile(r'\{\s*"')
_MARK = re.compile(rf"<(?=\||/?(?:{THINKING}|tool_call)\s*>)|◁(?=/?think▷)|\[(?=/?THINK\])", re.I)
PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
"""How an action's numbers are written."""
_JSON_NUMBER = re.compile(rf"{PLAIN_NUMBER.pattern}(?:[eE][-+]?[0-9]+)?")
_LIKE_NUMBER = re.compile(r"[-+.]*\d")
_STRING_OR_POWER = re.compile(rf'"(?:[^"\\]|\\.)*"|{PLAIN_NUMBER.pattern}[eE][-+]?[0-9]+')
_BEHIND_STRING = re.compile(r"\s*(?:[,:}\]]|$)")
_STRUCTURE = '{}[],:"'
_CLOSING = {"{": "}", "[": "]"}
_SHOWN = 80
_LONGEST_REPAIR, _DEEPEST_REPAIR = 8_000, 64
"""Characters and brackets beyond which an answer is not repaired: no call has so many, and repairing takes long."""


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
    """``value`` as JSON in plain digits, the first character of tags and special tokens in it written as an escape."""
    return escaped(_STRING_OR_POWER.sub(_without_exponent, json.dumps(value, ensure_ascii=False)))


def _without_exponent(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else f"{Decimal(found[0]):f}"


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
        return json.loads(text, parse_constant=_no_constant, parse_float=_plain_float)
    except (ValueError, RecursionError) as error:
        raise CallError("bad_json", f"{error}: {short(text.strip())}") from error


def decode(text: str, warnings: list[str], *, until: str | None = None) -> Decoded:
    """The first JSON value of ``text``, repaired if need be; each repair is a warning. Raises ``CallError``.

    A broken value ends at ``until`` at the latest.
    """
    try:
        return Decoded(*_EXACT.raw_decode(text))
    except (ValueError, RecursionError) as first:
        try:
            value, end = _LOOSE.raw_decode(text)
        except (ValueError, RecursionError):
            broken, closed, _ = text.partition(until) if until else (text, "", "")
            return Decoded(_repaired(broken, first, warnings, closed=bool(closed)), len(broken))
        breaks = isinstance(first, json.JSONDecodeError)
        warnings.append("raw line breaks within a JSON text" if breaks else str(first))
        return Decoded(value, end)


def _repaired(text: str, why: Exception, warnings: list[str], *, closed: bool) -> Any:
    """What is meant by a broken value. Raises ``CallError`` if that is nothing, or would have to be made up."""
    if len(text) > _LONGEST_REPAIR or text.count("{") + text.count("[") > _DEEPEST_REPAIR:
        raise CallError("bad_json", f"{why}: {short(text)}") from why
    found = outline(text)
    if found.open_ended and not closed:
        raise CallError("bad_json", f"the call is cut off: …{text[-_SHOWN:]}") from why
    if odd := [w for w in found.words if _LIKE_NUMBER.match(w) and not _JSON_NUMBER.fullmatch(w)]:
        raise CallError("bad_json", f"a number is written in plain digits, not {odd[0]}") from why
    try:
        value = json.loads(text + found.missing, parse_constant=_no_constant, strict=False)
        warning = UNCLOSED
    except (ValueError, RecursionError):
        value, warning = _by_json_repair(text), f"{REPAIRED}: {why}"
    if not isinstance(value, dict) or not value:
        raise CallError("bad_json", f"{why}: {short(text)}") from why
    warnings.append(warning)
    return value


def _by_json_repair(text: str) -> Any:
    """What json-repair makes of ``text``: its first object, if any."""
    import json_repair  # takes 40 ms, and only answers in evaluation are repaired

    try:
        value: Any = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return next((v for v in value if isinstance(v, dict)), None) if isinstance(value, list) else value


class Outline(NamedTuple):
    """What of a broken JSON value can be told without understanding it."""

    words: list[str]
    """What stands outside of strings, apart from brackets and commas."""
    missing: str
    """The brackets that would close it."""
    open_ended: bool
    """Whether it ends within a string or a word, or where a value was to follow."""


def outline(text: str) -> Outline:
    """Look at quotes and brackets only. A quote that no comma, colon or bracket follows is part of its string."""
    words, word, quote, before, missing, at = list[str](), "", "", " ", "", 0
    text = text.rstrip().removesuffix("```").rstrip()
    while at < len(text):
        c = text[at]
        at += 1
        if quote:
            at += c == "\\"
            quote = "" if c == quote and _BEHIND_STRING.match(text, at) else quote
            continue
        if c in _STRUCTURE or c.isspace():
            words, word = ([*words, word] if word else words), ""
        if c in "{[":
            missing = _CLOSING[c] + missing
        elif c in "}]":
            missing = missing[1:]
            if not missing:
                return Outline(words, "", open_ended=False)
        elif c == '"' or (c == "'" and before in "{[:,"):
            quote = c
        elif c not in _STRUCTURE and not c.isspace():
            word += c
        before = before if c.isspace() else c
    return Outline([*words, word] if word else words, missing, open_ended=bool(quote or word or before in ":,"))


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


def _plain_float(number: str) -> float:
    if "e" in number.lower():
        raise ValueError(f"a number is written in plain digits, not {number}")
    return float(number)


_EXACT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_plain_float)
_LOOSE = json.JSONDecoder(parse_constant=_no_constant, strict=False)
