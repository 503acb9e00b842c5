"""Where an action touched the screen, as shapes to lay over a screenshot: in its pixels, for an SVG of its size."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cuarl.types import Action, Click, Drag, LongPress, MouseDown, MouseUp, Move, Scroll, SelectOption, Swipe

_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


@dataclass(frozen=True, slots=True)
class Marks:
    """Circles as (x, y, radius), and a line with an arrow at its end as points; all in pixels of the screenshot."""

    unit: float
    """One hundredth of the screen's width: what widths of lines go by."""
    rings: tuple[tuple[float, float, float], ...] = ()
    dots: tuple[tuple[float, float, float], ...] = ()
    arrow: tuple[tuple[float, float], ...] = ()
    cross: tuple[float, float] | None = None

    @property
    def path(self) -> str:
        """The arrow's line, for ``points``."""
        return " ".join(f"{x:g},{y:g}" for x, y in self.arrow)

    @property
    def head(self) -> str:
        """The arrow's head, for ``points``."""
        (x0, y0), (x, y) = self.arrow[-2], self.arrow[-1]
        angle, length = math.atan2(y - y0, x - x0), 6 * self.unit
        sides = [(x - length * math.cos(angle + s * 0.5), y - length * math.sin(angle + s * 0.5)) for s in (-1, 1)]
        tip = (x + 0.2 * length * math.cos(angle), y + 0.2 * length * math.sin(angle))
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in (tip, *sides))


def marks(action: Action | None, width: int, height: int) -> Marks | None:
    """The marks of an action on a screen of ``width`` by ``height``; None where it has no place."""
    unit = max(1.0, min(width, height) / 100)
    match action:
        case Click():
            x, y = action.x + 0.5, action.y + 0.5
            rings = tuple((x, y, (5 + 2.5 * i) * unit) for i in range(action.count))
            return Marks(unit, rings=rings, dots=((x, y, unit),))
        case LongPress():
            return Marks(unit, dots=((action.x + 0.5, action.y + 0.5, 5 * unit),))
        case MouseDown(x=int(x), y=int(y)) | MouseUp(x=int(x), y=int(y)):
            return Marks(unit, dots=((x + 0.5, y + 0.5, 3 * unit),))
        case SelectOption():
            return Marks(unit, dots=((action.x + 0.5, action.y + 0.5, 3 * unit),))
        case Move():
            return Marks(unit, cross=(action.x + 0.5, action.y + 0.5))
        case Swipe():
            return _arrow(unit, ((action.x, action.y), (action.x2, action.y2)))
        case Drag():
            return _arrow(unit, tuple((x, y) for x, y in action.path))
        case Scroll():
            return _scroll(action, unit, width, height)
    return None


def _arrow(unit: float, path: tuple[tuple[float, float], ...]) -> Marks:
    points = tuple((x + 0.5, y + 0.5) for x, y in path)
    return Marks(unit, dots=((*points[0], 2 * unit),), arrow=points)


def _scroll(action: Scroll, unit: float, width: int, height: int) -> Marks:
    x = width / 2 if action.x is None else action.x
    y = height / 2 if action.y is None else action.y
    dx, dy = _DIRECTIONS[action.direction]
    reach = min(width, height) / 4
    return _arrow(unit, ((x - dx * reach / 2, y - dy * reach / 2), (x + dx * reach / 2, y + dy * reach / 2)))
