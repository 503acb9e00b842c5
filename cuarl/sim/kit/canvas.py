"""Drawing primitives in units: anti-aliased shapes (drawn four times as large, then reduced), text, icons.

All cached.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageDraw

from cuarl.sim.kit.cover import CLEAR, Box, Ink, Mask, blend, filled, insides, mask_of, overlay, tinted
from cuarl.sim.kit.icons import icon_mask
from cuarl.sim.kit.style import Colour, Style, fit, font_px, text_mask, text_width

OVERSAMPLE = 4


class _Area(NamedTuple):
    """What was painted.

    Nothing outside of ``box``, just ``ink`` in the boxes of ``flat``, nothing in those of ``kept``.
    """

    box: Box
    ink: Ink
    flat: tuple[Box, ...] = ()
    kept: tuple[Box, ...] = ()


class Canvas:
    """A bitmap of one widget, addressed in units from its top left corner."""

    __slots__ = ("_areas", "core", "height", "size", "style", "transparent", "width")

    def __init__(self, style: Style, size_px: tuple[int, int], fill: Colour | None) -> None:
        """``fill`` None makes it transparent."""
        self.style = style
        self.transparent = fill is None
        self.core = filled("RGBA" if fill is None else "RGB", size_px, CLEAR if fill is None else fill)
        self.size = size_px
        self.width = size_px[0] / style.scale
        self.height = size_px[1] / style.scale
        whole = (0, 0, *size_px)
        self._areas = [_Area(whole, CLEAR if fill is None else fill, (whole,))]

    def paste(self, colour: Colour, mask: Mask, x_px: int, y_px: int) -> None:
        """Put ``colour`` through ``mask``."""
        x1, y1 = x_px + mask.width, y_px + mask.height
        box = x_px, y_px, x1, y1
        inside = x_px >= 0 and y_px >= 0 and x1 <= self.size[0] and y1 <= self.size[1]
        ground = self._ground(box) if inside else None
        if ground is not None:
            self.core.paste(tinted(mask, colour, ground), box)
        elif self.transparent:
            overlay(self.core, colour, mask, x_px, y_px)
            box = box if inside else (0, 0, *self.size)
        else:
            blend(self.core, colour, mask.core, box)
        flat = _moved(mask.solid, x_px, y_px) if inside and mask.solid else ()
        kept = _moved(mask.hollow, x_px, y_px) if inside and mask.hollow else ()
        self._areas.append(_Area(box, (*colour, 255) if self.transparent else colour, flat, kept))

    def fill(self, colour: Colour, box: Box) -> None:
        """Fill a box of pixels."""
        ink = (*colour, 255) if self.transparent else colour
        self.core.paste(ink, box)
        self._areas.append(_Area(box, ink, (box,)))

    def picture(self, image: Image.Image) -> None:
        """Cover all of it with a picture of its size, mode RGB."""
        whole = (0, 0, *self.size)
        self.core.paste(image.im, whole)
        self._areas.append(_Area(whole, CLEAR))

    def cover(self, cover: Image.Image) -> None:
        """Make a transparent bitmap, nothing on it yet, as opaque as a picture of its size, mode L, says."""
        self.core.putband(cover.im, 3)
        self._areas.append(_Area((0, 0, *self.size), CLEAR))

    def _ground(self, box: Box) -> Ink | None:
        """The colour that all of a box has; None where that is not known."""
        left, top, right, bottom = box
        for (x0, y0, x1, y1), ink, flat, kept in reversed(self._areas):
            if left >= x1 or top >= y1 or right <= x0 or bottom <= y0:
                continue
            for a, b, c, d in flat:
                if left >= a and top >= b and right <= c and bottom <= d:
                    return ink
            if not any(left >= a and top >= b and right <= c and bottom <= d for a, b, c, d in kept):
                return None
        return None

    def rounded(self, x: float, y: float, w: float, h: float, radius: float, colour: Colour) -> None:
        """A filled rectangle with round corners."""
        px = self.style.px
        x0, y0 = px(x), px(y)
        size = max(1, px(x + w) - x0), max(1, px(y + h) - y0)
        self.paste(colour, _rounded(*size, round(radius * self.style.scale * OVERSAMPLE)), x0, y0)

    def outline(self, x: float, y: float, w: float, h: float, radius: float, colour: Colour, line: float = 1.0) -> None:
        """A rectangle's border with round corners."""
        px = self.style.px
        x0, y0 = px(x), px(y)
        size = max(1, px(x + w) - x0), max(1, px(y + h) - y0)
        scale = self.style.scale * OVERSAMPLE
        self.paste(colour, _outline(*size, round(radius * scale), max(2, round(line * scale))), x0, y0)

    def circle(self, cx: float, cy: float, radius: float, colour: Colour) -> None:
        """A filled circle."""
        self.rounded(cx - radius, cy - radius, 2 * radius, 2 * radius, radius, colour)

    def ring(self, cx: float, cy: float, radius: float, colour: Colour, line: float = 1.5) -> None:
        """A circle's border."""
        self.outline(cx - radius, cy - radius, 2 * radius, 2 * radius, radius, colour, line)

    def rect(self, x: float, y: float, w: float, h: float, colour: Colour) -> None:
        """A filled rectangle on whole pixels, at least one pixel thick."""
        px = self.style.px
        x0, y0 = px(x), px(y)
        self.fill(colour, (x0, y0, max(x0 + 1, px(x + w)), max(y0 + 1, px(y + h))))

    def icon(self, name: str, cx: float, cy: float, size: float, colour: Colour) -> None:
        """An icon centred at a point."""
        n = max(4, self.style.px(size))
        scale = self.style.scale
        self.paste(colour, _icon(name, n), round(cx * scale - n / 2), round(cy * scale - n / 2))

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
        """One line, vertically centred at ``y``; ``x`` is its left end, centre or right end by ``align``."""
        if not text:
            return
        px, scale = font_px(self.style, size), self.style.scale
        if width is not None:
            text = fit(text, px, width * scale, bold)
        line = text_mask(text, px, bold)
        left = x * scale
        if align != "left":
            left -= text_width(text, px, bold) * (0.5 if align == "centre" else 1.0)
        # capitals reach about 0.72 of the font size above the baseline: centre those, not the line box
        ascent = line.height * 0.78
        top = y * scale + px * 0.36 - ascent
        x_px, y_px = round(left), round(top)
        if self.transparent:  # lines that don't fit are moved in, as a whole
            x_px, y_px = max(0, x_px), max(0, y_px)
        self.paste(colour, line.mask, x_px + line.left, y_px + line.top)

    def fitted(self, text: str, size: float, width: float, *, bold: bool = False) -> float:
        """The largest font size, from ``size`` down to 80 % of it, in which ``text`` is at most ``width`` wide."""
        for step in range(5):
            smaller = size * (1 - 0.05 * step)
            if text_width(text, font_px(self.style, smaller), bold) <= width * self.style.scale:
                return smaller
        return size * 0.8


