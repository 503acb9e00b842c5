"""From a scene to pixels, quickly: cached bitmaps of widgets, cached frames, and redrawing only what changed.

A frame is known by its *layout*: which bitmap lies where. Bitmaps are shared, so comparing two layouts costs a few
microseconds, and a screen that was shown before is not drawn again. Otherwise the last frame of the same device is
copied and the bands of rows that differ are painted anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from PIL import Image

from cuarl.env.sim.kit import widgets as w
from cuarl.env.sim.kit.canvas import Canvas
from cuarl.env.sim.kit.paint import PAINTERS
from cuarl.env.sim.kit.pictures import draw_picture
from cuarl.env.sim.kit.scene import Box, Placed, Scene
from cuarl.env.sim.kit.style import Style
from cuarl.types import Screenshot

SCRIM = 0.55
"""How much of the light a scrim lets through."""
TILE_BYTES = 64 << 20
FRAME_BYTES = 96 << 20
"""Bounds of the two caches of one process."""


class Stamp(NamedTuple):
    """One bitmap at one place: ``tile`` (None for a scrim) with its top left corner at ``x``, ``y``, cut to ``seen``."""

    tile_id: int
    x: int
    y: int
    seen: Box


class Frame:
    """A drawn scene. Its image is shared: do not change it."""

    __slots__ = ("__dict__", "background", "image", "layout", "scene", "tiles")

    def __init__(
        self,
        image: Image.Image,
        background: Image.Image,
        layout: tuple[Stamp, ...],
        tiles: Tiles,
    ) -> None:
        self.image, self.background, self.layout = image, background, layout
        self.scene: Scene | None = None
        """The last scene that looked like this."""
        self.tiles = tiles
        """Held so that their ids stay theirs."""

    @cached_property
    def screenshot(self) -> Screenshot:
        """The picture as observations carry it; its digest is computed at most once."""
        return Screenshot(self.image)


def render(scene: Scene) -> Image.Image:
    """Draw a scene from scratch, mode RGB, as a picture of the caller's own."""
    ground, layout, tiles = _composed(scene)
    image = ground.copy()
    for stamp, tile in zip(layout, tiles, strict=True):
        if tile is None:
            image = image.point(_dimming())
        else:
            _put(image, stamp, tile, stamp.seen)
    return image


def draw(scene: Scene, last: Frame | None = None) -> Frame:
    """Draw a scene; ``last`` is what the same device showed before, from which unchanged parts are taken."""
    if last is not None and last.scene is scene:
        return last
    ground, layout, tiles = _composed(scene)
    frame = _FRAMES.get((id(ground), layout))
    if frame is None:
        same_ground = last is not None and last.background is ground
        if last is not None and same_ground and None not in tiles and None not in last.tiles:
            image = _changed(last, ground, layout, tiles)
        else:
            image = _painted(ground, layout, tiles)
        frame = Frame(image, ground, layout, tiles)
        _FRAMES.put((id(ground), layout), frame, scene.size[0] * scene.size[1] * 4)
    frame.scene = scene
    return frame


Tiles = Sequence[Image.Image | None]


def _composed(scene: Scene) -> tuple[Image.Image, tuple[Stamp, ...], Tiles]:
    """The ground of a scene, its layout, and the bitmaps in it."""
    ground = background(scene.background, scene.style, scene.size)
    tiles = [_tile(item, scene.style) for item in scene.items]
    layout = tuple(
        Stamp(id(tile), item.box[0], item.box[1], item.visible) for tile, item in zip(tiles, scene.items, strict=True)
    )
    return ground, layout, tiles


def differ(a: Frame, b: Frame) -> bool:
    """Whether two frames show different pixels."""
    return a is not b and a.screenshot.digest != b.screenshot.digest


def _painted(ground: Image.Image, layout: tuple[Stamp, ...], tiles: Tiles) -> Image.Image:
    """Paint everything; what lies under a scrim is kept, dimmed, for the next scene with the same base."""
    start, image = 0, None
    scrims = [i for i, tile in enumerate(tiles) if tile is None]
    if scrims:
        start = scrims[-1] + 1
        base = _FRAMES.get((id(ground), layout[:start]))
        if base is None:
            below = _painted(ground, layout[: start - 1], tiles[: start - 1])
            base = Frame(below.point(_dimming()), ground, layout[:start], tiles[:start])
            _FRAMES.put((id(ground), layout[:start]), base, below.width * below.height * 4)
        image = base.image.copy()
    if image is None:
        image = ground.copy()
    for stamp, tile in zip(layout[start:], tiles[start:], strict=True):
        _put(image, stamp, tile, stamp.seen)
    return image


def _changed(last: Frame, ground: Image.Image, layout: tuple[Stamp, ...], tiles: Tiles) -> Image.Image:
    """Copy the last frame and repaint the boxes that differ; all of it if they cover most of the screen."""
    width, height = ground.size
    boxes = _merged([stamp.seen for stamp in _differing(last.layout, layout)])
    if 2 * sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes) > width * height:
        return _painted(ground, layout, tiles)
    image = last.image.copy()
    for box in boxes:
        left, top, right, bottom = box
        image.paste(ground.crop(box), (left, top))
        for stamp, tile in zip(layout, tiles, strict=True):
            x0, y0, x1, y1 = stamp.seen
            if y0 < bottom and y1 > top and x0 < right and x1 > left:
                _put(image, stamp, tile, (max(x0, left), max(y0, top), min(x1, right), min(y1, bottom)))
    return image


