"""How things look: colours, sizes and fonts of one device at one moment. A ``Style`` is part of every bitmap's key."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from PIL import Image, ImageChops

from cuarl.sim.kit.cover import Mask, mask_of
from cuarl.sim.kit.letters import line, line_width

Colour = tuple[int, int, int]

ACCENTS: tuple[float, ...] = (0.60, 0.36, 0.08, 0.78, 0.93, 0.50, 0.03, 0.68)
"""Hues of the accent colours."""


@dataclass(frozen=True, slots=True)
class Style:
    """Everything that decides pixels apart from the widgets themselves."""

    scale: float = 1.0
    """Pixels per unit."""
    dark: bool = False
    accent: int = 0
    """Index into ``ACCENTS``."""
    icon_shape: int = 0
    """0 circle, 1 squircle, 2 rounded square, 3 teardrop."""
    icon_set: int = 0
    """0 white on colour, 1 colour on white, 2 themed in the accent colour."""
    icon_hue: int = 0
    """Rotation of the icons' colours."""
    font_step: float = 1.0
    bold: bool = False
    """Heavier titles."""
    row_pad: float = 0.0
    """Extra units between rows."""
    contrast: bool = False
    discs: bool = False
    """Icons of list rows in white on coloured discs."""

    @property
    def palette(self) -> Palette:
        """The colours."""
        return palette(self.dark, self.accent, self.contrast)

    def px(self, units: float) -> int:
        """Units to whole pixels."""
        return round(units * self.scale)


@dataclass(frozen=True)
class Palette:
    """Colours by the part they play."""

    page: Colour
    bar: Colour
    raised: Colour
    text: Colour
    muted: Colour
    faint: Colour
    accent: Colour
    on_accent: Colour
    tonal: Colour
    on_tonal: Colour
    danger: Colour

    @cached_property
    def by_name(self) -> dict[str, Colour]:
        """For lookups by role name."""
        return {"page": self.page, "bar": self.bar, "raised": self.raised, "sheet": self.raised, "keys": self.bar}


@lru_cache(maxsize=64)
def palette(dark: bool, accent: int, contrast: bool) -> Palette:
    """Colours of a theme."""
    hue = ACCENTS[accent % len(ACCENTS)]
    if dark:
        return Palette(
            page=tone(hue, 0.08, 0.11),
            bar=tone(hue, 0.10, 0.13),
            raised=tone(hue, 0.12, 0.19),
            text=(255, 255, 255) if contrast else (232, 232, 236),
            muted=(214, 214, 220) if contrast else (160, 162, 170),
            faint=tone(hue, 0.08, 0.30),
            accent=tone(hue, 0.42, 0.98),
            on_accent=tone(hue, 0.85, 0.28),
            tonal=tone(hue, 0.45, 0.38),
            on_tonal=tone(hue, 0.14, 0.98),
            danger=(255, 150, 140),
        )
    return Palette(
        page=tone(hue, 0.02, 0.985),
        bar=tone(hue, 0.03, 0.965),
        raised=tone(hue, 0.05, 0.94),
        text=(0, 0, 0) if contrast else (28, 28, 32),
        muted=(40, 40, 46) if contrast else (96, 98, 106),
        faint=tone(hue, 0.05, 0.83),
        accent=tone(hue, 0.82, 0.72),
        on_accent=(255, 255, 255),
        tonal=tone(hue, 0.17, 0.97),
        on_tonal=tone(hue, 0.9, 0.32),
        danger=(186, 36, 30),
    )


def tone(hue: float, saturation: float, value: float) -> Colour:
    """A colour by hue, saturation and value, each 0 to 1."""
    r, g, b = colorsys.hsv_to_rgb(hue, saturation, value)
    return round(r * 255), round(g * 255), round(b * 255)


def font_px(style: Style, size: float) -> int:
    """Pixels of a font of ``size`` units."""
    return max(6, round(size * style.font_step * style.scale))


@lru_cache(maxsize=16384)
def text_width(text: str, px: int, bold: bool = False) -> float:
    """Width of a line in pixels."""
    return line_width(text, px) + (0.5 if bold else 0.0)


_FAINTER = [v * 3 // 4 for v in range(256)]


class TextMask(NamedTuple):
    """Coverage of a line of text, cut to what is covered; it lies at ``left``, ``top`` of the line's box."""

    mask: Mask
    left: int
    top: int
    height: int
    """Of the line's box, pixels."""


@lru_cache(maxsize=8192)
def text_mask(text: str, px: int, bold: bool = False) -> TextMask:
    """Coverage of a line of text."""
    whole = line_mask(text, px, bold)
    covered = whole.getbbox() or (0, 0, 1, 1)
    return TextMask(mask_of(whole.crop(covered)), covered[0], covered[1], whole.height)


def line_mask(text: str, px: int, bold: bool = False) -> Image.Image:
    """All of a line's box, mode L. Heavier text is the line and a fainter copy beside it."""
    mask = line(text, px)
    if bold:
        shift = max(1, round(px / 18))
        moved = ImageChops.offset(mask, shift, 0).point(_FAINTER)
        mask = ImageChops.lighter(mask, moved)
    return mask


@lru_cache(maxsize=16384)
def fit(text: str, px: int, width: float, bold: bool = False) -> str:
    """``text``, cut with an ellipsis if it is wider than ``width`` pixels."""
    if text_width(text, px, bold) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle].rstrip() + "…", px, bold) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


@lru_cache(maxsize=16384)
def wrap(text: str, px: int, width: float, bold: bool = False, lines: int = 12) -> tuple[str, ...]:
    """Break ``text`` at spaces into at most ``lines`` lines of ``width`` pixels.

    The last one may end in an ellipsis.
    """
    done: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_width(longer, px, bold) > width:
                done.append(line)
                line = word
            else:
                line = longer
        done.append(line)
    if len(done) > lines:
        done = [*done[: lines - 1], " ".join(done[lines - 1 :])]
    return tuple(fit(line, px, width, bold) for line in done)
