"""JSON as its standard has it, read and written.

Python's own reader takes ``NaN``, numbers beyond all bounds, halves of surrogate pairs and any depth, each of which
breaks something far from where it came in; its writer writes ``NaN``, which no other reader takes. Here the first are
refused by name, and the last becomes ``null``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 100
"""Deepest nesting of lists and objects."""
MAX_VALUES = 2_000_000
"""Most values and containers in one text: each takes some dozens of bytes, where its text may have two."""
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """A text is no JSON, or is beyond the bounds; the message says what is wrong with it."""


def loads(data: str | bytes | bytearray, *, max_depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON text in UTF-8 that a stranger sent. Raises NotJson.

    Integers must fit into 64 bits, other numbers into a double, and text must be text.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    _check_size(raw)
    try:
        value = _read(raw.decode("utf-8"), parse_int=_integer)
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from None
    # more brackets than levels are allowed: only then can it be too deep
    if raw.count(b"[") + raw.count(b"{") > max_depth:
        _check_depth(value, max_depth)
    if _SURROGATE.search(raw):
        _check_text(value)
    return value


def reply(data: str | bytes) -> Any:
    """The value of a JSON text that a service answered with, or that cuarl wrote itself. Raises NotJson.

    Every number must be finite. Any text passes, as answers of models may end within a character, and so do integers of
    any size, as seeds are.
    """
    try:
        return _read(data if isinstance(data, str) else data.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from None


def no_constant(name: str) -> Any:
    """For ``json``'s ``parse_constant``: refuse ``NaN`` and infinities. Raises NotJson."""
    raise NotJson(f"{name} is no number of JSON")


def finite_number(digits: str) -> float:
    """For ``json``'s ``parse_float``: a number that a double holds. Raises NotJson."""
    number = float(digits)
    if not math.isfinite(number):
        raise NotJson(f"the number {_short(digits)} is out of range")
    return number


def dumps(value: Any, **options: Any) -> str:
    """``json.dumps``, with ``null`` in place of numbers that are not finite."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, **options)


def dumps_exact(value: Any, **options: Any) -> str:
    """The same with the texts ``NaN``, ``Infinity`` and ``-Infinity`` there, which pydantic reads as numbers."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(finite(value, _NAMES), allow_nan=False, **options)


def finite(value: Any, names: Mapping[str, str] | None = None) -> Any:
    """Plain data with None in place of each number that is not finite, or its name in ``names``."""
    if isinstance(value, float):
        return value if math.isfinite(value) else (names or {}).get(repr(value))
    if isinstance(value, Mapping):
        return {key: finite(item, names) for key, item in value.items()}
    return [finite(item, names) for item in value] if isinstance(value, list | tuple) else value


def not_finite(value: Any) -> tuple[str | int, ...] | None:
    """Keys and positions that lead to a number that is not finite; None if there is none."""
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while todo:
        path, one = todo.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return path
        if isinstance(one, Mapping):
            todo += [((*path, str(key)), item) for key, item in one.items()]
        elif isinstance(one, list | tuple):
            todo += [((*path, index), item) for index, item in enumerate(one)]
    return None


def _check_size(raw: bytes) -> None:
    """Every value but the first stands behind a comma or within a bracket of its own."""
    if len(raw) > MAX_VALUES and sum(map(raw.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise NotJson(f"it has more than {MAX_VALUES:,} values")


def _read(text: str, **options: Any) -> Any:
    try:
        return json.loads(text, parse_constant=no_constant, parse_float=finite_number, **options)
    except RecursionError:
        raise NotJson(_too_deep(MAX_DEPTH)) from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None


def _integer(digits: str) -> int:
    # 20 digits hold 64 bits; Python itself refuses to read those of more than 4300
    if len(digits) <= 20 and -(1 << 63) <= (number := int(digits)) < 1 << 64:
        return number
    raise NotJson(f"the whole number {_short(digits)} does not fit into 64 bits")


def _short(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:20]}… ({len(digits)} characters)"


def _too_deep(max_depth: int) -> str:
    return f"it is nested deeper than {max_depth} levels"


def _check_depth(value: Any, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth):
        level = [item for one in level for item in _inside(one) if isinstance(item, dict | list)]
        if not level:
            return
    raise NotJson(_too_deep(max_depth))


def _check_text(value: Any) -> None:
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            _check_pairs(one)
        elif isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            todo += one


def _check_pairs(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotJson(f"\\u{ord(text[error.start]):04x} is half of a surrogate pair, and no character") from None


def _inside(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value
