"""Every line of text on a screen, letter by letter: what the renderer knows, and the base has to learn to see.

A scene's widgets are painted once more on a canvas that draws nothing and only notes which text goes where. So the
labels are those of the pixels, whatever the widget: titles, values, paragraphs, keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from PIL import Image

from cuarl.sim.desktop import widgets as d
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.cover import Mask
from cuarl.sim.kit.letters import line_width
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.kit.scene import Box, Placed, Scene
from cuarl.sim.kit.style import Colour, Style, fit, font_px, text_width

CUT = "…"
"""Ends a line that did not fit."""
COVERS = (w.Bar, w.Fab, d.WindowBox, d.TitleBar, d.Ruled, d.Sheet, d.NoticeBox, d.Tip)
"""What hides the text of items before it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text as drawn."""

    text: str
    box: Box
    """Pixels, around its letters: from the tops of capitals to the feet of descenders."""
    centres: tuple[float, ...]
    """Column of each letter's middle, pixels."""
    item: int
    """Index of the scene's item that it belongs to."""

    @property
    def middle(self) -> tuple[float, float]:
        """Of the box, pixels."""
        x0, y0, x1, y1 = self.box
        return (x0 + x1) / 2, (y0 + y1) / 2

    @property
    def whole(self) -> bool:
        """Whether nothing of it was cut off."""
        return not self.text.endswith(CUT)


class _Notes(Canvas):
    """A canvas that draws nothing and notes its texts."""

    __slots__ = ("noted",)

    def __init__(self, style: Style, size_px: tuple[int, int], transparent: bool) -> None:
        self.style, self.size, self.transparent = style, size_px, transparent
        self.width, self.height = size_px[0] / style.scale, size_px[1] / style.scale
        self.noted: list[tuple[str, int, int, int]] = []
        """Text, left end and vertical middle in pixels, font size in pixels."""

    def paste(self, colour: Colour, mask: Mask, x_px: int, y_px: int) -> None: ...
    def fill(self, colour: Colour, box: Box) -> None: ...
    def picture(self, image: Image.Image) -> None: ...
    def cover(self, cover: Image.Image) -> None: ...
    def rounded(self, x: float, y: float, w: float, h: float, radius: float, colour: Colour) -> None: ...
    def icon(self, name: str, cx: float, cy: float, size: float, colour: Colour) -> None: ...
    def outline(
        self, x: float, y: float, w: float, h: float, radius: float, colour: Colour, line: float = 1.0
    ) -> None: ...

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        colour: Colour,
        *,
        bold: bool = False,
        align: str = "left",
        width: float | None = None,
    ) -> None:
        """As ``Canvas.text`` places it."""
        if not text.strip():
            return
        px, scale = font_px(self.style, size), self.style.scale
        if width is not None:
            text = fit(text, px, width * scale, bold)
        left = x * scale
        if align != "left":
            left -= text_width(text, px, bold) * (0.5 if align == "centre" else 1.0)
        left = max(0, round(left)) if self.transparent else round(left)
        self.noted.append((text, left, round(y * scale), px))


def lines_of(scene: Scene) -> tuple[Line, ...]:
    """The lines that can be seen whole in height and are reachable, in painting order."""
    items = scene.items
    covers = [(i, item.visible) for i, item in enumerate(items) if isinstance(item.widget, COVERS)]
    found: list[Line] = []
    for i in range(scene.modal_from, len(items)):
        item = items[i]
        later = [box for j, box in covers if j > i]
        found += [line for line in _lines(item, scene.style, i) if _seen(line, item.visible, later)]
    return tuple(found)


def _lines(item: Placed, style: Style, index: int) -> Iterable[Line]:
    x0, y0, x1, y1 = item.box
    if isinstance(item.widget, w.Picture | w.Bar):
        return
    for text, left, middle, px in _noted(item.widget, (max(1, x1 - x0), max(1, y1 - y0)), style, not item.ground):
        pen, centres = float(x0 + left), []
        for char in text:
            advance = line_width(char, px)
            centres.append(pen + advance / 2)
            pen += advance
        high = round(px * 0.42)
        yield Line(text, (x0 + left, y0 + middle - high, round(pen), y0 + middle + high + 1), tuple(centres), index)


def _noted(widget: Any, size: tuple[int, int], style: Style, transparent: bool) -> list[tuple[str, int, int, int]]:
    notes = _Notes(style, size, transparent)
    PAINTERS[type(widget)](notes, widget)
    return notes.noted


def _seen(line: Line, visible: Box, later: Iterable[Box]) -> bool:
    x0, y0, x1, y1 = line.box
    a, b, c, e = visible
    if y0 < b - 1 or y1 > e + 1 or x0 < a - 1 or x1 > c + 2:
        return False
    return not any(x0 < right and x1 > left and y0 < low and y1 > high for left, high, right, low in later)
