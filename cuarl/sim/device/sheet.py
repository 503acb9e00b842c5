"""Pictures side by side, to look at while working on them."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image


def sheet(images: Sequence[Image.Image], columns: int) -> Image.Image:
    """Pictures side by side."""
    width, height = images[0].size
    rows = -(-len(images) // columns)
    out = Image.new("RGB", (columns * (width + 6), rows * (height + 6)), (120, 120, 120))
    for i, image in enumerate(images):
        out.paste(image, (i % columns * (width + 6), i // columns * (height + 6)))
    return out
