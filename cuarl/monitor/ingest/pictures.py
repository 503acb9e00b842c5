"""Pictures in reported rows, which stand there as base64: stored as screenshots, with a reference in their place."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from cuarl.errors import StoreError
from cuarl.store.blobs import Blobs
from cuarl.types import ImageRef

_DATA = re.compile(r"data:image/[\w.+-]+;base64,([A-Za-z0-9+/=\s]+)")
_REFERENCE = re.compile(r"screenshot:([0-9a-f]{64}):(\d{1,6})x(\d{1,6})")
_DEEPEST = 60


def without_pictures(value: Any, blobs: Blobs, depth: int = 0) -> Any:
    """A tree of JSON with references for its pictures. What only looks like a picture stays. Raises StoreError."""
    if isinstance(value, str) and "data:image/" in value:
        return _DATA.sub(lambda found: _stored(found, blobs), value)
    if depth > _DEEPEST:
        return None
    if isinstance(value, dict):
        return {key: without_pictures(one, blobs, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [without_pictures(one, blobs, depth + 1) for one in value]
    return value


def _stored(found: re.Match[str], blobs: Blobs) -> str:
    try:
        data = base64.b64decode(found[1], validate=False)
        digest = blobs.put_file(data)
    except (binascii.Error, ValueError):
        return found[0]
    except StoreError as error:
        if "can't be read" in error.what:  # no picture after all
            return found[0][:200]
        raise
    picture = blobs.get(digest)
    return f"screenshot:{digest}:{picture.width}x{picture.height}"


def reference(text: Any) -> ImageRef | None:
    """The screenshot that a field refers to; None if it refers to none."""
    found = _REFERENCE.search(text) if isinstance(text, str) else None
    if found is None or not int(found[2]) or not int(found[3]):
        return None
    return ImageRef(digest=found[1], width=int(found[2]), height=int(found[3]))
