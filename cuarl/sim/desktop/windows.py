"""What can be done with windows: open, focus, close, minimise, maximise, move, resize. Pure."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.desktop.geometry import GRIP, LEAST_HEIGHT, LEAST_WIDTH, TITLE, first_place, work_area
from cuarl.sim.desktop.registry import APPS
from cuarl.sim.desktop.world import DesktopWorld, Window


def open_window(world: DesktopWorld, app: str, page: str | None = None) -> DesktopWorld:
    """A new window of an app on top; apps with a single window show that one."""
    module = APPS[app]
    old = next((window for window in reversed(world.ui.windows) if window.app == app), None)
    if module.single and old is not None:
        world = focus(world, old.key)
        shown = world.window(old.key)
        assert shown is not None
        return world if page is None or shown.page == page else world.with_window(shown.with_page(page))
    number = world.ui.opened + 1
    x, y, width, height = first_place(world, module.size)
    window = Window(f"{app}-{number}", app, module.page if page is None else page, x, y, width, height)
    if module.opened is not None:
        window = module.opened(world, window)
    return world.with_ui(windows=(*world.ui.windows, window), opened=number, menu=None)


def launch(world: DesktopWorld, app: str) -> DesktopWorld:
    """What a launcher does: a new window."""
    return open_window(world, app)


def focus(world: DesktopWorld, key: str) -> DesktopWorld:
    """Bring a window to the top, from the panel if it was minimised."""
    window = world.window(key)
    if window is None or window is world.focused:
        return world
    shown = replace(window, minimised=False) if window.minimised else window
    return world.with_ui(windows=(*(other for other in world.ui.windows if other.key != key), shown))


def close(world: DesktopWorld, key: str) -> DesktopWorld:
    """Close a window; an app may ask first."""
    window = world.window(key)
    if window is None:
        return world
    ask = APPS[window.app].actions.get(f"{window.app}.closing")
    return ask(world, key) if ask else discard(world, key)


def discard(world: DesktopWorld, key: str) -> DesktopWorld:
    """Close a window without a question."""
    return world.with_ui(windows=tuple(window for window in world.ui.windows if window.key != key))


def minimise(world: DesktopWorld, key: str) -> DesktopWorld:
    """Put a window into the panel; it goes below all others."""
    window = world.window(key)
    if window is None:
        return world
    others = tuple(other for other in world.ui.windows if other.key != key)
    return world.with_ui(windows=(replace(window, minimised=True), *others))


def toggle_maximised(world: DesktopWorld, key: str) -> DesktopWorld:
    """Let a window fill the screen, or be as large as before."""
    window = world.window(key)
    return world if window is None else world.with_window(replace(window, maximised=not window.maximised))


def press_task(world: DesktopWorld, key: str) -> DesktopWorld:
    """What a click on the panel's entry does: show the window, or put it away if it is the topmost."""
    top = world.focused
    return minimise(world, key) if top is not None and top.key == key else focus(world, key)


def show_desktop(world: DesktopWorld) -> DesktopWorld:
    """Minimise all windows; restore them if all are."""
    windows = world.ui.windows
    away = any(not window.minimised for window in windows)
    return world.with_ui(windows=tuple(replace(window, minimised=away) for window in windows))


def next_window(world: DesktopWorld) -> DesktopWorld:
    """What Alt+Tab does: the window that had the focus before."""
    windows = world.ui.windows
    return focus(world, windows[-2].key) if len(windows) > 1 else focus(world, windows[0].key) if windows else world


def move(world: DesktopWorld, window: Window, dx: float, dy: float) -> DesktopWorld:
    """Move a window by units; its title bar stays within reach. A maximised one is restored first."""
    area = work_area(world)
    x = min(max(window.x + dx, 40 - window.width), area.right - 40)
    y = min(max(window.y + dy, area.y), area.bottom - TITLE)
    return world.with_window(replace(window, x=round(x), y=round(y), maximised=False))


def resize(world: DesktopWorld, window: Window, dx: float, dy: float) -> DesktopWorld:
    """Drag a window's lower right corner by units."""
    area = work_area(world)
    width = min(max(window.width + dx, LEAST_WIDTH), area.right - window.x)
    height = min(max(window.height + dy, LEAST_HEIGHT), area.bottom - window.y)
    return world.with_window(replace(window, width=round(width), height=round(height)))


def on_grip(window: Window, x: float, y: float) -> bool:
    """Whether a point in units is on the corner that resizes a window."""
    right, bottom = window.x + window.width, window.y + window.height
    return not window.maximised and right - GRIP <= x <= right + 2 and bottom - GRIP <= y <= bottom + 2
