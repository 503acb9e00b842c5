"""Draws curves: as an SVG picture, lines with their intervals as bands, and in characters for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from cuarl.safe_text import printable

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 400, 56, 16, 16, 48
_LEAST_WIDTH = 30
_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2")


class Mark(NamedTuple):
    """A share at a step, with its interval."""

    step: int
    value: float
    low: float
    high: float


def svg(lines: Sequence[tuple[str, Sequence[Mark]]], *, title: str) -> str:
    """A picture of shares by step, from 0 to 100 %; ``lines`` have names and marks in the order of their steps."""
    last = max((mark.step for _, marks in lines for mark in marks), default=0) or 1
    parts = [_axes(last, title)]
    for i, (name, marks) in enumerate(lines):
        parts.append(_line(marks, last, _COLOURS[i % len(_COLOURS)]))
        parts.append(_text(_LEFT + 12, _TOP + 16 + 18 * i, name, fill=_COLOURS[i % len(_COLOURS)]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="13">\n<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def in_characters(lines: Sequence[tuple[str, Sequence[Mark]]], *, width: int = 80, height: int = 11) -> str:
    """The same for a terminal: a letter for each mark of a line, its interval as a bar, and the names beneath."""
    marks = [mark for _, line in lines for mark in line]
    if not marks or width < _LEAST_WIDTH:
        return ""
    last, wide = max(mark.step for mark in marks) or 1, width - 8
    grid = [[" "] * wide for _ in range(height)]

    def row(share: float) -> int:
        return round((height - 1) * (1 - min(max(share, 0.0), 1.0)))

    for i, (_, line) in reversed(list(enumerate(lines))):  # the first one lies on top
        for mark in line:
            column = round((wide - 1) * mark.step / last)
            for at in range(row(mark.high), row(mark.low) + 1):
                grid[at][column] = "│" if grid[at][column] == " " else grid[at][column]
            grid[row(mark.value)][column] = _letter(i, len(lines))
    shares = {row(share): f"{share:.0%}" for share in (0.0, 0.5, 1.0)}
    drawn = [
        f"{shares.get(at, ''):>5} {'┤' if at in shares else '│'} {''.join(cells)}".rstrip()
        for at, cells in enumerate(grid)
    ]
    steps = f"step 0{last:>{max(1, wide - 6)}}"
    names = (
        [f"{_letter(i, len(lines))} {printable(name)}" for i, (name, _) in enumerate(lines)] if len(lines) > 1 else []
    )
    return "\n".join([*drawn, f"{'':5} └{'─' * (wide + 1)}", f"{'':8}{steps}", *names])


def _letter(number: int, of: int) -> str:
    return "●" if of == 1 else chr(ord("a") + number % 26)


def _x(step: float, last: int) -> float:
    return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last, 1)


def _y(share: float) -> float:
    return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share), 1)


def _axes(last: int, title: str) -> str:
    right, found = _WIDTH - _RIGHT, []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        found.append(f'<path d="M{_LEFT} {_y(share)}H{right}" stroke="#e4e4e7"/>')
        found.append(_text(_LEFT - 8, _y(share) + 4, f"{share:.0%}", anchor="end"))
    for step in sorted({0, last // 2, last}):
        found.append(_text(_x(step, last), _HEIGHT - _BOTTOM + 18, str(step), anchor="middle"))
    found.append(_text((_LEFT + right) / 2, _HEIGHT - 10, title, anchor="middle"))
    return "\n".join(found)


def _line(marks: Sequence[Mark], last: int, colour: str) -> str:
    way = " ".join(f"{_x(m.step, last)},{_y(m.value)}" for m in marks)
    edge = [(m.step, m.high) for m in marks] + [(m.step, m.low) for m in reversed(marks)]
    band = " ".join(f"{_x(step, last)},{_y(share)}" for step, share in edge)
    dots = "".join(f'<circle cx="{_x(m.step, last)}" cy="{_y(m.value)}" r="3" fill="{colour}"/>' for m in marks)
    return (
        f'<polygon points="{band}" fill="{colour}" fill-opacity="0.15"/>'
        f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}'
    )


def _text(x: float, y: float, words: str, *, anchor: str = "start", fill: str = "#3f3f46") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{escape(printable(words))}</text>'
