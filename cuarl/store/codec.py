"""How values become columns, exactly: token ids and logprobs as packed bytes, any text and JSON on any database.

PostgreSQL refuses U+0000 in text and in JSONB, no driver encodes a lone surrogate, JSONB re-prints large floats as
integers, and JSON has no infinities. Policies and devices produce all of these, so such values are escaped with a
private-use character that is itself escaped; everything else is stored as it is. ``decode(encode(v)) == v``.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cuarl import strict_json

_ESCAPE = "\ue0ff"
_UNSAFE_CHARACTER = re.compile(f"[\x00\ud800-\udfff{_ESCAPE}]")
_ESCAPED_CHARACTER = re.compile(f"{_ESCAPE}([0-9a-f]{{4}})")
_FLOAT = f"{_ESCAPE}f"
_ESCAPE_IN_JSON = "\\ue0ff"
# JSONB keeps numbers as decimals: up to here a float's shortest form has no exponent and comes back as a float.
_LARGEST_PLAIN_FLOAT = 1e16


def encode_text(text: str) -> str:
    """Make any Python string storable."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSAFE_CHARACTER.sub(lambda m: f"{_ESCAPE}{ord(m[0]):04x}", text)


def decode_text(text: str) -> str:
    """Undo ``encode_text``."""
    return text if _ESCAPE not in text else _ESCAPED_CHARACTER.sub(lambda m: chr(int(m[1], 16)), text)


def encode_json(value: Any) -> Any:
    """Make a tree of mappings, sequences and scalars storable as JSON. Raises TypeError for anything else."""
    kind = type(value)  # first what most values are: this is called for each of them
    if kind is str:
        return value if value.isascii() and "\x00" not in value else encode_text(value)
    if kind is dict:
        return {_key(k): encode_json(v) for k, v in value.items()}
    if value is None or kind is int or kind is bool:
        return value
    if isinstance(value, str):
        return encode_text(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        plain = abs(value) < _LARGEST_PLAIN_FLOAT  # False for infinities and NaN, too
        return value if plain else f"{_FLOAT}{value!r}"
    if isinstance(value, Mapping):
        return {_key(k): encode_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [encode_json(v) for v in value]
    raise TypeError(f"JSON has no {type(value).__name__}: {value!r:.80}")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"JSON has text keys only, not {key!r}")
    return encode_text(key)


def decode_json(value: Any) -> Any:
    """Undo ``encode_json``; sequences come back as lists."""
    if isinstance(value, str):
        return float(value[len(_FLOAT) :]) if value.startswith(_FLOAT) else decode_text(value)
    if isinstance(value, dict):
        return {decode_text(k): decode_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [decode_json(v) for v in value]
    return value


def dump_line(value: Mapping[str, Any]) -> str:
    """One line of strict JSON for files, in plain ASCII. Numbers that are not finite stand as escaped texts."""
    try:
        line = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_escaped(value), separators=(",", ":"), allow_nan=False)
    return line if _ESCAPE_IN_JSON not in line else json.dumps(_escaped(value), separators=(",", ":"))


def load_line(line: str) -> Any:
    """Undo ``dump_line``; sequences come back as lists. Raises ValueError for what is no strict JSON."""
    value = strict_json.reply(line)
    return decode_json(value) if _ESCAPE_IN_JSON in line or _ESCAPE in line else value


def _escaped(value: Any) -> Any:
    """As ``encode_json``, but only what JSON itself has no word for."""
    if isinstance(value, str):
        return value.replace(_ESCAPE, f"{_ESCAPE}{ord(_ESCAPE):04x}")
    if isinstance(value, float):
        return value if math.isfinite(value) else f"{_FLOAT}{value!r}"
    if isinstance(value, Mapping):
        return {_escaped(k): _escaped(v) for k, v in value.items()}
    return [_escaped(v) for v in value] if isinstance(value, list | tuple) else value


def pack_ids(ids: Sequence[int]) -> bytes:
    """Token ids as deflated little-endian int32: runs of image placeholders all but vanish.

    Raises OverflowError for an id outside 32 bits.
    """
    return zlib.compress(np.array(ids, dtype="<i4").tobytes(), level=1)


def unpack_ids(data: bytes) -> tuple[int, ...]:
    """Undo ``pack_ids``. Raises ValueError for bytes that are damaged."""
    try:
        plain = zlib.decompress(data)
    except zlib.error as error:
        raise ValueError(f"token ids are damaged: {error}") from error
    return tuple(np.frombuffer(plain, dtype="<i4").tolist())


def pack_floats(values: Sequence[float]) -> bytes:
    """Floats as little-endian float64, bit for bit."""
    return np.array(values, dtype="<f8").tobytes()


def unpack_floats(data: bytes) -> tuple[float, ...]:
    """Undo ``pack_floats``."""
    return tuple(np.frombuffer(data, dtype="<f8").tolist())
