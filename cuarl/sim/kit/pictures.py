"""Drawn pictures: wallpapers and photos, as landscapes and patterns named by their subject."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Generator

from PIL import Image, ImageDraw

from cuarl.sim.kit.parts import at_once
from cuarl.sim.kit.style import Colour

Draw = ImageDraw.ImageDraw


BANDS = 4
"""Parts in which the ground of a picture is filled."""


def gradient(size: tuple[int, int], top: Colour, bottom: Colour) -> Generator[None, None, Image.Image]:
    """A vertical gradient, in parts."""
    strip = Image.new("RGB", (1, 2))
    strip.putpixel((0, 0), top)
    strip.putpixel((0, 1), bottom)
    width, height = size
    column = strip.resize((1, height), Image.Resampling.BILINEAR, box=(0, 0.5, 1, 1.5))
    image = Image.new("RGB", size, None)  # every row is filled below
    for band in range(BANDS):
        y0, y1 = band * height // BANDS, (band + 1) * height // BANDS
        if y1 > y0:
            rows = column.crop((0, y0, 1, y1))
            image.paste(rows.resize((width, y1 - y0), Image.Resampling.NEAREST), (0, y0))  # all columns are alike
            yield
    return image


def _hills(d: Draw, w: int, h: int) -> None:
    d.ellipse((w * 0.62, h * 0.12, w * 0.82, h * 0.12 + w * 0.2), fill=(255, 244, 214))
    for i, colour in enumerate(((92, 130, 150), (66, 108, 112), (44, 84, 78))):
        y = h * (0.55 + 0.13 * i)
        points = [(x * w / 12, y + math.sin(x * 0.9 + i * 2) * h * 0.07) for x in range(13)]
        d.polygon([(0, h), *points, (w, h)], fill=colour)


def _sunset(d: Draw, w: int, h: int) -> None:
    d.ellipse((w * 0.28, h * 0.38, w * 0.72, h * 0.38 + w * 0.44), fill=(255, 214, 120))
    d.rectangle((0, h * 0.66, w, h), fill=(58, 46, 96))
    for i in range(5):
        y = h * (0.70 + 0.06 * i)
        d.line((w * (0.3 + 0.03 * i), y, w * (0.7 - 0.03 * i), y), fill=(250, 176, 120), width=max(1, h // 90))


def _city(d: Draw, w: int, h: int) -> None:
    for i in range(9):
        x, top = w * i / 9, h * (0.35 + 0.4 * ((i * 37) % 10) / 10)
        d.rectangle((x, top, x + w / 9.5, h), fill=(40 + 8 * (i % 3), 48 + 6 * (i % 4), 72))
        for j in range(5):
            y = top + (j + 1) * h * 0.06
            d.rectangle((x + w * 0.03, y, x + w * 0.05, y + h * 0.02), fill=(250, 220, 130))


def _flower(d: Draw, w: int, h: int) -> None:
    cx, cy, r = w / 2, h * 0.45, min(w, h) * 0.16
    d.line((cx, cy, cx, h), fill=(60, 130, 70), width=max(2, w // 30))
    for i in range(6):
        a = i * math.pi / 3
        x, y = cx + math.cos(a) * r * 1.2, cy + math.sin(a) * r * 1.2
        d.ellipse((x - r, y - r, x + r, y + r), fill=(226, 84, 120))
    d.ellipse((cx - r * 0.8, cy - r * 0.8, cx + r * 0.8, cy + r * 0.8), fill=(250, 206, 80))


def _waves(d: Draw, w: int, h: int) -> None:
    for i in range(7):
        y = h * (0.25 + 0.12 * i)
        points = [(x * w / 16, y + math.sin(x * 0.8 + i) * h * 0.03) for x in range(17)]
        d.polygon([(0, h), *points, (w, h)], fill=(30 + 14 * i, 90 + 12 * i, 140 + 10 * i))


def _abstract(d: Draw, w: int, h: int) -> None:
    for i in range(6):
        r = min(w, h) * (0.55 - 0.08 * i)
        x, y = w * (0.2 + 0.12 * i), h * (0.75 - 0.1 * i)
        d.ellipse((x - r, y - r, x + r, y + r), fill=(96 + 24 * i, 60 + 20 * i, 150 - 8 * i))


def _dunes(d: Draw, w: int, h: int) -> None:
    for i in range(4):
        y = h * (0.4 + 0.16 * i)
        points = [(x * w / 10, y + math.sin(x * 0.6 + i * 1.7) * h * 0.06) for x in range(11)]
        d.polygon([(0, h), *points, (w, h)], fill=(226 - 26 * i, 176 - 26 * i, 120 - 20 * i))


def _stripes(d: Draw, w: int, h: int) -> None:
    step = max(4, w // 6)
    for i, x in enumerate(range(-h, w, step)):
        tone = 70 + 18 * (i % 4)
        d.polygon([(x, h), (x + step, h), (x + step + h, 0), (x + h, 0)], fill=(tone, tone + 22, tone + 54))


def _night(d: Draw, w: int, h: int) -> None:
    for i in range(40):
        x, y = (i * 73) % 100 * w / 100, (i * 41) % 100 * h / 100
        d.ellipse((x - 1, y - 1, x + 1, y + 1), fill=(220, 226, 250))
    d.ellipse((w * 0.65, h * 0.1, w * 0.65 + w * 0.18, h * 0.1 + w * 0.18), fill=(240, 236, 214))


def _portrait(d: Draw, w: int, h: int) -> None:
    r = min(w, h) * 0.2
    cx, cy = w / 2, h * 0.42
    d.ellipse((cx - r * 2, cy + r * 0.9, cx + r * 2, cy + r * 5), fill=(74, 96, 140))
    d.ellipse((cx - r * 1.15, cy - r * 1.35, cx + r * 1.15, cy + r * 1.0), fill=(92, 62, 44))
    d.ellipse((cx - r, cy - r * 0.9, cx + r, cy + r * 1.25), fill=(232, 190, 160))
    for side in (-1, 1):
        x = cx + side * r * 0.4
        d.ellipse((x - r * 0.1, cy, x + r * 0.1, cy + r * 0.2), fill=(50, 40, 40))
    d.arc(
        (cx - r * 0.4, cy + r * 0.3, cx + r * 0.4, cy + r * 0.8),
        20,
        160,
        fill=(150, 70, 70),
        width=max(1, round(r / 10)),
    )


def _screen(d: Draw, w: int, h: int) -> None:
    d.rectangle((0, 0, w, h * 0.16), fill=(120, 132, 170))
    for i in range(5):
        y = h * (0.24 + 0.15 * i)
        d.ellipse((w * 0.08, y, w * 0.08 + h * 0.09, y + h * 0.09), fill=(150, 160, 190))
        d.rectangle((w * 0.28, y + h * 0.015, w * (0.62 + 0.08 * (i % 3)), y + h * 0.07), fill=(176, 180, 196))


def _plain(d: Draw, w: int, h: int) -> None:
    pass


SUBJECTS: dict[str, tuple[Colour, Colour, Callable[[Draw, int, int], None]]] = {
    "hills": ((158, 200, 228), (226, 236, 232), _hills),
    "sunset": ((72, 48, 120), (244, 130, 96), _sunset),
    "city": ((36, 44, 86), (150, 120, 150), _city),
    "flower": ((206, 230, 200), (150, 196, 150), _flower),
    "waves": ((150, 206, 226), (60, 130, 170), _waves),
    "abstract": ((44, 36, 84), (126, 74, 140), _abstract),
    "dunes": ((196, 214, 232), (246, 222, 186), _dunes),
    "stripes": ((60, 80, 112), (60, 80, 112), _stripes),
    "night": ((10, 16, 44), (40, 52, 98), _night),
    "portrait": ((196, 206, 196), (150, 170, 170), _portrait),
    "screen": ((240, 241, 246), (240, 241, 246), _screen),
    "mist": ((122, 152, 162), (196, 206, 204), _plain),
}
WALLPAPERS: tuple[str, ...] = ("hills", "sunset", "waves", "abstract", "dunes", "stripes", "night", "mist", "city")


PICTURES = 128
_DRAWN: OrderedDict[tuple[str, tuple[int, int]], Image.Image] = OrderedDict()
"""The pictures used last."""


def draw_picture(subject: str, size: tuple[int, int]) -> Image.Image:
    """The picture of ``subject`` in a size, mode RGB. Do not modify it: it is kept."""
    return at_once(drawing_picture(subject, size))


def drawing_picture(subject: str, size: tuple[int, int]) -> Generator[None, None, Image.Image]:
    """``draw_picture`` in parts, between which others can have their turn; in one if the picture is known."""
    known = _DRAWN.get((subject, size))
    if known is not None:
        _DRAWN.move_to_end((subject, size))
        return known
    top, bottom, paint = SUBJECTS.get(subject.partition(":")[0], SUBJECTS["mist"])
    big = yield from gradient((size[0] * 2, size[1] * 2), top, bottom)
    paint(ImageDraw.Draw(big), *big.size)
    yield
    # whoever draws the same meanwhile gets the same picture: a frame knows its ground by its identity
    picture = _DRAWN.setdefault((subject, size), big.reduce(2))
    while len(_DRAWN) > PICTURES:
        _DRAWN.popitem(last=False)
    yield
    return picture
