"""Drawing primitives in units: anti-aliased shapes (drawn four times as large, then reduced), text, icons. All cached."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw

from cuarl.env.sim.kit.icons import icon_mask
from cuarl.env.sim.kit.style import Colour, Style, fit, font_px, text_mask, text_width

OVERSAMPLE = 4


class Canvas:
    """A bitmap of one widget, addressed in units from its top left corner."""

    __slots__ = ("height", "image", "style", "width")

    def __init__(self, style: Style, size_px: tuple[int, int], fill: Colour | None) -> None:
        """``fill`` None makes it transparent."""
        self.style = style
        if fill is None:
            self.image = Image.new("RGBA", size_px, (0, 0, 0, 0))
        else:
            self.image = Image.new("RGB", size_px, fill)
        self.width = size_px[0] / style.scale
        self.height = size_px[1] / style.scale

    def paste(self, colour: Colour, mask: Image.Image, x_px: int, y_px: int) -> None:
        """Put ``colour`` through ``mask``."""
        if self.image.mode == "RGB":
            # the core's own paste: Image.paste does the same after checks that cost as much as the work
            self.image.im.paste(colour, (x_px, y_px, x_px + mask.width, y_px + mask.height), mask.im)
            return
        # on a transparent bitmap the cover must add up, which paste() does not do
        layer = Image.new("RGBA", mask.size, (*colour, 0))
        layer.putalpha(mask)
        self.image.alpha_composite(layer, (max(0, x_px), max(0, y_px)))

    def rounded(self, x: float, y: float, w: float, h: float, radius: float, colour: Colour) -> None:
        """A filled rectangle with round corners."""
        px = self.style.px
        x0, y0 = px(x), px(y)
        size = max(1, px(x + w) - x0), max(1, px(y + h) - y0)
        self.paste(colour, rounded_mask(*size, round(radius * self.style.scale * OVERSAMPLE)), x0, y0)

    def outline(self, x: float, y: float, w: float, h: float, radius: float, colour: Colour, line: float = 1.0) -> None:
        """A rectangle's border with round corners."""
        px = self.style.px
        x0, y0 = px(x), px(y)
        size = max(1, px(x + w) - x0), max(1, px(y + h) - y0)
        scale = self.style.scale * OVERSAMPLE
        self.paste(colour, outline_mask(*size, round(radius * scale), max(2, round(line * scale))), x0, y0)

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
        x1, y1 = max(x0 + 1, px(x + w)), max(y0 + 1, px(y + h))
        self.image.paste(colour if self.image.mode == "RGB" else (*colour, 255), (x0, y0, x1, y1))

    def icon(self, name: str, cx: float, cy: float, size: float, colour: Colour) -> None:
        """An icon centred at a point."""
        n = max(4, self.style.px(size))
        mask = icon_mask(name, n)
        self.paste(colour, mask, round(cx * self.style.scale - n / 2), round(cy * self.style.scale - n / 2))

    def text(
        self, x: float, y: float, text: str, size: float, colour: Colour,
        *, bold: bool = False, align: str = "left", width: float | None = None,
    ) -> None:  # fmt: skip
        """One line, vertically centred at ``y``; ``x`` is its left end, centre or right end by ``align``."""
        if not text:
            return
        px = font_px(self.style, size)
        if width is not None:
            text = fit(text, px, width * self.style.scale, bold)
        mask = text_mask(text, px, bold)
        left = x * self.style.scale
        if align != "left":
            left -= text_width(text, px, bold) * (0.5 if align == "centre" else 1.0)
        # capitals reach about 0.72 of the font size above the baseline: centre those, not the line box
        ascent = mask.height * 0.78
        top = y * self.style.scale + px * 0.36 - ascent
        x_px, y_px = round(left), round(top)
        if self.image.mode == "RGBA":  # lines that don't fit are moved in, as a whole
            x_px, y_px = max(0, x_px), max(0, y_px)
        self.paste(colour, mask.image, x_px + mask.left, y_px + mask.top)

    def fitted(self, text: str, size: float, width: float, *, bold: bool = False) -> float:
        """The largest font size, from ``size`` down to 80 % of it, in which ``text`` is at most ``width`` units wide."""
        for step in range(5):
            smaller = size * (1 - 0.05 * step)
            if text_width(text, font_px(self.style, smaller), bold) <= width * self.style.scale:
                return smaller
        return size * 0.8


@lru_cache(maxsize=2048)
def rounded_mask(w: int, h: int, radius: int) -> Image.Image:
    """Coverage of a rounded rectangle; ``radius`` in oversampled pixels."""
    k = OVERSAMPLE
    mask = Image.new("L", (w * k, h * k), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, w * k - 1, h * k - 1), radius, fill=255)
    return mask.reduce(k)


@lru_cache(maxsize=1024)
def outline_mask(w: int, h: int, radius: int, line: int) -> Image.Image:
    """Coverage of a rounded rectangle's border; ``radius`` and ``line`` in oversampled pixels."""
    k = OVERSAMPLE
    mask = Image.new("L", (w * k, h * k), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, w * k - 1, h * k - 1), radius, outline=255, width=line)
    return mask.reduce(k)
