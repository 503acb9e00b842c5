"""Finding one's way in Files: selecting, opening, going up, back and forward."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.apps.files.pane import AFTER, APP, BEFORE, PICKED, TRASH, listed, opening
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.kit.effects import Open, Show


def picked(world: DesktopWorld, key: str) -> tuple[str, ...]:
    """Paths of what is selected in a window."""
    window = world.window(key)
    return () if window is None else tuple(window.get(PICKED, ()))


@APP.action("pick")
def pick(world: DesktopWorld, key: str, *paths: str) -> DesktopWorld:
    """Select these and nothing else."""
    window = world.window(key)
    return world if window is None else world.with_window(window.put(PICKED, tuple(p for p in paths if p)))


def _paths(world: DesktopWorld, window: Window) -> tuple[str, ...]:
    return tuple(f.path for f in listed(world, window))


@APP.action("pick_all")
def pick_all(world: DesktopWorld, key: str) -> DesktopWorld:
    """Select everything in the folder."""
    window = world.window(key)
    return world if window is None else pick(world, key, *_paths(world, window))


@APP.action("pick_next")
def pick_next(world: DesktopWorld, key: str) -> DesktopWorld:
    """Select the next line."""
    return _step(world, key, 1)


@APP.action("pick_previous")
def pick_previous(world: DesktopWorld, key: str) -> DesktopWorld:
    """Select the line before."""
    return _step(world, key, -1)


def _step(world: DesktopWorld, key: str, by: int) -> DesktopWorld:
    window = world.window(key)
    paths = () if window is None else _paths(world, window)
    if window is None or not paths:
        return world
    chosen = picked(world, key)
    now = paths.index(chosen[-1]) if chosen and chosen[-1] in paths else -by if by > 0 else 0
    return pick(world, key, paths[min(max(0, now + by), len(paths) - 1)])


@APP.action("show")
def show(world: DesktopWorld, key: str, folder: str) -> DesktopWorld:
    """Show another folder."""
    window = world.window(key)
    if window is None or folder == window.page:
        return world
    window = window.put(BEFORE, (*window.get(BEFORE, ()), window.page)).put(AFTER, ()).put(PICKED, ())
    return world.with_window(window.with_page(folder))


@APP.action("up")
def up(world: DesktopWorld, key: str) -> DesktopWorld:
    """Show the folder that this one is in."""
    window = world.window(key)
    return world if window is None or window.page == TRASH else show(world, key, fs.parent(window.page))


@APP.action("back")
def back(world: DesktopWorld, key: str) -> DesktopWorld:
    """Show the folder before."""
    return _through(world, key, BEFORE, AFTER)


@APP.action("forward")
def forward(world: DesktopWorld, key: str) -> DesktopWorld:
    """Undo going back."""
    return _through(world, key, AFTER, BEFORE)


def _through(world: DesktopWorld, key: str, taken: str, kept: str) -> DesktopWorld:
    window = world.window(key)
    trail = () if window is None else window.get(taken, ())
    if window is None or not trail:
        return world
    window = window.put(taken, trail[:-1]).put(kept, (*window.get(kept, ()), window.page)).put(PICKED, ())
    return world.with_window(window.with_page(trail[-1]))


@APP.action("open_picked")
def open_picked(world: DesktopWorld, key: str) -> DesktopWorld:
    """Open what is selected."""
    window = world.window(key)
    chosen = picked(world, key)
    found = fs.find(world.state.files, chosen[0]) if len(chosen) == 1 else None
    if window is None or found is None:
        return world
    match opening(found):
        case Show(dialog):
            return world.with_window(replace(window, dialog=dialog))
        case Open(page):
            app, _, target = page.partition("/")
            return show(world, key, target) if app == "files" else windows.open_window(world, app, target)


@APP.action("window")
def new_window(world: DesktopWorld, key: str) -> DesktopWorld:
    """Open another window."""
    return windows.open_window(world, "files")


@APP.action("shut")
def shut(world: DesktopWorld, key: str) -> DesktopWorld:
    """Close the window."""
    return windows.close(world, key)


@APP.action("open_menu_item")
def open_item(world: DesktopWorld, key: str, path: str) -> DesktopWorld:
    """Open from the context menu."""
    return open_picked(pick(world, key, path), key)
