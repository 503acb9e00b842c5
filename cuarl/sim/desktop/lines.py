"""Fixed-width text in a window: breaking it into lines, and from a point back to a position. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cuarl.sim.desktop.geometry import frame_of
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.widgets import CELL, TextLine
from cuarl.sim.desktop.world import DesktopWorld, Window

BAR = 9.0
"""Width of a scroll bar, units."""


class Span(NamedTuple):
    """A line as shown: the characters from ``start`` to ``end``; ``last`` if a line of the text ends with it."""

    start: int
    end: int
    last: bool


def columns(world: DesktopWorld, window: Window) -> int:
    """How many characters fit into a line of a window's text."""
    return max(8, int((frame_of(world, window).width - BAR - 2 * CELL) // CELL))


@lru_cache(maxsize=512)
def spans(text: str, width: int) -> tuple[Span, ...]:
    """The lines of a text, those longer than ``width`` characters broken."""
    found, start = list[Span](), 0
    for line in text.split("\n"):
        for at in range(0, max(1, len(line)), width):
            end = min(at + width, len(line))
            found.append(Span(start + at, start + end, end == len(line)))
        start += len(line) + 1
    return tuple(found)


def text_lines(content: TextBox, width: int, name: str, *, focused: bool) -> tuple[TextLine, ...]:
    """An edited text as widgets."""
    a, b = content.selection
    shown = []
    for start, end, last in spans(content.text, width):
        here = focused and a == b and (start <= content.caret < end or (content.caret == end and last))
        marked = (max(a, start) - start, min(b, end) - start) if a < b and a < end + last and b > start else (-1, -1)
        caret = content.caret - start if here else -1
        shown.append(TextLine("", name=name, start=start, text=content.text[start:end], caret=caret, marked=marked))
    return tuple(shown)


def row_of(content: TextBox, width: int) -> int:
    """The shown line that the caret is on."""
    for row, (start, end, last) in enumerate(spans(content.text, width)):
        if start <= content.caret < end or (content.caret == end and last):
            return row
    return 0


def position_in(line: TextLine, x: float) -> int:
    """Position in the text of a point ``x`` units from the left edge of a line."""
    column = round((x - CELL) / CELL)
    return line.start + min(max(0, column), len(line.text))
