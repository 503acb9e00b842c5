"""``view(world) -> Scene``: everything that is on the screen, in painting order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from cuarl.sim.device.memory import Key, remember
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Back, Dialog, Dismiss, Effect, Overlay, Show
from cuarl.sim.kit.scene import Box, Part, Placed, Region, Scene, Spot, height_of, place, stack, total_height
from cuarl.sim.kit.style import Style
from cuarl.sim.phone import launcher, layers
from cuarl.sim.phone.apps import build
from cuarl.sim.phone.chrome import NAV_HEIGHT, STATUS_HEIGHT, nav_bar, status_bar
from cuarl.sim.phone.home_editing import rename_folder
from cuarl.sim.phone.reading import remember_reads
from cuarl.sim.phone.registry import Screen
from cuarl.sim.phone.world import WIDTH, World

APP_BAR = 32.0
FAB = 38.0


@lru_cache(maxsize=16)
def scrim(size: tuple[int, int]) -> Part:
    """Dims all that was painted before."""
    whole = (0, 0, *size)
    return Part([Placed(w.Bar("scrim"), whole, whole, whole)])


def _same(spots: Sequence[Spot], style: Style, *where: Hashable) -> Key:
    return id(spots), id(style), *where


@remember(1024, lambda spots, style, *where: (spots, style), key=_same)
def placed(spots: Sequence[Spot], style: Style, clip: Box, shift: float, region: str, ground: str) -> Part:
    """What ``place`` makes of the spots: one part for the same list of them."""
    return Part(place(spots, style, clip, shift, region, ground))


class Composer:
    """Collects the parts of a scene."""

    def __init__(self, world: World) -> None:
        self.world, self.style, self.height = world, world.style, world.profile.height
        self.size = world.profile.width_px, world.profile.height_px
        self.parts: list[Part] = []
        self.regions: list[Region] = []
        self.background = "page"
        self.modal_from = 0
        self.white = False

    def box(self, x: float, y: float, width: float, height: float) -> Box:
        """Units to a pixel box."""
        px = self.style.px
        return px(x), px(y), px(x + width), px(y + height)

    def add(self, spots: Sequence[Spot], ground: str = "page") -> None:
        """Place spots that don't scroll."""
        self.parts.append(placed(spots, self.style, (0, 0, *self.size), 0.0, "", ground))

    def scroller(
        self, name: str, spots: Sequence[Spot], top: float, bottom: float, ground: str, *, end: bool = False
    ) -> None:
        """Place spots that scroll between ``top`` and ``bottom``."""
        reach = max(0, round(total_height(spots, top) - (bottom - top)))
        offset = min(self.world.ui.scroll.get(name, reach if end else 0), reach)
        clip = self.box(0, top, WIDTH, bottom - top)
        self.regions.append(Region(name, clip, offset, reach))
        self.parts.append(placed(spots, self.style, clip, offset, name, ground))

    def layer(self) -> None:
        """Dim what is there and make it unreachable."""
        self.parts.append(scrim(self.size))
        self.modal_from = sum(len(part.items) for part in self.parts)
        self.regions.clear()

    def scene(self) -> Scene:
        """The result."""
        items = tuple([item for part in self.parts for item in part.items])
        parts, regions = tuple(self.parts), tuple(self.regions)
        return Scene(self.size, self.style, self.background, items, regions, self.modal_from, parts)


def _kind(world: World) -> Hashable:
    ui = world.ui
    return ui.page, ui.overlay, ui.focus == "", ui.dialog is None


@remember_reads(512, _kind)
def view(world: World) -> Scene:
    """Lay the screen out."""
    c, ui = Composer(world), world.ui
    bottom = c.height - NAV_HEIGHT - (layers.KEYBOARD_HEIGHT if ui.focus else 0)
    if ui.overlay == "drawer":
        _drawer(c, bottom)
    elif ui.overlay == "recents":
        _wallpaper(c)
        c.parts.append(scrim(c.size))
        c.scroller("recents:", layers.recents(world), STATUS_HEIGHT, c.height - NAV_HEIGHT, "")
    elif ui.app:
        _page(c, ui.page, bottom)
    else:
        _wallpaper(c)
        c.add(launcher.home(world), "")
    c.add(status_bar(world, c.white), "" if c.white else "page")
    if ui.overlay in ("shade", "quick"):
        _pulled_down(c)
    elif ui.overlay.startswith("folder:"):
        _folder(c, ui.overlay.partition(":")[2])
    if ui.dialog:
        _dialog(c, ui.dialog, bottom)
    if ui.focus:
        c.add(layers.keyboard(world), "keys")
    if ui.toast:
        c.add([Spot(layers.Snack(ui.toast), 16, bottom - 32, WIDTH - 32, 24)], "")
    c.add(nav_bar(world, white=c.white), "" if c.white or c.modal_from else "page")
    return c.scene()


def _wallpaper(c: Composer) -> None:
    c.background, c.white = f"wallpaper:{c.world.wallpaper}", True


