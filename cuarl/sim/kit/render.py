"""From a scene to pixels, quickly: cached bitmaps of widgets, cached frames, and redrawing only what changed.

A frame is known by its *layout*: which bitmap lies where. Bitmaps are shared, so comparing two layouts costs a few
microseconds, and a screen that was shown before is not drawn again. Otherwise the last frame of the same device is
copied and the bands of rows that differ are painted anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from weakref import ref

from PIL import Image

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.cover import Core
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.kit.parts import at_once
from cuarl.sim.kit.pictures import draw_picture, drawing_picture
from cuarl.sim.kit.scene import Box, Part, Placed, Scene
from cuarl.sim.kit.style import Colour, Style
from cuarl.types import Screenshot

SCRIM = 0.55
"""How much of the light a scrim lets through."""
PIECE = 50_000
"""Pixels of new bitmaps that are painted in one go: a few milliseconds."""
PASTED = 1_000_000
"""Pixels of known bitmaps that are pasted in one go."""
TILE_BYTES = 64 << 20
FRAME_BYTES = 96 << 20
"""Bounds of the two caches of one process."""
ITEM_BYTES = 512
"""What knowing where one item lies counts for."""


class Stamp(NamedTuple):
    """One bitmap at one place.

    ``tile`` (None for a scrim) with its top left corner at ``x``, ``y``, cut to ``seen``.
    """

    tile_id: int
    x: int
    y: int
    seen: Box


class Frame:
    """A drawn scene. Its image is shared: do not change it."""

    __slots__ = ("__dict__", "__weakref__", "ground", "image", "key", "layout")

    def __init__(self, image: Image.Image, key: FrameKey, ground: Image.Image, layout: Layout) -> None:
        self.image, self.key = image, key
        self.ground, self.layout = ground, layout
        """What it was painted on, and what was painted on that."""

    @cached_property
    def screenshot(self) -> Screenshot:
        """The picture as observations carry it; its digest is computed at most once."""
        return Screenshot(self.image)


Tiles = Sequence[Core | None]
Layout = tuple[Stamp, ...]
Pasted = tuple[Stamp, Core | None, Box]
"""A bitmap, where it lies, and which box of the screen is taken from it."""
Stamped = tuple[list[Stamp], list[Core | None]]
"""Bitmaps, and where they lie."""


class FrameKey:
    """What a frame shows: the ground and the layout on it. Hashed once."""

    __slots__ = ("ground", "hash", "layout", "tiles")

    def __init__(self, ground: Image.Image, layout: Layout, tiles: Tiles) -> None:
        self.ground, self.layout = ground, layout
        self.tiles = tiles
        """Held so that their ids stay theirs."""
        self.hash = hash((id(ground), layout))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, FrameKey)
            and self.hash == other.hash
            and self.ground is other.ground
            and self.layout == other.layout
        )


def render(scene: Scene) -> Image.Image:
    """Draw a scene from scratch, mode RGB, as a picture of the caller's own."""
    ground, layout, tiles = at_once(_composing(scene))
    image = ground.copy()
    for stamp, tile in zip(layout, tiles, strict=True):
        if tile is None:
            image = image.point(_dimming())
        else:
            _put(image.im, stamp, tile, stamp.seen)
    return image


def draw(scene: Scene, last: Frame | None = None) -> Frame:
    """Draw a scene; ``last`` is what the same device showed before, from which unchanged parts are taken."""
    return at_once(drawing(scene, last))


def drawing(scene: Scene, last: Frame | None = None) -> Generator[None, None, Frame]:
    """``draw`` in parts, between which others can have their turn: a picture, or ``PIECE`` of new bitmaps, each.

    A first screen takes a while; where its bitmaps are known, there is but one part.
    """
    known: Frame | None = scene.drawn.frame()
    if known is not None and _FRAMES.used(known.key):
        return known
    frame = yield from _frame(*(yield from _composing(scene)), last)
    scene.drawn.frame = ref(frame)
    return frame


