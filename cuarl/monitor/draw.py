"""Draws what an agent did: a screenshot with the action on it, as a picture or as coloured half-block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

from cuarl.agent.describe import describe
from cuarl.safe_text import printable
from cuarl.trajectory import Turn
from cuarl.types import (
    Action,
    Click,
    Drag,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    SelectOption,
    Swipe,
)

if TYPE_CHECKING:
    from rich.text import Text

Point = tuple[float, float]

_MARK = (255, 45, 85, 255)
_HALO = (255, 255, 255, 230)
BACKGROUND = (24, 24, 27)
"""What captions stand on."""
_CAPTION_TEXT = (244, 244, 245)
_CAPTION_WARNING = (253, 186, 116)
_SMALLEST_WIDTH = 384
_LONGEST_CAPTION = 500
_SMOOTHING = 3
"""Marks are drawn this much larger and scaled down, since Pillow's lines have hard edges."""
_REACH = 18
"""How far a mark reaches beyond its places at most, in hundredths of the picture's width: a triple click's, to 14."""
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


# --- words ---------------------------------------------------------------------------------------------------------


def caption(turn: Turn) -> tuple[str, str]:
    """What a turn did, and what was wrong with it (empty if nothing)."""
    if turn.action is None:
        error = turn.parse_error
        return "no action", printable(f"{error.code}: {error.message}") if error else ""
    troubles = [f"rejected: {turn.rejected}"] if turn.rejected else []
    return describe(turn.action), printable("; ".join([*troubles, *turn.warnings]))


# --- pictures ------------------------------------------------------------------------------------------------------


def annotate(screenshot: Image.Image, turn: Turn) -> Image.Image:
    """The screenshot that ``turn`` saw, with its action on it and a caption beneath. Small screens are enlarged."""
    scale = max(1, math.ceil(_SMALLEST_WIDTH / screenshot.width))
    picture = screenshot.convert("RGB").resize(
        (screenshot.width * scale, screenshot.height * scale), Image.Resampling.NEAREST
    )
    if turn.action is not None:
        picture = _marked(picture, turn.action, scale)
    what, trouble = caption(turn)
    return _with_caption(picture, f"{turn.index + 1}. {what}", trouble)


def final(screenshot: Image.Image, words: str, trouble: str = "") -> Image.Image:
    """The last screen, with how the episode ended beneath."""
    scale = max(1, math.ceil(_SMALLEST_WIDTH / screenshot.width))
    size = (screenshot.width * scale, screenshot.height * scale)
    return _with_caption(screenshot.convert("RGB").resize(size, Image.Resampling.NEAREST), printable(words), trouble)


def _marked(picture: Image.Image, action: Action, scale: int) -> Image.Image:
    """``picture`` with the mark of ``action`` drawn into it, whose places are in pixels of the screenshot."""
    places = [((x + 0.5) * scale, (y + 0.5) * scale) for x, y in _places(action, picture.size, scale)]
    box = _around(places, picture.size) if places else None
    if box is None:
        return picture
    left, top, right, bottom = box
    # of the mark's surroundings alone: a whole screen, this much larger, takes a hundred megabytes and as many ms
    layer = Image.new("RGBA", ((right - left) * _SMOOTHING, (bottom - top) * _SMOOTHING), (*_HALO[:3], 0))
    pen = _Pen(ImageDraw.Draw(layer), unit=picture.width * _SMOOTHING / 100)
    path = [((x - left) * _SMOOTHING, (y - top) * _SMOOTHING) for x, y in places]
    match action:
        case Click():
            pen.ring(path[0], rings=action.count)
        case LongPress() | MouseDown() | MouseUp() | SelectOption():
            pen.disc(path[0])
        case Move():
            pen.cross(path[0])
        case _:
            pen.arrow(path)
    smooth = layer.resize((right - left, bottom - top), Image.Resampling.LANCZOS)
    picture.paste(Image.alpha_composite(picture.crop(box).convert("RGBA"), smooth).convert("RGB"), box)
    return picture


def _places(action: Action, size: tuple[int, int], scale: int) -> Sequence[Point]:
    """Where ``action`` is marked on a picture of ``size``, in pixels of the screenshot; nowhere without a place."""
    match action:
        case Click() | LongPress() | Move() | SelectOption():
            return [(action.x, action.y)]
        case MouseDown(x=int(x), y=int(y)) | MouseUp(x=int(x), y=int(y)):
            return [(x, y)]
        case Swipe():
            return [(action.x, action.y), (action.x2, action.y2)]
        case Drag():
            return action.path
        case Scroll():
            across = size[0] / scale / 2 if action.x is None else action.x
            down = size[1] / scale / 2 if action.y is None else action.y
            dx, dy = _DIRECTIONS[action.direction]
            half = min(size) / scale / 8
            return [(across - dx * half, down - dy * half), (across + dx * half, down + dy * half)]
        case _:
            return []