def _drawer(c: Composer, bottom: float) -> None:
    top, cells = launcher.drawer(c.world)
    c.scroller("drawer:", cells, cells[0].y if cells else STATUS_HEIGHT + 46, bottom, "page")
    c.add(top)


class Layout(NamedTuple):
    """A page laid out, unscrolled."""

    screen: Screen
    fixed: list[Spot]
    """App bar and what is pinned below it."""
    body: list[Spot]
    top: float
    """Where the body starts, units."""


@remember_reads(512, lambda world: world.ui.page)
def page_layout(world: World) -> Layout:
    """The shown page."""
    screen, style, ui = build(world, world.ui.page), world.style, world.ui
    y, fixed = STATUS_HEIGHT, list[Spot]()
    if screen.bar:
        fixed += app_bar(screen, len(ui.stacks.get(ui.app, ())) > 1, style)
        y += APP_BAR
    pinned = stack(screen.top, style, 0, y, WIDTH)
    y += total_height(pinned, y)
    return Layout(screen, [*fixed, *pinned], stack(_content(screen), style, 0, y, WIDTH), y)


def _page(c: Composer, page: str, bottom: float) -> None:
    screen, fixed, body, top = page_layout(c.world)
    if screen.background != "page":
        c.background, c.white = screen.background, True
    foot_height = sum(height_of(widget, c.style, WIDTH) for widget in screen.bottom)
    ground = "page" if screen.background == "page" else ""
    c.scroller(f"page:{page}", body, top, bottom - foot_height, ground, end=screen.footing)
    c.add(fixed, ground)
    if screen.bottom:
        c.add(stack(screen.bottom, c.style, 0, bottom - foot_height, WIDTH), ground)
    if screen.fab:
        spot = Spot(screen.fab, WIDTH - FAB - 10, bottom - foot_height - FAB - 10, FAB, FAB)
        c.add([spot], "")


def body_spots(world: World) -> list[Spot]:
    """The shown page's scrolling content, unscrolled."""
    return page_layout(world).body


def _content(screen: Screen) -> tuple[w.Widget, ...]:
    """What scrolls; its end can be scrolled clear of the floating button."""
    return (*screen.body, w.Space(FAB + 14)) if screen.fab else screen.body


def app_bar(screen: Screen, back: bool, style: Style) -> list[Spot]:
    """Back arrow, title, actions, overflow menu."""
    y, left, right = STATUS_HEIGHT, 10.0, float(WIDTH - 2)
    spots: list[Spot] = []
    actions = list(screen.actions)
    if screen.menu:
        actions.append(w.IconButton("More options", Show(Dialog(options=screen.menu, kind="menu")), icon="dots"))
    for action in reversed(actions):
        right -= 26
        spots.append(Spot(action, right, y, 26, APP_BAR))
    if back:
        spots.append(Spot(w.IconButton("Navigate up", Back(), icon="back"), 2, y, 30, APP_BAR))
        left = 32.0
    return [Spot(w.Title(screen.title), left, y, right - left, APP_BAR), *spots]


def _pulled_down(c: Composer) -> None:
    world = c.world
    spots = layers.shade(world) if world.ui.overlay == "shade" else layers.quick(world)
    c.layer()
    height = min(total_height(spots, STATUS_HEIGHT) + 8, c.height - NAV_HEIGHT - STATUS_HEIGHT - 20)
    c.add([Spot(w.Bar("bar"), 0, 0, WIDTH, STATUS_HEIGHT + height)])
    c.scroller(f"{world.ui.overlay}:", spots, STATUS_HEIGHT, STATUS_HEIGHT + height, "bar")
    c.add(status_bar(world, False), "bar")


def _folder(c: Composer, name: str) -> None:
    world = c.world
    apps = [a for key in launcher.folder(world, name) if (a := world.app(key))]
    c.layer()
    rows = max(1, -(-len(apps) // 3))
    height, y = 34 + rows * 56.0, c.height / 2 - 70
    cells = tuple(launcher.icon(world, a, on_wallpaper=False) for a in apps)
    title = w.Button(name, rename_folder(world, name), look="text")
    body = stack((title, w.Grid(cells, 3, 54)), c.style, 16, y + 4, WIDTH - 32)
    c.add([Spot(w.Bar("sheet-box"), 16, y, WIDTH - 32, height), *body], "")


def _dialog(c: Composer, dialog: Dialog, bottom: float) -> None:
    box, spots = layers.dialog(c.world, dialog, bottom)
    c.layer()
    c.add([box], "")
    clip_top, clip_bottom = box.y, box.y + box.height
    reach = max(0, round(total_height(spots, box.y) - box.height))
    offset = min(c.world.ui.scroll.get("dialog:", 0), reach)
    clip = c.box(box.x, clip_top, box.width, clip_bottom - clip_top)
    c.regions.append(Region("dialog:", clip, offset, reach))
    c.parts.append(placed(spots, c.style, clip, offset, "dialog:", "raised"))


def outside(world: World) -> Effect | None:
    """What a tap beside the open layer does."""
    if world.ui.dialog:
        return Dismiss() if world.ui.dialog.kind != "popup" else None
    return Overlay("") if world.ui.overlay not in ("", "drawer", "recents") else None
