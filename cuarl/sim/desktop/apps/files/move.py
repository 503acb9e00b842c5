"""Copying, moving and deleting in Files, and the trash."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.apps.files.choose import pick, picked
from cuarl.sim.desktop.apps.files.pane import APP, TRASH
from cuarl.sim.desktop.state import Clipboard
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.kit.effects import Dialog, Dismiss, Do, Option


@APP.action("take")
def take(world: DesktopWorld, key: str, moving: bool, *paths: str) -> DesktopWorld:
    """Copy or cut files."""
    return world.put("clipboard", Clipboard("", paths, moving)) if paths else world


@APP.action("copy_picked")
def copy_picked(world: DesktopWorld, key: str) -> DesktopWorld:
    """Copy what is selected."""
    return take(world, key, False, *picked(world, key))


@APP.action("cut_picked")
def cut_picked(world: DesktopWorld, key: str) -> DesktopWorld:
    """Cut what is selected."""
    return take(world, key, True, *picked(world, key))


@APP.action("paste")
def paste(world: DesktopWorld, key: str) -> DesktopWorld:
    """Copy or move the files of the clipboard into the shown folder."""
    window, clip = world.window(key), world.state.clipboard
    if window is None or window.page == TRASH:
        return world
    for path in clip.files:
        world = transfer(world, path, window.page, moving=clip.moving)
    return world.put("clipboard", Clipboard()) if clip.moving else world


def transfer(world: DesktopWorld, path: str, folder: str, *, moving: bool) -> DesktopWorld:
    """Copy or move something into a folder; a copy that would take a name that is there gets another one."""
    files, target = world.state.files, fs.joined(folder, fs.name_of(path))
    if fs.find(files, path) is None or fs.is_inside(folder, path) or (moving and target == path):
        return world
    target = fs.free_name(files, target)
    return world.put("files", (fs.move if moving else fs.copy)(files, path, target))


@APP.action("drop")
def drop(world: DesktopWorld, key: str, path: str, folder: str) -> DesktopWorld:
    """Drag something onto a folder, or onto the trash."""
    if folder == TRASH:
        return throw_away(world, key, path)
    return transfer(world, path, folder, moving=True)


@APP.action("throw_away")
def throw_away(world: DesktopWorld, key: str, *paths: str) -> DesktopWorld:
    """Move things to the trash."""
    for path in paths:
        gone = tuple(f for f in world.state.files if fs.is_inside(f.path, path))
        if path and gone:
            world = world.put("trash", (*world.state.trash, *gone)).put("files", fs.remove(world.state.files, (path,)))
    return pick(world, key)


@APP.action("trash_picked")
def trash_picked(world: DesktopWorld, key: str) -> DesktopWorld:
    """Move what is selected to the trash; in the trash, delete it."""
    window = world.window(key)
    if window is not None and window.page == TRASH:
        return ask_delete(world, key)
    return throw_away(world, key, *picked(world, key))


@APP.action("restore")
def restore(world: DesktopWorld, key: str, path: str) -> DesktopWorld:
    """Put something from the trash back where it was, with the folders that it was in."""
    back_again = tuple(f for f in world.state.trash if fs.is_inside(f.path, path))
    files = world.state.files
    above = fs.parent(path)
    for i in range(len(above.split("/")) if above else 0):
        folder = "/".join(above.split("/")[: i + 1])
        if fs.find(files, folder) is None:
            files = fs.make_folder(files, folder)
    files = (*fs.remove(files, (path,)), *back_again)
    return pick(world.put("files", files).put("trash", fs.remove(world.state.trash, (path,))), key)


@APP.action("ask_delete")
def ask_delete(world: DesktopWorld, key: str, *paths: str) -> DesktopWorld:
    """Ask before something is deleted for good."""
    window = world.window(key)
    chosen = paths or picked(world, key)
    if window is None or not chosen:
        return world
    what = fs.name_of(chosen[0]) if len(chosen) == 1 else f"{len(chosen)} items"
    delete = Do("files.delete", (key, *chosen), ("files", "trash"))
    buttons = (Option("Cancel", Dismiss()), Option("Delete", delete))
    box = Dialog("Delete for good?", f"{what} can't be restored.", buttons=buttons)
    return world.with_window(replace(window, dialog=box))


@APP.action("delete")
def delete(world: DesktopWorld, key: str, *paths: str) -> DesktopWorld:
    """Delete for good."""
    window = world.window(key)
    place = "trash" if window is not None and window.page == TRASH else "files"
    return pick(world.put(place, fs.remove(world.get(place), paths)), key)


@APP.action("ask_empty")
def ask_empty(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask before the trash is emptied."""
    window = world.window(key)
    if window is None or not world.state.trash:
        return world
    buttons = (Option("Cancel", Dismiss()), Option("Empty Trash", Do("files.empty", (key,), ("trash",))))
    box = Dialog("Empty Trash?", "Everything in it is deleted for good.", buttons=buttons)
    return world.with_window(replace(window, dialog=box))


@APP.action("empty")
def empty(world: DesktopWorld, key: str) -> DesktopWorld:
    """Empty the trash."""
    return pick(world.put("trash", ()), key)
