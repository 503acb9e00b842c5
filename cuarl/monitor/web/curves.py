"""Curves for a page: lines, bands and axes as numbers that a template draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 190, 44, 10, 10, 26
_MOST_DOTS = 30
_MOST_POINTS = 400
Points = Sequence[tuple[int, float]]
P = TypeVar("P")


class Tick(NamedTuple):
    """A line across, or a step beneath."""

    at: float
    words: str


class Dot(NamedTuple):
    """A point that can be hovered."""

    x: float
    y: float
    words: str
    step: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart."""

    name: str
    number: int
    points: str
    band: str
    dots: tuple[Dot, ...]
    last: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of lines by step."""

    title: str
    about: str
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    beneath: tuple[Tick, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def chart(
    title: str,
    lines: Mapping[str, Points],
    *,
    about: str = "",
    bands: Mapping[str, Sequence[tuple[int, float, float]]] | None = None,
    share: bool = False,
) -> Chart | None:
    """Lines by name, with intervals as bands where there are any; None where there is nothing to draw.

    ``share``: the values are shares, and the axis goes from 0 to 100 %.
    """
    kept = {name: _thinned([p for p in points if math.isfinite(p[1])]) for name, points in lines.items()}
    kept = {name: points for name, points in kept.items() if points}
    if not kept:
        return None
    bands = {name: _thinned(band) for name, band in (bands or {}).items() if name in kept}
    steps = [step for points in kept.values() for step, _ in points]
    values = [v for points in kept.values() for _, v in points] + [
        v for b in bands.values() for _, *vs in b for v in vs
    ]
    scale = _Scale(min(steps), max(steps), *((0.0, 1.0, 0.25) if share else _nice(min(values), max(values))))
    drawn = [
        _line(name, i, points, bands.get(name, ()), scale, share=share) for i, (name, points) in enumerate(kept.items())
    ]
    return Chart(title, about, tuple(drawn), scale.across(share=share), scale.beneath())


@dataclass(frozen=True, slots=True)
class _Scale:
    first: int
    last: int
    low: float
    high: float
    apart: float
    """From one line across to the next."""

    def placed(self, points: Points) -> list[tuple[float, float]]:
        """Where these are drawn."""
        per_step = (WIDTH - LEFT - RIGHT) / ((self.last - self.first) or 1)
        per_unit = (HEIGHT - TOP - BOTTOM) / (self.high - self.low)
        first, low, high, bottom = self.first, self.low, self.high, HEIGHT - BOTTOM
        return [
            (LEFT + per_step * (s - first), bottom - per_unit * ((low if v < low else high if v > high else v) - low))
            for s, v in points
        ]

    def x(self, step: int) -> float:
        return round(self.placed([(step, self.low)])[0][0], 1)

    def y(self, value: float) -> float:
        return round(self.placed([(self.first, value)])[0][1], 1)

    def across(self, *, share: bool) -> tuple[Tick, ...]:
        first, count = round(self.low / self.apart), round((self.high - self.low) / self.apart)
        values = [(first + i) * self.apart for i in range(count + 1)]
        words = [f"{v:.0%}" for v in values] if share else _told_apart(values)
        return tuple(Tick(self.y(v), text) for v, text in zip(values, words, strict=True))

    def beneath(self) -> tuple[Tick, ...]:
        return tuple(Tick(self.x(s), str(s)) for s in sorted({self.first, (self.first + self.last) // 2, self.last}))


def _line(
    name: str, number: int, points: Points, band: Sequence[tuple[int, float, float]], scale: _Scale, *, share: bool
) -> Line:
    def words(step: int, value: float) -> str:
        return f"{name}, step {step}: {value:.1%}" if share else f"{name}, step {step}: {value:.4g}"

    every = max(1, len(points) // _MOST_DOTS)
    places = scale.placed(points)
    dots = [
        Dot(round(x, 1), round(y, 1), words(s, v), s)
        for (x, y), (s, v) in zip(places[::every], points[::every], strict=True)
    ]
    edge = [(s, high) for s, _, high in band] + [(s, low) for s, low, _ in reversed(band)]
    return Line(name, number, _joined(places), _joined(scale.placed(edge)), tuple(dots), points[-1][1])


def _joined(places: Sequence[tuple[float, float]]) -> str:
    """The points of a line as SVG has them."""
    return " ".join(["%.1f,%.1f" % place for place in places])  # noqa: UP031 (a third faster, and there are thousands)


def _told_apart(values: Sequence[float]) -> list[str]:
    """With as many digits as it takes for no two to read the same."""
    found: list[str] = []
    for digits in (3, 4, 5):
        found = [_short(value, digits) for value in values]
        if len(set(found)) == len(found):
            break
    return found


def _short(value: float, digits: int) -> str:
    """A few characters, for an axis."""
    size = abs(value)
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= (1e4 if unit == 1e3 else unit):
            return f"{value / unit:.{digits}g}{name}"
    return f"{value:.{digits}g}" if size == 0 or size >= 1e-3 else f"{value:.2g}".replace("e-0", "e-")


def _thinned(points: Sequence[P]) -> list[P]:
    """At most some hundred, evenly: more than there are pixels would only cost time."""
    every = -(-len(points) // _MOST_POINTS) or 1
    return [*points[::every], *(points[-1:] if (len(points) - 1) % every else [])] if points else []


def _nice(low: float, high: float) -> tuple[float, float, float]:
    """Round ends of an axis around these, and how far its lines are apart: 1, 2 or 5 of a power of ten."""
    low = min(low, 0.0) if low < 0.25 * high else low
    if high <= low:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    apart = next(times * size for times in (1, 2, 5, 10) if (high - low) / (times * size) <= 4 + 1e-9)
    return math.floor(low / apart + 1e-9) * apart, math.ceil(high / apart - 1e-9) * apart, apart