def _around(places: Sequence[Point], size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """The part of a picture of ``size`` that a mark at ``places`` lies in; none if they are beside the picture."""
    reach = size[0] * _REACH / 100
    xs, ys = [x for x, _ in places], [y for _, y in places]
    left, top = max(0, math.floor(min(xs) - reach)), max(0, math.floor(min(ys) - reach))
    right, bottom = min(size[0], math.ceil(max(xs) + reach)), min(size[1], math.ceil(max(ys) + reach))
    return (left, top, right, bottom) if left < right and top < bottom else None


class _Pen:
    """Draws marks twice: wide in the halo's colour, then in the mark's, so that they show on any background."""

    def __init__(self, draw: ImageDraw.ImageDraw, unit: float) -> None:
        self._draw, self._unit = draw, unit

    def ring(self, centre: Point, rings: int) -> None:
        u = self._unit
        for width, colour in ((2.2 * u, _HALO), (1.1 * u, _MARK)):
            for i in range(rings):
                self._circle(centre, (6 + 3 * i) * u + width / 2, outline=colour, width=width)
            self._circle(centre, 0.2 * u + width / 2, fill=colour)

    def disc(self, centre: Point) -> None:
        self._circle(centre, 5.7 * self._unit, fill=_HALO)
        self._circle(centre, 5 * self._unit, fill=(*_MARK[:3], 150), outline=_MARK, width=1.2 * self._unit)

    def cross(self, centre: Point) -> None:
        (x, y), u = centre, self._unit
        for width, colour in ((2.6 * u, _HALO), (1.2 * u, _MARK)):
            self._line([(x - 4 * u, y), (x + 4 * u, y)], width, colour)
            self._line([(x, y - 4 * u), (x, y + 4 * u)], width, colour)

    def arrow(self, path: Sequence[Point]) -> None:
        u = self._unit
        for width, colour, grow in ((3.0 * u, _HALO, 0.8 * u), (1.4 * u, _MARK, 0.0)):
            self._line(path, width, colour)
            self._circle(path[0], 2.0 * u + grow, fill=colour)
            self._head(path, 6 * u + 2 * grow, colour)

    def _head(self, path: Sequence[Point], length: float, colour: tuple[int, ...]) -> None:
        (x0, y0), (x, y) = path[-2], path[-1]
        angle = math.atan2(y - y0, x - x0)
        sides = [(x - length * math.cos(angle + s * 0.5), y - length * math.sin(angle + s * 0.5)) for s in (-1, 1)]
        self._draw.polygon([(x + 0.2 * length * math.cos(angle), y + 0.2 * length * math.sin(angle)), *sides], colour)

    def _line(self, path: Sequence[Point], width: float, colour: tuple[int, ...]) -> None:
        self._draw.line(list(path), fill=colour, width=round(width), joint="curve")

    def _circle(
        self,
        centre: Point,
        radius: float,
        *,
        fill: tuple[int, ...] | None = None,
        outline: tuple[int, ...] | None = None,
        width: float = 1,
    ) -> None:
        (x, y), r = centre, radius
        self._draw.ellipse((x - r, y - r, x + r, y + r), fill=fill, outline=outline, width=round(width))


def _with_caption(picture: Image.Image, words: str, trouble: str) -> Image.Image:
    size = max(12, picture.width // 24)
    font = _font(size)
    lines = [(line, _CAPTION_TEXT) for line in _wrapped(_short(words), font, picture.width - size)]
    lines += [(line, _CAPTION_WARNING) for line in _wrapped(_short(trouble), font, picture.width - size)]
    out = Image.new("RGB", (picture.width, picture.height + size + len(lines) * size * 4 // 3), BACKGROUND)
    out.paste(picture)
    draw, y = ImageDraw.Draw(out), picture.height + size / 2
    for line, colour in lines:
        draw.text((size / 2, y), line, fill=colour, font=font)
        y += size * 4 / 3
    return out


def _short(text: str) -> str:
    """A caption tells a page that was typed apart from another; the record has it whole."""
    return text if len(text) <= _LONGEST_CAPTION else f"{text[:_LONGEST_CAPTION]}… ({len(text)} characters)"


def _wrapped(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> list[str]:
    """Lines that fit into ``width`` pixels; a word that doesn't fit alone is broken."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        while font.getlength(f"{line} {word}".strip()) > width:
            if line:
                lines.append(line)
                line = ""
                continue
            fits = next(n for n in range(len(word), 0, -1) if n == 1 or font.getlength(word[:n]) <= width)
            lines.append(word[:fits])
            word = word[fits:]
        line = f"{line} {word}".strip()
    return [*lines, line] if line else lines


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


# --- terminal ------------------------------------------------------------------------------------------------------


def half_blocks(picture: Image.Image, columns: int) -> Text:
    """The picture as rich text, ``columns`` characters wide: each is an upper half block, so two pixels high."""
    from rich.color import Color
    from rich.style import Style
    from rich.text import Text

    rows = max(1, round(picture.height / picture.width * columns / 2))
    small = picture.convert("RGB").resize((columns, 2 * rows), Image.Resampling.BOX)
    data = small.tobytes()
    text = Text(no_wrap=True)
    for y in range(0, 2 * rows, 2):
        for x in range(columns):
            above, below = 3 * (y * columns + x), 3 * ((y + 1) * columns + x)
            style = Style(
                color=Color.from_rgb(*data[above : above + 3]), bgcolor=Color.from_rgb(*data[below : below + 3])
            )
            text.append("▀", style)
        text.append("\n")
    return text
