"""Making and renaming in Files, each after asking for a name."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.apps.files.choose import pick, picked
from cuarl.sim.desktop.apps.files.pane import APP
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.kit.effects import Dialog, Dismiss, Do, Input, Option

NAME = "name"
"""What a window remembers the typed name under."""


@APP.action("ask_folder")
def ask_folder(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask for a new folder's name."""
    return _ask(world, key, "New Folder", "Folder name", "", "Create", Do("files.make_folder", (key,), ("files",)))


@APP.action("ask_file")
def ask_file(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask for a new file's name."""
    return _ask(world, key, "New Text File", "File name", "", "Create", Do("files.make_file", (key,), ("files",)))


@APP.action("ask_name")
def ask_name(world: DesktopWorld, key: str, path: str) -> DesktopWorld:
    """Ask for another name."""
    return _ask(
        world, key, "Rename", "New name", fs.name_of(path), "Rename", Do("files.rename", (key, path), ("files",))
    )


def _ask(world: DesktopWorld, key: str, title: str, label: str, text: str, button: str, effect: Do) -> DesktopWorld:
    window = world.window(key)
    if window is None:
        return world
    box = Dialog(title, inputs=(Input(label, NAME),), buttons=(Option("Cancel", Dismiss()), Option(button, effect)))
    return world.with_window(replace(window.put(NAME, TextBox.of(text, selected=True)), dialog=box, focus=NAME))


@APP.action("rename_picked")
def rename_picked(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask for another name of what is selected."""
    chosen = picked(world, key)
    return ask_name(world, key, chosen[0]) if len(chosen) == 1 else world


@APP.action("make_folder")
def make_folder(world: DesktopWorld, key: str) -> DesktopWorld:
    """Make the folder of the typed name."""
    return _made(world, key, folder=True)


@APP.action("make_file")
def make_file(world: DesktopWorld, key: str) -> DesktopWorld:
    """Make an empty file of the typed name."""
    return _made(world, key, folder=False)


def _made(world: DesktopWorld, key: str, *, folder: bool) -> DesktopWorld:
    window = world.window(key)
    name = "" if window is None else window.box(NAME).text.strip()
    if window is None or fs.bad_name(name):
        return world
    path = fs.joined(window.page, name)
    if fs.find(world.state.files, path) is not None:
        return refuse(world, window, f"{name} exists already.")
    files = world.state.files
    world = world.put("files", fs.make_folder(files, path) if folder else fs.write(files, path, ""))
    return pick(world, key, path)


def refuse(world: DesktopWorld, window: Window, text: str) -> DesktopWorld:
    """Say why something can't be done."""
    box = Dialog("Not possible", text, buttons=(Option("OK", Dismiss()),))
    return world.with_window(replace(window, dialog=box, focus=""))


@APP.action("rename")
def rename(world: DesktopWorld, key: str, path: str) -> DesktopWorld:
    """Give the typed name."""
    window = world.window(key)
    name = "" if window is None else window.box(NAME).text.strip()
    target = fs.joined(fs.parent(path), name)
    if window is None or fs.bad_name(name) or target == path:
        return world
    if fs.find(world.state.files, target) is not None:
        return refuse(world, window, f"{name} exists already.")
    return pick(world.put("files", fs.move(world.state.files, path, target)), key, target)
