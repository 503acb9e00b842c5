"""Buttons drawn below a picture, for environments whose actions are choices without a place on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

HEIGHT = 22
GAP = 2
_PAPER, _KEY, _EDGE, _INK = (40, 40, 44), (226, 228, 232), (140, 144, 150), (20, 20, 24)


class ButtonStrip:
    """Rows of buttons with ``labels``, as wide as the picture; a picture that is too narrow for one is widened."""

    def __init__(self, labels: Sequence[str], width: int) -> None:
        """``width`` of the picture, pixels."""
        widest = max(round(_font().getlength(label)) for label in labels) + 10
        self.labels, self.width = tuple(labels), max(width, widest + 2 * GAP)
        self._columns = max(1, min(len(labels), (self.width - GAP) // (widest + GAP)))
        self.height = -(-len(labels) // self._columns) * (HEIGHT + GAP) + GAP
        self._drawn = self._draw()

    def below(self, picture: Image.Image) -> Image.Image:
        """The picture with the buttons below it."""
        whole = Image.new("RGB", (self.width, picture.height + self.height), _PAPER)
        whole.paste(picture, (0, 0))
        whole.paste(self._drawn, (0, picture.height))
        return whole

    def at(self, x: int, y: int) -> str | None:
        """The label of the button at a point of the strip, in pixels from its upper left corner."""
        for number, label in enumerate(self.labels):
            left, top, right, bottom = self.box(number)
            if left <= x < right and top <= y < bottom:
                return label
        return None

    def box(self, number: int) -> tuple[int, int, int, int]:
        """Left, top, right and bottom of a button on the strip."""
        row, column = divmod(number, self._columns)
        wide = (self.width - GAP) // self._columns
        left, top = GAP + column * wide, GAP + row * (HEIGHT + GAP)
        return left, top, left + wide - GAP, top + HEIGHT

    def _draw(self) -> Image.Image:
        strip = Image.new("RGB", (self.width, self.height), _PAPER)
        draw = ImageDraw.Draw(strip)
        for number, label in enumerate(self.labels):
            left, top, right, bottom = self.box(number)
            draw.rectangle((left, top, right - 1, bottom - 1), fill=_KEY, outline=_EDGE)
            draw.text(((left + right) / 2, (top + bottom) / 2), label, font=_font(), fill=_INK, anchor="mm")
        return strip


@lru_cache(maxsize=1)
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=12)
