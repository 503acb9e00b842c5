"""Where the parts of the desktop lie, in units."""

from __future__ import annotations

from typing import NamedTuple

from cuarl.sim.desktop.world import DesktopWorld, Window

PANEL = 26
"""Height of the panel."""
TITLE = 22
"""Height of a title bar."""
LEAST_WIDTH, LEAST_HEIGHT = 150, 110
GRIP = 8
"""Size of the corner that a window is resized by."""


class Rect(NamedTuple):
    """A rectangle in units."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


def work_area(world: DesktopWorld) -> Rect:
    """The screen without the panel."""
    top = PANEL if world.look.panel == "top" else 0
    return Rect(0, top, world.screen.width, world.screen.height - PANEL)


def panel(world: DesktopWorld) -> Rect:
    """The panel."""
    y = 0 if world.look.panel == "top" else world.screen.height - PANEL
    return Rect(0, y, world.screen.width, PANEL)


def frame_of(world: DesktopWorld, window: Window) -> Rect:
    """What a window fills."""
    if window.maximised:
        return work_area(world)
    return Rect(window.x, window.y, window.width, window.height)


def first_place(world: DesktopWorld, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Left, top, width and height of a new window: near the middle, each a step further than the one before."""
    area = work_area(world)
    grow = min(area.width / 480, (area.height + PANEL) / 320)
    width = min(round(size[0] * grow), int(area.width) - 8)
    height = min(round(size[1] * grow), int(area.height) - 8)
    count = len(world.ui.windows)
    dx, dy = world.look.offset
    x = (area.width - width) / 2 + dx * grow + 18 * count
    y = area.y + (area.height - height) / 2 + dy * grow + 12 * count
    return (
        round(min(max(x, 4), area.right - width - 4)),
        round(min(max(y, area.y + 4), area.bottom - height - 4)),
        width,
        height,
    )
