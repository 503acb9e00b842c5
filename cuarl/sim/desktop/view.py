"""``layout(world)``: everything on the screen in painting order, and whom each thing belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from cuarl.sim.desktop import icons, paint
from cuarl.sim.desktop.geometry import PANEL, panel, work_area
from cuarl.sim.desktop.look import NOTICES
from cuarl.sim.desktop.panel import APPLICATIONS, desk_icons, panel_spots
from cuarl.sim.desktop.widgets import MenuEntry, NoticeBox, Ruled, Tip
from cuarl.sim.desktop.window_view import Shown, WindowLayout, window_layout
from cuarl.sim.desktop.world import DesktopWorld, Menu
from cuarl.sim.device.memory import remember
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Do, Launch
from cuarl.sim.kit.scene import Box, Placed, Region, Scene, Spot, place
from cuarl.sim.kit.style import font_px, text_width

__all__ = ["DESK", "MENU", "MODAL", "NOTICE", "PANEL_OWNER", "DesktopLayout", "icons", "layout", "paint", "view"]

DESK, PANEL_OWNER, MENU, NOTICE = "", "panel", "menu", "notice"
"""Owners of what is in no window."""
MODAL = "!"
"""Ends the owner of what is in the box over a window."""
LINE = 20.0


@dataclass(frozen=True, slots=True)
class DesktopLayout:
    """A screen. ``owners`` says for each item of the scene whose it is: a window's key, or one of the names above."""

    scene: Scene
    owners: tuple[str, ...]


def view(world: DesktopWorld) -> Scene:
    """What is on the screen."""
    return layout(world).scene


def _parts(world: DesktopWorld) -> tuple[object, ...]:
    """All that a screen is laid out from; where the pointer is matters only to the label beside it."""
    ui = world.ui
    return world.state, world.look, world.screen, ui.windows, ui.menu, ui.notice, ui.picked, ui.tip and ui.pointer


@remember(64, _parts)
def layout(world: DesktopWorld) -> DesktopLayout:
    """Lay the screen out."""
    style, screen = world.style, world.screen
    whole: Box = (0, 0, screen.width_px, screen.height_px)
    items: list[Placed] = []
    owners: list[str] = []
    regions: list[Region] = []

    def add(spots: list[Spot], owner: str, ground: str = "") -> None:
        placed = place(spots, style, whole, ground=ground)
        items.extend(placed)
        owners.extend([owner] * len(placed))

    add(desk_icons(world), DESK)
    for window, shown in windows_shown(world):
        items += shown.items
        owners += [window] * shown.modal_from + [window + MODAL] * (len(shown.items) - shown.modal_from)
        regions += shown.regions
    add(panel_spots(world), PANEL_OWNER, "bar")
    if world.ui.notice:
        add(_notice(world), NOTICE)
    if world.ui.menu is not None:
        add(_menu(world, world.ui.menu), MENU, "bar")
    if world.ui.tip:
        add([_tip(world)], NOTICE)
    scene = Scene(whole[2:], style, f"picture:{world.wallpaper}", tuple(items), tuple(regions))
    return DesktopLayout(scene, tuple(owners))


def windows_shown(world: DesktopWorld) -> list[tuple[str, WindowLayout]]:
    """Keys and layouts of the windows that are not minimised, the topmost last."""
    top = world.focused
    shown = [window for window in world.ui.windows if not window.minimised]
    return [(window.key, window_layout(Shown(world, window, window is top))) for window in shown]


def _menu(world: DesktopWorld, menu: Menu) -> list[Spot]:
    """The open menu, moved so that all of it is on the screen; the application menu stands on its button."""
    px, scale = font_px(world.style, 11.0), world.screen.scale
    ticks = any(option.checked is not None for option in menu.options)
    entries = [
        MenuEntry(
            o.label,
            o.effect,
            enabled=o.effect is not None,
            checked=o.checked,
            indent=ticks,
            app=o.effect.app if isinstance(o.effect, Launch) else "",
        )
        for o in menu.options
    ]
    wide = ticks or any(entry.app for entry in entries)
    width = max(text_width(entry.label, px) for entry in entries) / scale + (44 if wide else 28)
    height = LINE * len(entries) + 8
    area = work_area(world)
    x, y = min(menu.x, area.right - width - 2), min(menu.y, area.bottom - height - 2)
    if menu.name == APPLICATIONS or menu.y >= area.bottom or menu.y < area.y:
        x = 2.0 if menu.name == APPLICATIONS else min(max(2.0, menu.x - width / 2), area.right - width - 2)
        y = panel(world).y - height - 2 if world.look.panel == "bottom" else PANEL + 2.0
    spots = [Spot(Ruled("raised" if world.style.dark else "page", "all"), x, y, width, height, "")]
    ground = "raised" if world.style.dark else "page"
    return [*spots, *(Spot(e, x + 2, y + 4 + i * LINE, width - 4, LINE, ground) for i, e in enumerate(entries))]


def _notice(world: DesktopWorld) -> list[Spot]:
    """A notification in the upper right corner."""
    area, text = work_area(world), dict(NOTICES).get(world.ui.notice, "")
    x, y, width = area.right - 196, area.y + 6, 190.0
    close = w.IconButton("Dismiss", Do("desk.clear_notice"), icon="close")
    return [Spot(NoticeBox(world.ui.notice, text=text), x, y, width, 44), Spot(close, x + width - 24, y + 3, 22, 20)]


def _tip(world: DesktopWorld) -> Spot:
    """The name of the button under the pointer."""
    scale = world.screen.scale
    width = text_width(world.ui.tip, font_px(world.style, 9.5)) / scale + 10
    x, y = (n / scale for n in world.ui.pointer)
    x = min(max(2.0, x - width / 2), world.screen.width - width - 2)
    return Spot(Tip(world.ui.tip), x, y + 14 if y + 32 < world.screen.height else y - 24, width, 16)
