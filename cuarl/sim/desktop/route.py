"""Finding one's way on the desktop: the next action towards a place ``APP`` or ``APP/PAGE``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop import widgets as d
from cuarl.sim.desktop.apps.browser import ADDRESS
from cuarl.sim.desktop.elements import centre, elements, usable
from cuarl.sim.desktop.panel import APPLICATIONS
from cuarl.sim.desktop.view import layout
from cuarl.sim.desktop.window_view import Shown, window_layout
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.device.element import Element
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import opens
from cuarl.sim.kit.scene import Placed, Region
from cuarl.types import Action, Click, Key, Scroll, TypeText

Wanted = Callable[[w.Widget], bool]


def is_at(world: DesktopWorld, place: str) -> bool:
    """Whether the focused window shows a place, with nothing open over it."""
    top = world.focused
    if top is None or world.ui.menu is not None or top.dialog is not None:
        return False
    app, slash, page = place.partition("/")
    return top.app == app and (not slash or top.page == page)


def clear_way(world: DesktopWorld) -> Action | None:
    """Closes what is open over everything: a notification, a menu that nobody wants, a box."""
    if world.ui.notice:
        return click(next(e for e in elements(world) if e.label == "Dismiss"))
    top = world.focused
    return Key(keys=("Escape",)) if world.ui.menu is not None or (top is not None and top.dialog is not None) else None


def leads_to(world: DesktopWorld, place: str) -> Action | None:
    """The next action on the way to a place; None if it is reached, or if there is no way."""
    if is_at(world, place):
        return None
    app, slash, page = place.partition("/")
    if app == "editor" and page:
        return _to_file(world, page)
    top, menu = world.focused, world.ui.menu
    if menu is not None and menu.name == APPLICATIONS and (top is None or top.app != app):
        entry = next((e for e in elements(world) if e.app == app and e.role == "menuitem"), None)
        if entry is not None:
            return click(entry)
    blocked = clear_way(world)
    if blocked is not None:
        return blocked
    if top is None or top.app != app:
        return _to_app(world, app)
    return WAYS[app](world, top, page) if slash and app in WAYS else None


def _to_app(world: DesktopWorld, app: str) -> Action | None:
    """Bring a window of an app to the top, or start the app."""
    window = next((window for window in reversed(world.ui.windows) if window.app == app), None)
    if window is not None:
        return to_window(world, window)
    return click(next(e for e in elements(world) if e.label == "Applications" and e.role == "button"))


def to_window(world: DesktopWorld, window: Window) -> Action | None:
    """Click the panel's entry of a window."""
    ordered = sorted(world.ui.windows, key=lambda other: int(other.key.rpartition("-")[2]))
    tasks = [e for e in elements(world) if e.role == "task"]
    return click(tasks[ordered.index(window)]) if len(tasks) == len(ordered) else Key(keys=("alt", "Tab"))


def _to_file(world: DesktopWorld, path: str) -> Action | None:
    """Open a text file: raise the window that shows it, or double-click it in Files."""
    shown = next((window for window in world.ui.windows if window.app == "editor" and window.page == path), None)
    if shown is not None:
        return clear_way(world) or to_window(world, shown)
    return leads_to(world, f"files/{fs.parent(path)}") or use_item(world, path, count=2)


def _to_folder(world: DesktopWorld, top: Window, folder: str) -> Action | None:
    """Click a place of the sidebar, or open the next folder on the way inside of the shown one."""
    place = next((item for item, line in _lines(world, top, "side") if line.path == folder), None)
    if place is not None:
        return click_item(place)
    if top.page != folder and fs.is_inside(folder, top.page):
        rest = folder[len(top.page) + 1 :] if top.page else folder
        return use_item(world, fs.joined(top.page, rest.partition("/")[0]), count=2)
    return _to_folder(world, top, fs.parent(folder)) if folder else None


def _lines(world: DesktopWorld, window: Window, region: str) -> Iterator[tuple[Placed, d.Item]]:
    """Lines of a window's list or sidebar that can be clicked."""
    for item in usable(world):
        if isinstance(item.widget, d.Item) and item.region == f"{window.key} {region}":
            yield item, item.widget


def _to_settings(world: DesktopWorld, top: Window, page: str) -> Action | None:
    entry = next((e for e in elements(world) if e.opens == f"settings/{page}" and e.role == "row"), None)
    return click(entry) if entry else scroll_to(world, top, "side", lambda widget: _opens(widget, f"settings/{page}"))


def _opens(widget: w.Widget, page: str) -> bool:
    return isinstance(widget, w.Control) and opens(widget.on_tap) == page


def _to_url(world: DesktopWorld, top: Window, url: str) -> Action | None:
    """Type an address."""
    box = top.box(ADDRESS)
    if top.focus != ADDRESS or (box.text and box.selected != box.text):
        return Key(keys=("ctrl", "l"))
    return TypeText(text=url, submit=True)


def _to_directory(world: DesktopWorld, top: Window, folder: str) -> Action | None:
    return TypeText(text=f"cd ~/{folder}".rstrip("/"), submit=True)


WAYS: dict[str, Callable[[DesktopWorld, Window, str], Action | None]] = {
    "files": _to_folder,
    "settings": _to_settings,
    "browser": _to_url,
    "terminal": _to_directory,
}


def use_item(world: DesktopWorld, path: str, *, count: int = 1, button: str = "left") -> Action | None:
    """Click a file in the list of the focused window, scrolling to it if needed."""
    top = world.focused
    if top is None:
        return None
    item = next((item for item, line in _lines(world, top, "body") if line.path == path), None)
    if item is not None:
        return click_item(item, count=count, button=button)
    return scroll_to(world, top, "body", lambda widget: isinstance(widget, d.Item) and widget.path == path)


def scroll_to(world: DesktopWorld, window: Window, name: str, wanted: Wanted) -> Action | None:
    """A scroll that brings the first wanted widget of a window's region to the middle of it; None if it has none."""
    region = next((r for r in layout(world).scene.regions if r.id == f"{window.key} {name}"), None)
    if region is None:
        return None
    shown = window_layout(Shown(world, window, window is world.focused))
    spots = shown.side if name == "side" else shown.body
    spot = next((s for s in spots if wanted(s.widget)), None)
    if spot is None:
        return None
    scale = world.screen.scale
    middle = spot.y - spots[0].y + spot.height / 2
    seen = (region.box[3] - region.box[1]) / scale
    shift = min(max(0.0, middle - seen / 2), region.reach) - region.offset
    return _scroll(region, shift, scale) if abs(shift) >= 1 else None


def _scroll(region: Region, units: float, scale: float) -> Scroll:
    x, y = (region.box[0] + region.box[2]) // 2, (region.box[1] + region.box[3]) // 2
    return Scroll(x=x, y=y, direction="down" if units > 0 else "up", amount=max(1, round(abs(units) * scale)))


def click(element: Element, count: int = 1) -> Click:
    """A click in the middle of an element."""
    x, y = element.centre
    return Click(x=x, y=y, count=2 if count == 2 else 1)


def click_item(item: Placed, *, count: int = 1, button: str = "left") -> Click:
    """A click in the middle of what can be seen of a control."""
    x, y = centre(item)
    return Click(x=x, y=y, count=2 if count == 2 else 1, button="right" if button == "right" else "left")
