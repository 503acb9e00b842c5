"""The size at which Qwen's image processors show a picture to the model. Pure; needs no torch."""

from __future__ import annotations

import math


def whole_tokens(width: int, height: int, *, side: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Width and height in pixels that a model sees of a ``width`` x ``height`` picture (Qwen's ``smart_resize``).

    Both become multiples of ``side``, a token's side in pixels; the aspect is kept as far as possible, and the area
    lies within ``min_pixels`` and ``max_pixels``. Raises ValueError for an aspect beyond 200.
    """
    if max(width, height) > 200 * min(width, height):
        raise ValueError(f"a picture of {width}x{height} is too narrow: the aspect must be at most 200")
    w, h = round(width / side) * side, round(height / side) * side
    if w * h > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        w, h = (max(side, math.floor(v / shrink / side) * side) for v in (width, height))
    elif w * h < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        w, h = (math.ceil(v * grow / side) * side for v in (width, height))
    return w, h
