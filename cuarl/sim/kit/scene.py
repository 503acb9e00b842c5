"""From widgets to boxes: what is on the screen, where, and which part of it can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.style import Style, font_px, wrap

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are exclusive."""


class Placed(NamedTuple):
    """A widget and the box it fills; only the part inside ``clip`` is visible."""

    widget: w.Widget
    box: Box
    clip: Box
    visible: Box
    """The part of the box that can be seen (may be empty)."""
    region: str = ""
    """Id of the scroll region that it moves with."""
    ground: str = "page"
    """Colour that it is drawn on; empty where that varies."""


@dataclass(frozen=True, slots=True)
class Region:
    """An area whose content scrolls. ``offset`` and ``reach`` (its largest value) are in units."""

    id: str
    box: Box
    offset: int
    reach: int
    sideways: bool = False


class Part:
    """Items that were placed together in one style: known by identity, and shared by the scenes that show them."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Placed]) -> None:
        self.items = tuple(items)


class Drawn:
    """Where the renderer notes how it drew a scene, for as long as that frame is kept anywhere."""

    __slots__ = ("frame",)

    def __init__(self) -> None:
        self.frame: Callable[[], Any] = _nothing


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Scene:
    """One screen: items in painting order over a background."""

    size: tuple[int, int]
    style: Style
    background: str
    """``page``, ``wallpaper:NAME`` (darkened towards its edges) or ``picture:NAME``."""
    items: tuple[Placed, ...]
    regions: tuple[Region, ...] = ()
    modal_from: int = 0
    """Items before this index lie under a layer and can't be reached."""
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)
    """The same items by the parts that they came in, where the scene was put together of such."""
    drawn: Drawn = field(default_factory=Drawn, compare=False, repr=False)


class Spot(NamedTuple):
    """A widget at a place in units, before it is cut to a region."""

    widget: w.Widget
    x: float
    y: float
    width: float
    height: float
    ground: str | None = None
    """As in ``Placed``, where it differs from what the widgets around it are drawn on."""


TITLE, BODY, SMALL, HINT = 12.0, 10.5, 10.0, 8.5
"""Font sizes in units."""


def line_height(style: Style, size: float) -> float:
    """Height of a line of text, units."""
    return font_px(style, size) * 1.22 / style.scale


def row_text(row: w.Row, style: Style, width: float) -> tuple[float, tuple[str, ...], tuple[str, ...]]:
    """Left edge (units) and lines of a row's title and subtitle."""
    left = 40.0 if row.icon or row.tint else 12.0
    right = {"switch": 41.0, "split": 46.0, "radio": 28.0, "check": 28.0, "chevron": 24.0}.get(row.trailing, 10.0)
    if row.value:
        right += 6 + 6 * min(10, len(row.value))
    room = (width - left - right) * style.scale
    title = wrap(row.label, font_px(style, TITLE), room, style.bold or row.bold, 2)
    below = wrap(row.subtitle, font_px(style, SMALL), room, False, 2) if row.subtitle else ()
    return left, title, below


def height_of(widget: w.Widget, style: Style, width: float) -> float:
    """Height in units that a widget takes at a width."""
    known = _heights(style)
    height = known.get((widget, width))
    if height is None:
        if len(known) > KNOWN_HEIGHTS:
            known.clear()
        height = known[widget, width] = _measured(widget, style, width)
    return height


KNOWN_HEIGHTS = 4096


@lru_cache(maxsize=32)
def _heights(style: Style) -> dict[tuple[w.Widget, float], float]:
    """Heights measured so far in a style."""
    return {}


