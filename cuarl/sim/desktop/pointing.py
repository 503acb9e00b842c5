"""What lies under a pixel, and scrolling it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from cuarl.sim.desktop.view import DESK, DesktopLayout, layout
from cuarl.sim.desktop.widgets import Shadow, Tip
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.scene import Box, Placed, Region


class Hit(NamedTuple):
    """The control under a pixel (None for bare ground), its box, and whose it is."""

    widget: w.Control | None
    box: Box
    owner: str
    layout: DesktopLayout


def hit_test(world: DesktopWorld, x: int, y: int) -> Hit:
    """The topmost thing at a pixel decides whose the pixel is; of its owner's things, the topmost control is hit."""
    found = layout(world)
    owner: str | None = None
    for item, whose in zip(reversed(found.scene.items), reversed(found.owners), strict=True):
        if not _covers(item, x, y) or isinstance(item.widget, Shadow | Tip):
            continue
        if owner is None:
            owner = whose
        if whose != owner:
            break
        if isinstance(item.widget, w.Control):
            return Hit(item.widget, item.box, owner, found)
    return Hit(None, (0, 0, 0, 0), owner or DESK, found)


def _covers(item: Placed, x: int, y: int) -> bool:
    x0, y0, x1, y1 = item.visible
    return x0 <= x < x1 and y0 <= y < y1


def region_at(world: DesktopWorld, x: int, y: int) -> Region | None:
    """The scroll region at a pixel, of the window that can be seen there."""
    hit = hit_test(world, x, y)
    key = hit.owner.rstrip("!")
    for region in reversed(hit.layout.scene.regions):
        x0, y0, x1, y1 = region.box
        if region.id.startswith(f"{key} ") and x0 <= x < x1 and y0 <= y < y1:
            return region
    return None


def scroll_by(world: DesktopWorld, region: Region, units: float) -> DesktopWorld:
    """Scroll a region; positive reveals what is further down."""
    offset = min(max(0, region.offset + round(units)), region.reach)
    key, _, name = region.id.partition(" ")
    window = world.window(key)
    if window is None or offset == region.offset:
        return world
    return world.with_window(replace(window, scroll=window.scroll.put(name, offset)))
