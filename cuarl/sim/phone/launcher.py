"""The launcher: home pages, dock, app drawer, folders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cuarl.sim.device.order import permutation
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.effects import Do, Effect, Focus, Launch, Overlay
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.kit.scene import Spot, spread, stack
from cuarl.sim.kit.style import Style
from cuarl.sim.phone.chrome import NAV_HEIGHT, STATUS_HEIGHT, clock
from cuarl.sim.phone.reading import remember_reads
from cuarl.sim.phone.records import App, HomePage
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.world import WIDTH, World

COLUMNS = 4
CELL_HEIGHT = 56.0
DOCK_HEIGHT = 44.0
CLOCK_HEIGHT = 52.0
TODAY = "Thursday, 18 June"
QUERY = "ui.form.drawer.query"


def first_layout(state: DeviceState, seed: int, rows: int) -> tuple[HomePage, ...]:
    """Spread the icons of installed apps over home pages in this device's order; the last page may hold fewer."""
    keys = [a.key for a in state.apps if a.icon and a.installed and a.key not in state.launcher.dock]
    keys = [keys[i] for i in permutation(seed, "home", len(keys))]
    size = COLUMNS * rows
    return tuple(HomePage(tuple(keys[i : i + size])) for i in range(0, len(keys), size))


@remember_reads(128)
def home(world: World) -> list[Spot]:
    """The shown home page with its dock."""
    state = world.state
    pages, apps = state.launcher.pages, {app.key: app for app in state.apps}
    cells: list[w.Widget] = []
    if pages:
        page = pages[min(world.ui.home_page, len(pages) - 1)]
        cells += [w.FolderIcon(f.name, Overlay(f"folder:{f.name}"), apps=f.apps) for f in page.folders]
        cells += [icon(world, app) for key in page.apps if (app := apps.get(key)) and app.installed]
    dock = tuple([icon(world, app, named=False) for key in state.launcher.dock if (app := apps.get(key))])
    time = HomeClock(clock(world)) if pages and world.look.home_clock else None
    dots = Dots(len(pages), world.ui.home_page)
    return _arranged(tuple(cells), dock, time, dots, world.profile.height, world.style)


@lru_cache(maxsize=256)
def _arranged(
    cells: tuple[w.Widget, ...],
    dock: tuple[w.AppIcon, ...],
    time: HomeClock | None,
    dots: Dots,
    height: float,
    style: Style,
) -> list[Spot]:
    """A home page: one list for what looks the same, however the device came to it.

    Icons that look the same do the same.
    """
    spots: list[Spot] = []
    top = STATUS_HEIGHT + 10
    if time is not None:
        spots.append(Spot(time, 0, top, WIDTH, CLOCK_HEIGHT))
        top += CLOCK_HEIGHT + 6
    spots += spread(w.Grid(cells, COLUMNS, CELL_HEIGHT, gap=0, pad=1), style, 0, top, WIDTH, 0)
    dock_y = height - NAV_HEIGHT - DOCK_HEIGHT - 4
    spots.append(Spot(dots, 0, dock_y - 12, WIDTH, 10))
    spots += spread(w.HBox(dock, pad=6), style, 0, dock_y, WIDTH, DOCK_HEIGHT)
    return spots


@remember_reads(128)
def drawer(world: World) -> tuple[list[Spot], list[Spot]]:
    """The app drawer: its search field, and the icons below it (these scroll)."""
    style, query = world.style, str(world.get(QUERY))
    field = w.Field("Search apps", Focus(QUERY), path=QUERY, text=query, focused=world.ui.focus == QUERY, search=True)
    top = stack((field,), style, 0, STATUS_HEIGHT + 4, WIDTH)
    apps = sorted((a for a in world.state.apps if a.icon and a.installed), key=lambda a: a.name)
    shown = [a for a in apps if query.lower() in a.name.lower()]
    cells = tuple(icon(world, a, on_wallpaper=False) for a in shown)
    y = top[0].y + top[0].height + 4
    return top, list(spread(w.Grid(cells, COLUMNS, CELL_HEIGHT, gap=0, pad=1), style, 0, y, WIDTH, 0))


def folder(world: World, name: str) -> tuple[str, ...]:
    """Keys of the apps in a folder of the launcher."""
    folders = (f for page in world.state.launcher.pages for f in page.folders)
    return next((f.apps for f in folders if f.name == name), ())


def icon(world: World, app: App, *, named: bool = True, on_wallpaper: bool = True) -> w.AppIcon:
    """An app's icon; it has a dot while the app has a notification."""
    badges, posted = world.state.notifications.badges, world.state.notifications.items
    badge = badges and any(note.app == app.key for note in posted)
    return _icon(app.name, app.key, badge, named, on_wallpaper)


@lru_cache(maxsize=1024)
def _icon(name: str, key: str, badge: bool, named: bool, on_wallpaper: bool) -> w.AppIcon:
    effect: Effect = Launch(key)
    menu = Do("home.icon_menu", (key,))
    return w.AppIcon(name, effect, menu, app=key, badge=badge, named=named, on_wallpaper=on_wallpaper)


def rows_that_fit(height: float) -> int:
    """Rows of icons on a home page of a screen ``height`` units high; the upper part is kept free, as people do."""
    return max(2, int((height - STATUS_HEIGHT - NAV_HEIGHT - DOCK_HEIGHT - 30) // CELL_HEIGHT) - 2)


@dataclass(frozen=True, slots=True)
class Dots(w.Widget):
    """Which home page is shown."""

    count: int = 1
    at: int = 0


def paint_dots(c: Canvas, dots: Dots) -> None:
    """Draw the page dots."""
    for i in range(dots.count):
        x = c.width / 2 + (i - (dots.count - 1) / 2) * 9
        c.circle(x, c.height / 2, 2.6 if i == dots.at else 1.8, (255, 255, 255) if i == dots.at else (200, 200, 206))


@dataclass(frozen=True, slots=True)
class HomeClock(w.Widget):
    """The time, large, on the wallpaper."""

    time: str = ""


def paint_home_clock(c: Canvas, widget: HomeClock) -> None:
    """Draw the clock with a soft shadow."""
    for offset, ink in ((1.0, (30, 30, 36)), (0.0, (255, 255, 255))):
        c.text(c.width / 2 + offset, c.height / 2 - 6 + offset, widget.time, 30, ink, align="centre")
        c.text(c.width / 2 + offset, c.height - 8 + offset, TODAY, 10, ink, align="centre")


PAINTERS.update({Dots: paint_dots, HomeClock: paint_home_clock})
