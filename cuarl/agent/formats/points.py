"""Coordinates: from a model's own grid to pixels of the screen and back.

A grid is the size of the space in which a family gives points: 1000 by 1000 for relative coordinates, the size of the
picture that the model saw for absolute ones. The map is the same: each side is scaled on its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cuarl.agent.formats.base import Size

SCALE = 1000
RELATIVE = Size(SCALE, SCALE)
"""0 to 1000 across the screen, whatever its size."""
TOLERANCE = 0.05
"""How far past the edge, as a share of the side, a point is still taken for a point on the edge.

A little overshoot is imprecision. More is a mix-up of scales, which clamping would reward.
"""


class Placed(NamedTuple):
    """A pixel, and whether it had to be moved onto the screen."""

    x: int
    y: int
    clamped: bool


def to_pixel(x: float, y: float, screen: Size, grid: Size = RELATIVE) -> Placed | None:
    """The pixel nearest to a point of ``grid``, on the screen; None if the point is too far off it."""
    if not all(-TOLERANCE * side <= v <= (1 + TOLERANCE) * side for v, side in ((x, grid.width), (y, grid.height))):
        return None
    inside = 0 <= x <= grid.width and 0 <= y <= grid.height
    return Placed(_nearest(x, screen.width, grid.width), _nearest(y, screen.height, grid.height), not inside)


def to_grid(x: int, y: int, screen: Size, grid: Size = RELATIVE, *, last: int = 0) -> tuple[int, int]:
    """The point of ``grid`` for a pixel; ``to_pixel`` gives the pixel back unless the grid is coarser than the screen.

    ``last`` is how far from the grid's far end the largest coordinate lies, for families that never say the end itself.
    """
    return (
        min(round(x * grid.width / screen.width), grid.width - last),
        min(round(y * grid.height / screen.height), grid.height - last),
    )


def _nearest(value: float, side: int, grid: int) -> int:
    return min(max(math.floor(value * side / grid + 0.5), 0), side - 1)