def _moved(boxes: tuple[Box, ...], x: int, y: int) -> tuple[Box, ...]:
    return tuple([(x + a, y + b, x + c, y + d) for a, b, c, d in boxes])


@lru_cache(maxsize=2048)
def rounded_mask(w: int, h: int, radius: int) -> Image.Image:
    """Coverage of a rounded rectangle; ``radius`` in oversampled pixels."""
    k = OVERSAMPLE
    mask = Image.new("L", (w * k, h * k), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, w * k - 1, h * k - 1), radius, fill=255)
    return mask.reduce(k)


@lru_cache(maxsize=2048)
def _rounded(w: int, h: int, radius: int) -> Mask:
    return mask_of(rounded_mask(w, h, radius), insides(w, h, -(-radius // OVERSAMPLE)))


@lru_cache(maxsize=1024)
def _outline(w: int, h: int, radius: int, line: int) -> Mask:
    """Coverage of a rounded rectangle's border; ``radius`` and ``line`` in oversampled pixels."""
    k = OVERSAMPLE
    mask = Image.new("L", (w * k, h * k), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, w * k - 1, h * k - 1), radius, outline=255, width=line)
    edge = -(-line // k)
    corner = -(-radius // k)
    found = tuple(
        (max(a, edge), max(b, edge), min(c, w - edge), min(d, h - edge)) for a, b, c, d in insides(w, h, corner)
    )
    return mask_of(mask.reduce(k), found)


@lru_cache(maxsize=2048)
def _icon(name: str, px: int) -> Mask:
    return mask_of(icon_mask(name, px))