def _differing(before: Sequence[Stamp], after: Sequence[Stamp]) -> set[Stamp]:
    """Stamps that came or went, and those painted in another order, as when a window comes to the top."""
    changed = set(before).symmetric_difference(after)
    old, new = ([stamp for stamp in stamps if stamp not in changed] for stamps in (before, after))
    if old != new:
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        changed |= {*old[same:], *new[same:]}
    return changed


def _merged(boxes: Sequence[Box]) -> list[Box]:
    """Boxes around those whose rows overlap."""
    merged: list[Box] = []
    for left, top, right, bottom in sorted((b for b in boxes if b[3] > b[1] and b[2] > b[0]), key=lambda b: b[1]):
        if merged and top <= merged[-1][3]:
            x0, y0, x1, y1 = merged[-1]
            merged[-1] = min(x0, left), y0, max(x1, right), max(y1, bottom)
        else:
            merged.append((left, top, right, bottom))
    return merged


def _put(image: Image.Image, stamp: Stamp, tile: Image.Image | None, seen: Box) -> None:
    """Paste the part of a tile that lies in ``seen``."""
    x0, y0, x1, y1 = seen
    if tile is None or x1 <= x0 or y1 <= y0:
        return
    if (x1 - x0, y1 - y0) != tile.size:
        tile = tile.crop((x0 - stamp.x, y0 - stamp.y, x1 - stamp.x, y1 - stamp.y))
    if tile.mode == "RGBA":
        image.paste(tile, (x0, y0), tile)
    else:
        image.paste(tile, (x0, y0))


@lru_cache(maxsize=1)
def _dimming() -> list[int]:
    return [int(v * SCRIM) for v in range(256)] * 3


@lru_cache(maxsize=64)
def background(name: str, style: Style, size: tuple[int, int]) -> Image.Image:
    """The ground of a scene: the page colour, a wallpaper, or a picture as it is. Shared: do not change it."""
    if name.startswith("picture:"):
        return draw_picture(name.partition(":")[2], size)
    if name.startswith("wallpaper:"):
        return Image.composite(draw_picture(name.partition(":")[2], size), Image.new("RGB", size), _edges(size))
    return Image.new("RGB", size, style.palette.by_name[name])


def _edges(size: tuple[int, int]) -> Image.Image:
    """How much of a wallpaper shows, so that white text on it can be read: least at the top and bottom."""
    height = size[1]
    column = Image.new("L", (1, height))
    for y in range(height):
        near = min(y / height / 0.12, (height - y) / height / 0.30, 1.0)
        column.putpixel((0, y), round(255 * (0.45 + 0.35 * near)))
    return column.resize(size)


def _tile(item: Placed, style: Style) -> Image.Image | None:
    """A widget's pixels: RGB over the colour of its ground, or RGBA where that varies. None for a scrim."""
    x0, y0, x1, y1 = item.box
    widget = item.widget
    shelf = _TILES.shelf(style)
    key = (widget, x1 - x0, y1 - y0, item.ground)
    found = shelf.get(key)
    if found is not None:
        return found
    if isinstance(widget, w.Bar) and widget.fill == "scrim":
        return None
    canvas = Canvas(style, (max(1, x1 - x0), max(1, y1 - y0)), style.palette.by_name.get(item.ground))
    PAINTERS[type(widget)](canvas, widget)
    shelf[key] = canvas.image
    _TILES.grown(style, canvas.image.width * canvas.image.height * 4)
    return canvas.image


TileKey = tuple[w.Widget, int, int, str]


class TileCache:
    """Bitmaps by style. When there are too many, the styles that were longest unused go."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.shelves: OrderedDict[Style, dict[TileKey, Image.Image]] = OrderedDict()
        self.sizes: dict[Style, int] = {}

    def shelf(self, style: Style) -> dict[TileKey, Image.Image]:
        """The bitmaps of one style."""
        found = self.shelves.get(style)
        if found is None:
            found = self.shelves[style] = {}
            self.sizes[style] = 0
        return found

    def grown(self, style: Style, size: int) -> None:
        """Count a new bitmap of ``size`` bytes."""
        self.sizes[style] += size
        self.size += size
        self.shelves.move_to_end(style)
        while self.size > self.limit:
            oldest, _ = self.shelves.popitem(last=False)
            self.size -= self.sizes.pop(oldest)


class FrameCache:
    """The newest frames, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.frames: OrderedDict[tuple[int, tuple[Stamp, ...]], tuple[Frame, int]] = OrderedDict()

    def get(self, key: tuple[int, tuple[Stamp, ...]]) -> Frame | None:
        """The frame of a layout."""
        found = self.frames.get(key)
        if found is None:
            return None
        self.frames.move_to_end(key)
        return found[0]

    def put(self, key: tuple[int, tuple[Stamp, ...]], frame: Frame, size: int) -> None:
        """Keep a frame of ``size`` bytes."""
        self.frames[key] = frame, size
        self.size += size
        while self.size > self.limit and len(self.frames) > 1:
            _, (_, gone) = self.frames.popitem(last=False)
            self.size -= gone


_TILES = TileCache(TILE_BYTES)
_FRAMES = FrameCache(FRAME_BYTES)
