"""From a scene to pixels: cached bitmaps of widgets pasted over a background."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image

from cuarl.env.sim.kit import widgets as w
from cuarl.env.sim.kit.canvas import Canvas
from cuarl.env.sim.kit.paint import PAINTERS, SEE_THROUGH
from cuarl.env.sim.kit.pictures import draw_picture
from cuarl.env.sim.kit.scene import Placed, Scene
from cuarl.env.sim.kit.style import Style

SCRIM = 0.55
"""How much of the light a scrim lets through."""


def render(scene: Scene) -> Image.Image:
    """Draw a scene, mode RGB. The picture is fresh: the caller may keep or change it."""
    image = background(scene.background, scene.style, scene.size).copy()
    for item in scene.items:
        if isinstance(item.widget, w.Bar) and item.widget.fill == "scrim":
            image = image.point(_dimming())
        else:
            _put(image, item, scene.style)
    return image


@lru_cache(maxsize=1)
def _dimming() -> list[int]:
    return [int(v * SCRIM) for v in range(256)] * 3


@lru_cache(maxsize=64)
def background(name: str, style: Style, size: tuple[int, int]) -> Image.Image:
    """The ground of a scene: the page colour, or a wallpaper."""
    if name.startswith("wallpaper:"):
        return draw_picture(name.partition(":")[2], size)
    return Image.new("RGB", size, style.palette.by_name[name])


@lru_cache(maxsize=20000)
def bitmap(widget: w.Widget, style: Style, size: tuple[int, int], ground: str) -> Image.Image:
    """A widget's pixels: RGB over the colour named ``ground``, or RGBA if that is empty."""
    canvas = Canvas(style, size, style.palette.by_name[ground] if ground else None)
    PAINTERS[type(widget)](canvas, widget)
    return canvas.image


def _put(image: Image.Image, item: Placed, style: Style) -> None:
    x0, y0, x1, y1 = item.box
    if x1 <= x0 or y1 <= y0:
        return
    clear = type(item.widget) in SEE_THROUGH or isinstance(item.widget, w.Bar) or item.ground == ""
    tile = bitmap(item.widget, style, (x1 - x0, y1 - y0), "" if clear else item.ground)
    vx0, vy0, vx1, vy1 = item.visible
    if (vx0, vy0, vx1, vy1) != item.box:
        tile = tile.crop((vx0 - x0, vy0 - y0, vx1 - x0, vy1 - y0))
    if tile.mode == "RGBA":
        image.paste(tile, (vx0, vy0), tile)
    else:
        image.paste(tile, (vx0, vy0))
