"""The system's own parts of every screen: status bar and navigation bar."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.effects import Back, Effect, Home, Overlay
from cuarl.sim.kit.icons import APP_GLYPHS
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.kit.scene import Spot
from cuarl.sim.phone.reading import remember_reads
from cuarl.sim.phone.world import WIDTH, World

STATUS_HEIGHT = 16.0
NAV_HEIGHT = 24.0


@dataclass(frozen=True, slots=True)
class StatusBar(w.Widget):
    """Clock and notification icons on the left, status icons and battery on the right."""

    role: ClassVar[str] = ""
    clock: str = ""
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    level: int = 100
    percent: bool = False
    white: bool = False
    """Over a picture the text is white whatever the theme."""


def paint_status(c: Canvas, bar: StatusBar) -> None:
    """Draw the status bar."""
    p, y = c.style.palette, c.height / 2
    ink = (255, 255, 255) if bar.white else p.text
    c.text(8, y, bar.clock, 10, ink, bold=True)
    for i, icon in enumerate(bar.left):
        c.icon(icon, 46 + 13 * i, y, 9.5, ink)
    x = WIDTH - 8.0
    if bar.percent:
        c.text(x, y, f"{bar.level}%", 9.5, ink, align="right")
        x -= 26
    _battery(c, x - 7, y, bar.level, ink)
    x -= 21
    for icon in bar.right:
        c.icon(icon, x, y, 10, ink)
        x -= 13


def _battery(c: Canvas, x: float, y: float, level: int, ink: tuple[int, int, int]) -> None:
    c.outline(x - 1, y - 4, 8, 9, 1.5, ink, 1.2)
    c.rect(x + 1, y - 5, 4, 1, ink)
    fill = max(1.0, 7 * level / 100)
    c.rect(x, y + 4 - fill, 6, fill, ink)


PAINTERS[StatusBar] = paint_status


@remember_reads(256)
def status_bar(world: World, white: bool) -> tuple[Spot, ...]:
    """The status bar, mirroring the state."""
    state = world.state
    net, sound = state.network, state.sound
    right = [
        name
        for name, shown in (
            ("airplane", net.airplane_mode),
            ("signal", not net.airplane_mode),
            ("wifi", net.wifi.enabled),
            ("bluetooth", net.bluetooth.enabled),
            ("dnd", sound.dnd),
            ("vibrate", sound.vibrate_on_ring),
            ("location", False),
            ("hotspot", net.hotspot),
            ("vpn", net.vpn),
            ("saver", state.battery.saver),
        )
        if shown
    ]
    posted = dict.fromkeys(APP_GLYPHS[n.app][0] for n in state.notifications.items if n.app in APP_GLYPHS)
    bar = StatusBar(
        clock(world), tuple(posted)[:3], tuple(right[:5]), state.battery.level, state.battery.show_percentage, white
    )
    return (Spot(bar, 0, 0, WIDTH, STATUS_HEIGHT),)


def clock(world: World) -> str:
    """The time as the status bar shows it."""
    hours, minutes = divmod(world.look.minutes, 60)
    if world.state.system.use_24h:
        return f"{hours:02d}:{minutes:02d}"
    return f"{(hours - 1) % 12 + 1}:{minutes:02d}"


def nav_bar(world: World, *, white: bool) -> tuple[Spot, ...]:
    """Back, home, recents."""
    return _nav_bar(world.profile.height, white, world.ui.overlay == "recents")


@lru_cache(maxsize=64)
def _nav_bar(height: float, white: bool, in_recents: bool) -> tuple[Spot, ...]:
    third = WIDTH / 3
    keys = (
        ("Back", "nav_back", Back()),
        ("Home", "nav_home", Home()),
        ("Recents", "nav_recents", _toggled(in_recents)),
    )
    return tuple(
        Spot(NavKey(label, effect, icon=icon, white=white), i * third, height - NAV_HEIGHT, third, NAV_HEIGHT)
        for i, (label, icon, effect) in enumerate(keys)
    )


def _toggled(in_recents: bool) -> Effect:
    return Overlay("" if in_recents else "recents")


@dataclass(frozen=True, slots=True)
class NavKey(w.Control):
    """A button of the navigation bar."""

    role: ClassVar[str] = "button"
    icon: str = ""
    white: bool = False


def paint_nav(c: Canvas, key: NavKey) -> None:
    """Draw a navigation button."""
    ink = (255, 255, 255) if key.white else c.style.palette.muted
    c.icon(key.icon, c.width / 2, c.height / 2, 13, ink)


PAINTERS[NavKey] = paint_nav
