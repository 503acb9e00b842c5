"""Fixed-width text from a proportional font: each character centred in a cell, wide ones squeezed into it."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image

from cuarl.sim.desktop.widgets import CELL
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.cover import Mask, mask_of
from cuarl.sim.kit.style import Colour, line_mask, text_width

SIZE = 10.0
"""Font size, units; cells don't grow with the user's text size, as terminals' don't."""


def draw_cells(c: Canvas, text: str, x: float, y: float, colour: Colour) -> None:
    """One line from ``x``, vertically centred at ``y``, units."""
    scale = c.style.scale
    px = max(7, round(SIZE * scale))
    for i, char in enumerate(text):
        if char in " \t":
            continue
        mask = cell_mask(char, px, max(3, round(CELL * scale)))
        top = round(y * scale + px * 0.36 - mask.height * 0.78)
        c.paste(colour, mask, round((x + i * CELL) * scale), top)


@lru_cache(maxsize=2048)
def cell_mask(char: str, px: int, cell: int) -> Mask:
    """Coverage of one character, ``cell`` pixels wide."""
    mask = line_mask(char, px)
    width = max(1, round(text_width(char, px)))
    if width > cell:
        mask = mask.crop((0, 0, width + 1, mask.height)).resize((cell, mask.height), Image.Resampling.BOX)
    out = Image.new("L", (cell, mask.height), 0)
    out.paste(mask, (max(0, (cell - min(width, cell)) // 2), 0))
    return mask_of(out)
