"""Relative coordinates: 0 to 1000 across the screen, whatever its size."""

from __future__ import annotations

import math
from typing import NamedTuple

from cuarl.agent.formats.base import Size

SCALE = 1000
TOLERANCE = 0.05
"""How far past the edge, as a share of the side, a point is still taken for a point on the edge.

A little overshoot is imprecision. More is a mix-up of scales, which clamping would reward.
"""


class Placed(NamedTuple):
    """A pixel, and whether it had to be moved onto the screen."""

    x: int
    y: int
    clamped: bool


def to_pixel(x: float, y: float, screen: Size) -> Placed | None:
    """The pixel nearest to a relative point, on the screen; None if the point is too far off it."""
    low, high = -TOLERANCE * SCALE, (1 + TOLERANCE) * SCALE
    if not (low <= x <= high and low <= y <= high):
        return None
    inside = 0 <= x <= SCALE and 0 <= y <= SCALE
    return Placed(_nearest(x, screen.width), _nearest(y, screen.height), not inside)


def to_relative(x: int, y: int, screen: Size) -> tuple[int, int]:
    """The relative point of a pixel; ``to_pixel`` gives the pixel back on screens of up to 1000 pixels a side."""
    return round(x * SCALE / screen.width), round(y * SCALE / screen.height)


def _nearest(value: float, side: int) -> int:
    return min(max(math.floor(value * side / SCALE + 0.5), 0), side - 1)
