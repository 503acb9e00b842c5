"""Lines of text put together from letters, as Pillow would draw them whole, in a tenth of the time.

Pillow's font places letters on whole pixels and moves none for its neighbour, so a line is its letters one after the
other. That is tried out on each size of the font, and only for ASCII; everything else is laid out and drawn by Pillow.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageFont

from cuarl.sim.kit.cover import Core

SIMPLE = frozenset(map(chr, range(32, 127)))
PROBE = 'AVATAW To Ty Va Ya LT P. r, fi fl ff ffi -- -> 11 rn vy wo (j) f\' "A" ...'
"""Where fonts that move letters would."""


class Letter(NamedTuple):
    """A letter's coverage, mode L (None if it has none), its place from pen and baseline, and the pen's advance."""

    core: Core
    width: int
    height: int
    left: int
    top: int
    advance: int


@lru_cache(maxsize=64)
def font(px: int) -> ImageFont.FreeTypeFont:
    """Pillow's own scalable font."""
    loaded = ImageFont.load_default(px)
    if not isinstance(loaded, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType")
    return loaded


@lru_cache(maxsize=64)
def _metrics(px: int) -> tuple[int, int]:
    return font(px).getmetrics()


class _Alphabet(dict[str, Letter]):
    """The letters of a size, drawn when they are first asked for. Raises KeyError for what can't be put together."""

    def __init__(self, px: int) -> None:
        super().__init__()
        self.px = px

    def __missing__(self, char: str) -> Letter:
        if char not in SIMPLE:
            raise KeyError(char)
        way = float(font(self.px).getlength(char))
        if way != int(way):
            raise KeyError(char)
        core, (left, top) = font(self.px).getmask2(char, mode="L", anchor="ls")
        width, height = core.size
        letter = Letter(core if width and height else None, width, height, round(left), round(top), int(way))
        self[char] = letter
        return letter


@lru_cache(maxsize=64)
def _alphabet(px: int) -> dict[str, Letter]:
    """The letters of a size; none if it moves letters for their neighbours."""
    found = _Alphabet(px)
    try:
        apart = sum([found[char].advance for char in PROBE])
    except KeyError:
        return {}
    return found if apart == font(px).getlength(PROBE) else {}


def _letters(text: str, px: int) -> list[Letter] | None:
    """The letters of a line; None if it must be laid out as a whole."""
    alphabet = _alphabet(px)
    try:
        return [alphabet[char] for char in text]
    except KeyError:
        return None


def line_width(text: str, px: int) -> float:
    """Width of a line, pixels."""
    letters = _letters(text, px)
    if letters is None:
        return float(font(px).getlength(text))
    return float(sum([letter.advance for letter in letters]))


def line(text: str, px: int) -> Image.Image:
    """Coverage of a line in a box as wide as the text and as high as the font's lines, mode L."""
    ascent, descent = _metrics(px)
    letters = _letters(text, px)
    box = Image.new("L", (max(1, int(line_width(text, px)) + 3), ascent + descent), 0)
    if letters is None:
        whole, (left, top) = font(px).getmask2(text, mode="L", anchor="ls")
        width, height = whole.size
        if width and height:
            x, y = max(0, round(left)), ascent + round(top)
            box.im.paste(whole, (x, y, x + width, y + height))
        return box
    core, x = box.im, _start(letters)
    for covered, width, height, left, top, advance in letters:
        if covered is not None:
            core.paste(255, (x + left, ascent + top, x + left + width, ascent + top + height), covered)
        x += advance
    return box


def _start(letters: list[Letter]) -> int:
    """Where the pen starts, so that nothing sticks out on the left."""
    pen = leftmost = 0
    for letter in letters:
        leftmost = min(leftmost, pen + letter.left)
        pen += letter.advance
    return -leftmost
