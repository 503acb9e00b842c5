"""Small drawn parts that several widgets share.

Switches, boxes, launcher icons, captions, and the geometry of sliders.
"""

from __future__ import annotations

from functools import lru_cache

from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.icons import APP_GLYPHS, ICONS
from cuarl.sim.kit.scene import SMALL
from cuarl.sim.kit.style import Colour, font_px, text_width, tone


@lru_cache(maxsize=256)
def disc_colour(icon: str) -> Colour:
    """A colour of its own for each icon."""
    return tone(list(ICONS).index(icon) * 0.382 % 1.0, 0.60, 0.72)


def draw_switch(c: Canvas, cx: float, cy: float, on: bool, enabled: bool = True) -> None:
    """A switch, 26 by 15 units."""
    p = c.style.palette
    if on:
        c.rounded(cx - 13, cy - 7.5, 26, 15, 7.5, p.accent if enabled else p.faint)
        c.circle(cx + 5.5, cy, 5.5, p.on_accent if enabled else p.page)
    else:
        c.rounded(cx - 13, cy - 7.5, 26, 15, 7.5, p.raised)
        c.outline(cx - 13, cy - 7.5, 26, 15, 7.5, p.muted if enabled else p.faint, 1.3)
        c.circle(cx - 5.5, cy, 3.8, p.muted if enabled else p.faint)


def draw_radio(c: Canvas, cx: float, cy: float, on: bool) -> None:
    """A radio button."""
    p = c.style.palette
    c.ring(cx, cy, 6.5, p.accent if on else p.muted, 1.5)
    if on:
        c.circle(cx, cy, 3.4, p.accent)


def draw_check(c: Canvas, cx: float, cy: float, on: bool) -> None:
    """A check box."""
    p = c.style.palette
    if on:
        c.rounded(cx - 6, cy - 6, 12, 12, 2, p.accent)
        c.icon("check", cx, cy, 9, p.on_accent)
    else:
        c.outline(cx - 6, cy - 6, 12, 12, 2, p.muted, 1.5)


def draw_app_icon(c: Canvas, app: str, cx: float, cy: float, size: float) -> None:
    """A launcher icon: a coloured shape with the app's glyph."""
    s, p = c.style, c.style.palette
    glyph, hue = APP_GLYPHS.get(app, ("apps", 0.5))
    hue = (hue + s.icon_hue / 12) % 1.0
    strong = tone(hue, 0.72, 0.80) if app != "settings" else tone(hue, 0.16, 0.46)
    fill, ink = {0: (strong, (255, 255, 255)), 1: ((250, 250, 252), strong), 2: (p.tonal, p.on_tonal)}[s.icon_set]
    half = size / 2
    if s.icon_shape == 3:
        c.circle(cx, cy, half, fill)
        c.rounded(cx, cy, half, half, half / 4, fill)
    else:
        c.rounded(cx - half, cy - half, size, size, {0: half, 1: size * 0.36, 2: size * 0.20}[s.icon_shape], fill)
    c.icon(glyph, cx, cy, size * 0.60, ink)


def caption(c: Canvas, text: str, ink: Colour, shadow: bool) -> None:
    """The name below an icon; over a wallpaper with a shadow, so that it reads on any."""
    y, size = c.height - 8, c.fitted(text, SMALL, c.width)
    if shadow:
        step = 1 / c.style.scale
        for dx, dy in ((step, step), (0, step)):
            c.text(c.width / 2 + dx, y + dy, text, size, (20, 20, 24), align="centre", width=c.width)
    c.text(c.width / 2, y, text, size, ink, align="centre", width=c.width)


def text_units(c: Canvas, text: str, size: float) -> float:
    """Width of a line, units."""
    return text_width(text, font_px(c.style, size)) / c.style.scale


def slider_track(width: float, icon: bool) -> tuple[float, float]:
    """Left and right end of a slider's track, units from the widget's left edge."""
    return (34.0 if icon else 16.0), width - 16.0