def _frame(ground: Image.Image, layout: Layout, tiles: Tiles, last: Frame | None) -> Generator[None, None, Frame]:
    """The frame of a layout: as it was kept, or as a change of the last one, or painted.

    What lies under a scrim is a frame of its own, dimmed, and the ground of what lies over it.
    """
    key = FrameKey(ground, layout, tiles)
    frame = _FRAMES.get(key)
    if frame is None:
        scrim = next((i for i in reversed(range(len(tiles))) if tiles[i] is None), None)
        if scrim is not None:
            ground = yield from _dimmed(ground, layout[: scrim + 1], tiles[: scrim + 1])
            layout, tiles = layout[scrim + 1 :], tiles[scrim + 1 :]
        boxes = _changes(last, layout) if last is not None and last.ground is ground else None
        if last is None or boxes is None:
            image = yield from _painted(ground, layout, tiles)
        else:
            image = yield from _changed(last.image, ground, layout, tiles, boxes)
        frame = _FRAMES.put(key, Frame(image, key, ground, layout))
        yield from _rest(image.size)
    return frame


def _dimmed(ground: Image.Image, layout: Layout, tiles: Tiles) -> Generator[None, None, Image.Image]:
    """A layout that ends in a scrim."""
    key = FrameKey(ground, layout, tiles)
    frame = _FRAMES.get(key)
    if frame is None:
        below = yield from _frame(ground, layout[:-1], tiles[:-1], None)
        frame = _FRAMES.put(key, Frame(below.image.point(_dimming()), key, ground, layout))
        yield from _rest(ground.size)
    return frame.image


def large(size: tuple[int, int]) -> bool:
    """Whether to copy a picture of this size, or to compute its digest, is a part of its own."""
    return size[0] * size[1] >= PASTED


def _rest(size: tuple[int, int]) -> Iterator[None]:
    """Others have their turn after a copy of so large a picture."""
    if large(size):
        yield


def _composing(scene: Scene) -> Generator[None, None, tuple[Image.Image, Layout, Tiles]]:
    """The ground of a scene, its layout, and the bitmaps in it."""
    yield from _pictures(scene)
    ground, style = background(scene.background, scene.style, scene.size), scene.style
    stamps: list[Stamp] = []
    tiles: list[Core | None] = []
    for part in scene.parts or (Part(scene.items),):
        known = _TILES.shelf(style).parts.get(part)
        if known is None:
            known = yield from _stamping(part, style)
            if scene.parts:
                _TILES.shelf(style).parts[part] = known
                _TILES.grown(style, ITEM_BYTES * len(part.items))
        stamps += known[0]
        tiles += known[1]
    _TILES.used(style)
    return ground, tuple(stamps), tiles


def _pictures(scene: Scene) -> Iterator[None]:
    """Make what ``background`` is made of, a new picture before each item."""
    kind, _, subject = scene.background.partition(":")
    if subject:
        yield from drawing_picture(subject, scene.size)
    if kind == "wallpaper" and (_is_new(_edges, scene.size) or _is_new(_wallpaper, subject, scene.size)):
        yield


def _is_new(picture: Any, *arguments: Any) -> bool:
    """Call a function that remembers its results, and tell whether it had to work this one out."""
    before = picture.cache_info().misses
    picture(*arguments)
    return bool(picture.cache_info().misses > before)


def _stamping(part: Part, style: Style) -> Generator[None, None, Stamped]:
    """The bitmaps of a part's items, and where they lie; between two items, ``PIECE`` of them are painted."""
    bitmaps = _TILES.shelf(style).bitmaps
    tiles: list[Core | None] = []
    stamps: list[Stamp] = []
    new = 0
    for item in part.items:
        widget, (x0, y0, x1, y1), _, seen, _, under = item
        tile = bitmaps.get((widget, x1 - x0, y1 - y0, under))
        if tile is None:
            if isinstance(widget, w.Picture) and (x1 - x0) * (y1 - y0) >= PIECE:
                yield from drawing_picture(widget.subject, (x1 - x0, y1 - y0))
            tile = _tile(item, style)
            new += (x1 - x0) * (y1 - y0)
        tiles.append(tile)
        stamps.append(Stamp(id(tile), x0, y0, seen))
        if new >= PIECE:
            yield
            new = 0
    return stamps, tiles


