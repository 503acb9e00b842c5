"""An episode as one moving picture (GIF): its screens with the actions drawn on them, one after another."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

from PIL import Image

from cuarl.monitor.draw import BACKGROUND
from cuarl.monitor.frames import Drawn

TURN_MS = 1200
LAST_MS = 3000
"""How long the last picture stays, which says how the episode ended, before it begins anew."""


def gif(frames: Iterable[Drawn]) -> bytes:
    """The file's bytes: every frame for ``TURN_MS``, the last one for ``LAST_MS``, over and over.

    All frames get the size of the largest. Raises ValueError where there is none.
    """
    pictures = [one.picture for one in frames]
    if not pictures:
        raise ValueError("an episode without screens can't be drawn")
    size = max(p.width for p in pictures), max(p.height for p in pictures)
    first, *rest = [_on_canvas(p, size) for p in pictures]
    out, times = BytesIO(), [TURN_MS] * len(rest) + [LAST_MS]
    first.save(out, "GIF", save_all=True, append_images=rest, duration=times, loop=0, disposal=1)
    return out.getvalue()


def _on_canvas(picture: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Captions differ in height, and a GIF has one size."""
    canvas = Image.new("RGB", size, BACKGROUND)
    canvas.paste(picture)
    return canvas.quantize(255, dither=Image.Dither.NONE)
