"""Where a demonstration points: within what its teacher aims at, and in the steps in which the model names points.

A teacher points at the middle of things, to the pixel. A policy that imitates that learns the middle and little else,
and a small one forgets what it could do. Spread over the whole thing, a demonstration says what to act on.
"""

from __future__ import annotations

import random

from cuarl.agent.formats import Size
from cuarl.agent.formats.points import RELATIVE
from cuarl.types import Action, Click, LongPress, placed, points

Box = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels; the last two outside."""
INNER, WIDEST = 0.36, 0.12
"""How far from the middle a point may be drawn: a share of the box's side, and at most a share of the screen's. These
are the spread with which the shipped base was taught to point (``pretrain/skills.py``), so that imitation doesn't
narrow it."""


def within(action: Action, box: Box, screen: Size, rng: random.Random) -> Action:
    """``action``, a tap or a long press, anywhere in the middle part of ``box``; any other as it is."""
    if not isinstance(action, Click | LongPress):
        return action
    x = _between(box[0], box[2], screen.width, rng)
    y = _between(box[1], box[3], screen.height, rng)
    return placed(action, [(x, y)])


def _between(low: int, high: int, side: int, rng: random.Random) -> int:
    middle, reach = (low + high) / 2, min((high - low) * INNER, side * WIDEST)
    return min(max(round(rng.uniform(middle - reach, middle + reach)), low), high - 1)


def stepped(action: Action, screen: Size, step: int) -> Action:
    """``action`` in thousandths of ``screen``, its points multiples of ``step``, the last of them short of 1000."""
    shown = points(action)
    if not shown:
        return action
    last = RELATIVE.width - step

    def near(value: int, side: int) -> int:
        return min(round(value * RELATIVE.width / side / step) * step, last)

    return placed(action, [(near(x, screen.width), near(y, screen.height)) for x, y in shown])