def differ(a: Frame, b: Frame) -> bool:
    """Whether two frames show different pixels."""
    return a is not b and a.screenshot.digest != b.screenshot.digest


def _painted(ground: Image.Image, layout: Layout, tiles: Tiles) -> Generator[None, None, Image.Image]:
    image = ground.copy()
    yield from _rest(ground.size)
    yield from _pasting(image.im, zip(layout, tiles, (stamp.seen for stamp in layout), strict=True))
    return image


def _changes(last: Frame, layout: Layout) -> list[Box] | None:
    """The boxes that differ from the last frame; None if they cover most of the screen."""
    width, height = last.image.size
    boxes = _merged([stamp.seen for stamp in _differing(last.layout, layout)])
    most = 2 * sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes) > width * height
    return None if most else boxes


def _changed(
    last: Image.Image, ground: Image.Image, layout: Layout, tiles: Tiles, boxes: Sequence[Box]
) -> Generator[None, None, Image.Image]:
    """A copy of the last picture with the boxes that differ painted anew."""
    image = last.copy()
    yield from _rest(ground.size)
    for box in boxes:
        image.im.paste(ground.im.crop(box), box)
        yield from _pasting(image.im, _within(box, layout, tiles))
    return image


def _within(box: Box, layout: Layout, tiles: Tiles) -> Iterator[Pasted]:
    """What lies in a box, cut to it."""
    left, top, right, bottom = box
    for stamp, tile in zip(layout, tiles, strict=True):
        x0, y0, x1, y1 = stamp.seen
        if y0 < bottom and y1 > top and x0 < right and x1 > left:
            yield stamp, tile, (max(x0, left), max(y0, top), min(x1, right), min(y1, bottom))


def _pasting(core: Core, pasted: Iterable[Pasted]) -> Iterator[None]:
    """Paste bitmaps one after the other, ``PASTED`` pixels of them between two turns of others."""
    done = 0
    for stamp, tile, seen in pasted:
        _put(core, stamp, tile, seen)
        done += max(0, seen[2] - seen[0]) * max(0, seen[3] - seen[1])
        if done >= PASTED:
            yield
            done = 0


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


def _put(core: Core, stamp: Stamp, tile: Core | None, seen: Box) -> None:
    """Paste the part of a tile that lies in ``seen``."""
    x0, y0, x1, y1 = seen
    if tile is None or x1 <= x0 or y1 <= y0:
        return
    if (x1 - x0, y1 - y0) != tile.size:
        tile = tile.crop((x0 - stamp.x, y0 - stamp.y, x1 - stamp.x, y1 - stamp.y))
    if tile.mode == "RGBA":
        core.paste(tile, seen, tile)
    else:
        core.paste(tile, seen)


@lru_cache(maxsize=1)
def _dimming() -> list[int]:
    return [int(v * SCRIM) for v in range(256)] * 3


def background(name: str, style: Style, size: tuple[int, int]) -> Image.Image:
    """The ground of a scene: the page colour, a wallpaper, or a picture as it is. Shared: do not change it."""
    if name.startswith("picture:"):
        return draw_picture(name.partition(":")[2], size)
    if name.startswith("wallpaper:"):
        return _wallpaper(name.partition(":")[2], size)
    return _plain(style.palette.by_name[name], size)


@lru_cache(maxsize=32)
def _wallpaper(subject: str, size: tuple[int, int]) -> Image.Image:
    return Image.composite(draw_picture(subject, size), Image.new("RGB", size), _edges(size))


@lru_cache(maxsize=64)
def _plain(colour: Colour, size: tuple[int, int]) -> Image.Image:
    return Image.new("RGB", size, colour)


