"""Pictures as environments give them: arrays of many shapes, nested lists, base64 text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from cuarl.errors import EnvError
from cuarl.types import Screenshot


class NoPicture(ValueError):
    """What was given can't be shown."""


def pixels(given: Any) -> np.ndarray:
    """``given`` as uint8 (height, width, 3). Raises NoPicture.

    Takes uint8 or floats from 0 to 1; grey, RGB or RGBA; channels last or first. Transparency is dropped.
    """
    array = np.asarray(given)
    if array.dtype == object or array.ndim not in (2, 3) or array.size == 0:
        raise NoPicture(f"an array of shape {array.shape} and type {array.dtype} is no picture")
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4) and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.shape[2] not in (1, 3, 4):
        raise NoPicture(f"a picture has 1, 3 or 4 channels, not shape {array.shape}")
    array = _bytes(array)
    return np.ascontiguousarray(np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array[:, :, :3])


def _bytes(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint8:
        return array
    low, high = float(array.min()), float(array.max())
    if np.issubdtype(array.dtype, np.floating):
        if not (low >= 0 and high <= 1):  # NaN, too
            raise NoPicture(f"a picture of floats goes from 0 to 1, not from {low:g} to {high:g}")
        return (array * 255 + 0.5).astype(np.uint8)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if not (low >= 0 and high <= 255):
        raise NoPicture(f"a picture of whole numbers goes from 0 to 255, not from {low:g} to {high:g}")
    return array.astype(np.uint8)


def screenshot(given: Any) -> Screenshot:
    """A picture out of JSON: base64 of an encoded picture (a ``data:`` URL, too), or nested lists. Raises EnvError."""
    try:
        if isinstance(given, str):
            _, _, text = given.rpartition(",") if given.startswith("data:") else ("", "", given)
            return Screenshot.decode(base64.b64decode(text, validate=True))
        return Screenshot(Image.fromarray(pixels(given)))
    except (NoPicture, binascii.Error, UnidentifiedImageError, OSError, ValueError) as error:
        shown = f"{given[:40]!r} …" if isinstance(given, str) else type(given).__name__
        raise EnvError(f"the environment's picture can't be read: {error}", where=shown) from error


def at(given: Any, path: str) -> Any:
    """What stands at a dotted path of nested mappings, lists and attributes; None if nothing does."""
    node = given
    for part in path.split("."):
        if isinstance(node, Mapping):
            node = node.get(part)
        elif isinstance(node, list | tuple) and part.isdecimal() and int(part) < len(node):
            node = node[int(part)]
        else:
            return None
    return node
