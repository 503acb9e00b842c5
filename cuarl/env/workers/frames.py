"""How a worker and its owner talk: a line of JSON that ends with the length of a picture, then its pixels.

Both sides use this module, and nothing else of cuarl is needed for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_PICTURE = 256 * 2**20
SIZE = "picture_bytes"


def pack(message: Mapping[str, Any], picture: bytes = b"") -> bytes:
    """A frame of a JSON object and raw bytes."""
    return json.dumps({**message, SIZE: len(picture)}).encode() + b"\n" + picture


def picture_length(message: Mapping[str, Any]) -> int:
    """How many bytes follow the line of ``message``. Raises ValueError for nonsense."""
    length = int(message[SIZE])
    if not 0 <= length <= LONGEST_PICTURE:
        raise ValueError(f"a picture of {length} bytes")
    return length


class Refused(Exception):
    """Raised by a worker's ``Call`` for a request that can't be met and leaves the worker as it was."""


Call = Callable[[Mapping[str, Any]], tuple[Mapping[str, Any], bytes]]
"""What a worker does with one request: a reply, and a picture."""