@lru_cache(maxsize=8)
def _edges(size: tuple[int, int]) -> Image.Image:
    """How much of a wallpaper shows, so that white text on it can be read: least at the top and bottom."""
    height = size[1]
    column = Image.new("L", (1, height))
    for y in range(height):
        near = min(y / height / 0.12, (height - y) / height / 0.30, 1.0)
        column.putpixel((0, y), round(255 * (0.45 + 0.35 * near)))
    return column.resize(size)


def _tile(item: Placed, style: Style) -> Core | None:
    """Paint a widget: RGB over the colour of its ground, or RGBA where that varies. None for a scrim."""
    x0, y0, x1, y1 = item.box
    widget = item.widget
    if isinstance(widget, w.Bar) and widget.fill == "scrim":
        return None
    canvas = Canvas(style, (max(1, x1 - x0), max(1, y1 - y0)), style.palette.by_name.get(item.ground))
    PAINTERS[type(widget)](canvas, widget)
    # asked for anew: a bitmap before this one may have pushed the style's others out
    _TILES.shelf(style).bitmaps[widget, x1 - x0, y1 - y0, item.ground] = canvas.core
    _TILES.grown(style, canvas.size[0] * canvas.size[1] * 4)
    return canvas.core


TileKey = tuple[w.Widget, int, int, str]


class Shelf:
    """The bitmaps of one style, and the parts of scenes that are made of them."""

    __slots__ = ("bitmaps", "parts", "size")

    def __init__(self) -> None:
        self.bitmaps: dict[TileKey, Core] = {}
        self.parts: dict[Part, Stamped] = {}
        self.size = 0
        """Bytes of the bitmaps."""


class TileCache:
    """Bitmaps by style. When there are too many, the styles that were longest unused go."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.shelves: OrderedDict[Style, Shelf] = OrderedDict()

    def shelf(self, style: Style) -> Shelf:
        """What there is of one style."""
        found = self.shelves.get(style)
        if found is None:
            found = self.shelves[style] = Shelf()
        return found

    def clear(self) -> None:
        """Drop all bitmaps."""
        self.shelves.clear()
        self.size = 0

    def used(self, style: Style) -> None:
        """Note that a style is in use."""
        if style in self.shelves:
            self.shelves.move_to_end(style)

    def grown(self, style: Style, size: int) -> None:
        """Count a new bitmap of ``size`` bytes."""
        self.shelves[style].size += size
        self.size += size
        self.shelves.move_to_end(style)
        while self.size > self.limit:
            _, oldest = self.shelves.popitem(last=False)
            self.size -= oldest.size


class FrameCache:
    """The frames used last, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.frames: OrderedDict[Hashable, tuple[Frame, int]] = OrderedDict()

    def get(self, key: Hashable) -> Frame | None:
        """The frame of a layout."""
        found = self.frames.get(key)
        if found is None:
            return None
        self.frames.move_to_end(key)
        return found[0]

    def used(self, key: Hashable) -> bool:
        """Note that a frame was shown again, if it is here."""
        if key not in self.frames:
            return False
        self.frames.move_to_end(key)
        return True

    def clear(self) -> None:
        """Drop all frames."""
        self.frames.clear()
        self.size = 0

    def put(self, key: Hashable, frame: Frame) -> Frame:
        """Keep a frame, and return it; the one that is here already if another has painted the same meanwhile."""
        known = self.get(key)
        if known is not None:
            return known
        size = frame.image.width * frame.image.height * 4
        self.frames[key] = frame, size
        self.size += size
        while self.size > self.limit and len(self.frames) > 1:
            _, (_, gone) = self.frames.popitem(last=False)
            self.size -= gone
        return frame


_TILES = TileCache(TILE_BYTES)
_FRAMES = FrameCache(FRAME_BYTES)


def forget() -> None:
    """Drop all bitmaps and frames: for tests, and for measuring what the first time costs."""
    _TILES.clear()
    _FRAMES.clear()
