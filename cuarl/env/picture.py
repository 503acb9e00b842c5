"""Pictures that come from a device in pieces.

Cut from what stands around them, and asked for again if half is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from cuarl.errors import EnvError
from cuarl.types import Screenshot

SIGNATURE = b"\x89PNG\r\n\x1a\n"
AGAIN_S = (0.2, 0.5)
"""Pauses before a picture that can't be read is asked for again."""
_HEAD, _CHECK = 8, 4
"""Bytes of a chunk before its data (length and name) and behind it (PNG, section 5.3)."""


def cut_png(data: bytes) -> bytes:
    """The PNG within ``data``, without what devices print before and behind it; empty if it is not whole.

    Its chunks are followed, since the name of the last one may also turn up within the pixels' bytes.
    """
    start = data.find(SIGNATURE)
    at = start + len(SIGNATURE)
    while start >= 0 and at + _HEAD <= len(data):
        name, size = data[at + 4 : at + _HEAD], int.from_bytes(data[at : at + 4], "big")
        at += _HEAD + size + _CHECK
        if name == b"IEND":
            return data[start:at] if at <= len(data) else b""
    return b""


async def whole(ask: Callable[[], Awaitable[bytes]], whose: str) -> Screenshot:
    """The picture that ``ask`` gets, asked for again a few times if it can't be read. Raises EnvError.

    ``ask`` may raise ValueError for what is no encoded picture.
    """
    for pause in (*AGAIN_S, None):
        try:
            return Screenshot.decode(await ask())
        except (OSError, ValueError) as error:
            if pause is None:
                raise EnvError(f"the picture of {whose} can't be read: {error}") from error
            await anyio.sleep(pause)
    raise AssertionError("the last try returns or raises")
