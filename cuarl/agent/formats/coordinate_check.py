"""Proves a format's coordinates on a screen: targets are drawn, shrunk as the model's picture is, named, and met again.

For each target three things must agree: the place at which it lies in the picture that the model sees, measured in its
pixels; the place that the format's own words name; and the pixel of the screen that those words are read as.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from cuarl.agent.formats.base import Size
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.points import RELATIVE
from cuarl.errors import AgentError
from cuarl.types import Click

COLUMNS, ROWS = 5, 7
"""Targets across and down, one in the middle of each cell; the corners of the screen come on top."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_GOOD, _BAD, _TARGET = (22, 163, 74), (220, 38, 38), (0, 0, 0)


class Target(NamedTuple):
    """One target. Places are in pixels, except for ``said``."""

    x: int
    y: int
    said: tuple[int, int]
    """The numbers in the format's words."""
    drawn: tuple[float, float] | None
    """Where it lies in the picture that the model sees; None at the corners, where it would be cut off."""
    named: tuple[float, float]
    """Where in that picture the words point."""
    read: tuple[int, int] | None
    """What the words are read as; None if they are no action."""
    off: float
    """The larger distance of ``read`` from the target, across or down."""
    fault: str
    """Why the proof fails here; "" if it holds."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found for one format and screen."""

    format: str
    screen: Size
    sent: Size
    seen: Size
    grid: Size
    """The space of the coordinates."""
    targets: tuple[Target, ...]
    picture: Image.Image
    """What the model sees, with a cross wherever the words point."""

    @property
    def holds(self) -> bool:
        """Whether every target was met."""
        return not any(t.fault for t in self.targets)

    @property
    def worst(self) -> float:
        """The largest distance of a target from where it was met, in pixels of the screen; infinite if one was lost."""
        return max(t.off for t in self.targets)


def prove(format: Family, screen: Size, resized: Size | None = None) -> Proof:
    """Draw, shrink, name and meet targets. ``resized`` is the size at which the model sees; None the usual one.

    Raises ``AgentError`` for a screen too small to draw on.
    """
    if min(screen.width // COLUMNS, screen.height // ROWS) < 8:
        raise AgentError(
            f"a screen of {screen.width}x{screen.height} is too small for {COLUMNS} by {ROWS} targets",
            hint="--screen 360x640",
        )
    sent = format.sent(screen)
    seen = resized or format.seen(sent)
    side = max(3, min(screen.width // COLUMNS, screen.height // ROWS) // 4 * 2 + 1)
    places = _places(screen)
    picture = _shrunk(_drawn(screen, places, side), sent, seen)
    corners = [(x, y) for x in (0, screen.width - 1) for y in (0, screen.height - 1)]
    targets = [_target(format, screen, seen, place, _measured(picture, screen, place)) for place in places]
    targets += [_target(format, screen, seen, corner, None) for corner in corners]
    grid = format.grid(screen, seen)
    return Proof(format.name, screen, sent, seen, grid, tuple(targets), _marked(picture, targets))


def _places(screen: Size) -> list[tuple[int, int]]:
    """The middle of each cell, shifted a little from cell to cell so that no round number hides a fault."""
    cell = screen.width / COLUMNS, screen.height / ROWS
    return [
        (int((c + 0.5) * cell[0]) + (r % 3 - 1), int((r + 0.5) * cell[1]) + (c % 3 - 1))
        for r in range(ROWS)
        for c in range(COLUMNS)
    ]


def _drawn(screen: Size, places: Sequence[tuple[int, int]], side: int) -> Image.Image:
    image = Image.new("RGB", screen, (255, 255, 255))
    draw, half = ImageDraw.Draw(image), side // 2
    for x, y in places:
        draw.rectangle((x - half, y - half, x + half, y + half), fill=_TARGET)
    return image


def _shrunk(image: Image.Image, sent: Size, seen: Size) -> Image.Image:
    if sent != image.size:
        image = image.resize(sent, Image.Resampling.LANCZOS)
    return image if seen == image.size else image.resize(seen, Image.Resampling.BICUBIC)


def _measured(picture: Image.Image, screen: Size, place: tuple[int, int]) -> tuple[float, float]:
    """The centre of the darkness in a target's cell of the picture, in its pixels."""
    across, down = picture.width / COLUMNS, picture.height / ROWS
    c, r = place[0] * COLUMNS // screen.width, place[1] * ROWS // screen.height
    left, top = round(c * across), round(r * down)
    box = (left, top, round((c + 1) * across), round((r + 1) * down))
    dark = 255.0 - np.asarray(picture.crop(box).convert("L"), dtype=np.float64)
    ys, xs = np.indices(dark.shape)
    return left + float((dark * xs).sum() / dark.sum()), top + float((dark * ys).sum() / dark.sum())


def _target(
    format: Family, screen: Size, seen: Size, place: tuple[int, int], drawn: tuple[float, float] | None
) -> Target:
    x, y = place
    text = format.render(Click(x=x, y=y), screen, resized=seen)
    numbers = [int(n) for n in _NUMBER.findall(text)]
    said = (numbers[0], numbers[1]) if len(numbers) == 2 else (-1, -1)
    grid = format.grid(screen, seen)
    unit = seen if format.absolute else RELATIVE  # by what the prompt says, and not by the format's own map
    named = said[0] * seen.width / unit.width, said[1] * seen.height / unit.height
    action = format.parse(text, screen, resized=seen).action
    read = (action.x, action.y) if isinstance(action, Click) else None
    distances = [abs(a - b) for a, b in zip(read, place, strict=True)] if read else [float("inf")]
    fault = ""
    if len(numbers) != 2:
        fault = f"the words name no point: {text}"
    elif read is None:
        fault = f"the words are not read as a click: {text}"
    elif any(
        d > limit for d, limit in zip(distances, _limits(screen, grid, place, said, format.last_said), strict=True)
    ):
        fault = f"read {max(distances):g} pixels away"
    elif drawn is not None and not _agree(drawn, named, screen, seen, grid):
        fault = (
            f"the words point at ({named[0]:.1f}, {named[1]:.1f}), and it is drawn at ({drawn[0]:.1f}, {drawn[1]:.1f})"
        )
    return Target(x, y, said, drawn, named, read, max(distances), fault)


def _limits(screen: Size, grid: Size, place: tuple[int, int], said: tuple[int, int], short: int) -> list[float]:
    """How far off a target may be met: nothing, or half a step of a coarser grid and half a pixel of rounding.

    The last pixels of a grid whose far end is never said (``short`` steps) may be off by as many steps more.
    """
    limits: list[float] = []
    for side, steps, number in zip(screen, grid, said, strict=True):
        step = side / steps
        limits.append((0.0 if step <= 1 else step / 2 + 0.5) + (short * step if number >= steps - short else 0.0))
    return limits


def _agree(drawn: tuple[float, float], named: tuple[float, float], screen: Size, seen: Size, grid: Size) -> bool:
    """Whether two places in the picture are one: within a pixel of the screen and half a step of the grid."""
    return all(
        abs(a - b) <= s / w + s / g / 2 + 0.5 for a, b, s, w, g in zip(drawn, named, seen, screen, grid, strict=True)
    )


def _marked(picture: Image.Image, targets: Sequence[Target]) -> Image.Image:
    image = picture.copy()
    draw = ImageDraw.Draw(image)
    arm = max(4, min(image.size) // 40)
    for target in targets:
        x, y = target.named
        colour = _BAD if target.fault else _GOOD
        draw.line((x - arm, y, x + arm, y), fill=colour, width=2)
        draw.line((x, y - arm, x, y + arm), fill=colour, width=2)
    return image