def _measured(widget: w.Widget, style: Style, width: float) -> float:
    match widget:
        case w.Row():
            _, title, below = row_text(widget, style, width)
            text = len(title) * line_height(style, TITLE) + len(below) * line_height(style, SMALL)
            return max(30.0, text + 14.0) + style.row_pad
        case w.Header():
            return 24.0
        case w.Paragraph():
            room = (width - 24) * style.scale
            lines = wrap(widget.text, font_px(style, widget.size), room)
            return len(lines) * line_height(style, widget.size) + 8
        case w.Bubble():
            room = (width - 70) * style.scale
            return len(wrap(widget.label, font_px(style, BODY), room)) * line_height(style, BODY) + 14
        case w.Field():
            return 38.0 + (widget.lines - 1) * line_height(style, TITLE)
        case w.Slider():
            return 42.0
        case w.Card():
            room = (width - (58 if widget.icon or widget.tint else 34)) * style.scale
            text = len(wrap(widget.text, font_px(style, SMALL), room, False, 3)) if widget.text else 0
            return 26 + text * line_height(style, SMALL) + 6
        case w.Space() | w.Display() | w.Picture():
            return widget.height
        case w.Grid():
            return -(-len(widget.children) // widget.columns) * (widget.height + widget.gap)
        case w.HBox():
            return widget.height or max((height_of(c, style, width) for c in widget.children), default=0.0)
        case _:
            return FIXED.get(type(widget), 30.0)


FIXED: dict[type[w.Widget], float] = {
    w.Button: 30.0, w.Tab: 30.0, w.Chip: 24.0, w.AppIcon: 50.0, w.FolderIcon: 50.0, w.Tile: 36.0,
    w.Divider: 5.0, w.Title: 30.0, w.Day: 22.0, w.IconButton: 30.0, w.Key: 24.0,
}  # fmt: skip
"""Heights in units of the widgets that have one height."""


def stack(widgets: Sequence[w.Widget], style: Style, x: float, y: float, width: float) -> list[Spot]:
    """Place widgets under one another; containers dissolve into their children."""
    spots: list[Spot] = []
    known = _heights(style)
    for widget in widgets:
        height = known.get((widget, width)) or height_of(widget, style, width)
        spots.extend(spread(widget, style, x, y, width, height))
        y += height
    return spots


def spread(widget: w.Widget, style: Style, x: float, y: float, width: float, height: float) -> Iterator[Spot]:
    """A widget's spots: itself, its children, or itself and the switch or cross on it."""
    if isinstance(widget, w.HBox):
        weights = widget.weights or (1.0,) * len(widget.children)
        room = width - 2 * widget.pad - widget.gap * (len(weights) - 1)
        left = x + widget.pad
        for child, weight in zip(widget.children, weights, strict=True):
            share = room * weight / sum(weights)
            yield from spread(child, style, left, y, share, height)
            left += share + widget.gap
    elif isinstance(widget, w.Grid):
        cell = (width - 2 * widget.pad - widget.gap * (widget.columns - 1)) / widget.columns
        for i, child in enumerate(widget.children):
            row, column = divmod(i, widget.columns)
            left, top = x + widget.pad + column * (cell + widget.gap), y + row * (widget.height + widget.gap)
            yield from spread(child, style, left, top, cell, widget.height)
    else:
        yield Spot(widget, x, y, width, height)
        if isinstance(widget, w.Row) and widget.switch is not None:
            yield Spot(widget.switch, x + width - 40, y, 40, height)
        elif isinstance(widget, w.Field) and widget.crossed:
            cross = w.IconButton(f"Clear {widget.label.lower()}", widget.clear, icon="close")
            yield Spot(cross, x + width - widget.MARGIN - widget.CROSS, y + 4, widget.CROSS, 30, ground="")


def total_height(spots: Sequence[Spot], y: float) -> float:
    """How far the spots reach below ``y``, units."""
    return max((s.y + s.height for s in spots), default=y) - y


def place(
    spots: Sequence[Spot], style: Style, clip: Box, shift: float = 0.0, region: str = "", ground: str = "page"
) -> list[Placed]:
    """Round spots to pixels, moved up by ``shift`` units, leaving out what lies wholly outside ``clip``."""
    scale, placed = style.scale, []
    left, high, right, low = clip
    for widget, x, y, width, height, own in spots:
        y0, y1 = round((y - shift) * scale), round((y - shift + height) * scale)
        if y0 >= low or y1 <= high or isinstance(widget, w.Space):
            continue
        x0, x1 = round(x * scale), round((x + width) * scale)
        if x0 < right and x1 > left:
            box = x0, y0, x1, y1
            seen = max(x0, left), max(y0, high), min(x1, right), min(y1, low)
            placed.append(Placed(widget, box, clip, seen, region, ground if own is None else own))
    return placed
