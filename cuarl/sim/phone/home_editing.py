"""Arranging the home screen: the menus of a long press, moving icons, folders, pinning."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.kit.effects import (
    Copy,
    Dialog,
    Dismiss,
    Do,
    Effect,
    Input,
    Open,
    Option,
    Overlay,
    Put,
    Seq,
    Show,
    Toast,
)
from cuarl.sim.phone.apps import register
from cuarl.sim.phone.records import App, Folder, HomePage
from cuarl.sim.phone.registry import AppModule
from cuarl.sim.phone.world import World

HOME = AppModule("home", home="")
PAGES = "launcher.pages"
CANCEL = Option("Cancel", Dismiss())


@HOME.action("icon_menu")
def icon_menu(world: World, key: str) -> World:
    """What a long press on an icon offers."""
    app = world.app(key)
    if app is None:
        return world
    options = [Option("App info", Open(f"settings/app:{app.key}"))]
    if not app.system:
        options.append(Option("Uninstall", Show(uninstall_question(app))))
    on_home = any(app.key in page.apps for page in world.state.launcher.pages)
    if world.ui.overlay == "drawer":
        if not on_home:
            options.append(Option("Add to home", Do("home.add", (app.key,), (PAGES,))))
    elif on_home:
        options += [
            Option("Remove from home", Do("home.remove", (app.key,), (PAGES,))),
            Option("Move to next page", Do("home.move", (app.key, 1), (PAGES,))),
            Option("New folder", Do("home.new_folder", (app.key,), (PAGES,))),
        ]
    return world.with_ui(dialog=Dialog(app.name, options=tuple(options), buttons=(CANCEL,)))


def uninstall_question(app: App) -> Dialog:
    """Asks before an app is removed."""
    remove = Seq((Do("system.uninstall", (app.key,), (f"apps.{app.key}.installed",)), Toast(f"{app.name} removed")))
    return Dialog(f"Uninstall {app.name}?", "Its data is deleted.", buttons=(CANCEL, Option("OK", remove)))


def home_menu() -> Show:
    """What a long press beside the icons offers."""
    options = (Option("Wallpaper & style", Open("settings/style")), Option("Wallpapers", Open("settings/wallpaper")))
    return Show(Dialog("Home screen", options=options, buttons=(CANCEL,)))


@HOME.action("recents_menu")
def recents_menu(world: World, key: str) -> World:
    """What a long press on a card of recents offers."""
    app = world.app(key)
    if app is None:
        return world
    options = [Option("App info", Open(f"settings/app:{app.key}"))]
    if world.state.security.app_pinning:
        pin = Seq((Put("launcher.pinned", app.key), Overlay(""), Toast(f"{app.name} is pinned")))
        options.append(Option("Pin", pin))
    return world.with_ui(dialog=Dialog(app.name, options=tuple(options), buttons=(CANCEL,)))


def rename_folder(world: World, name: str) -> Effect:
    """Opens the dialog that renames a folder."""
    path = folder_path(world, name)
    box = Dialog(
        "Rename folder",
        inputs=(Input("Name", "ui.form.home.folder"),),
        buttons=(CANCEL, Option("OK", Seq((Copy("ui.form.home.folder", f"{path}.name"), Overlay(""))))),
    )
    return Seq((Put("ui.form.home.folder", name), Show(box)))


def folder_path(world: World, name: str) -> str:
    """Where a folder is in the state tree."""
    for i, page in enumerate(world.state.launcher.pages):
        for j, folder in enumerate(page.folders):
            if folder.name == name:
                return f"{PAGES}.{i}.folders.{j}"
    return f"{PAGES}.0.folders.0"


@HOME.action("add")
def add(world: World, key: str) -> World:
    """Put an icon on the last home page."""
    pages = world.state.launcher.pages or (HomePage(),)
    last = replace(pages[-1], apps=(*pages[-1].apps, key))
    return world.put(PAGES, (*pages[:-1], last)).with_ui(overlay="", toast="Added to home")


@HOME.action("remove")
def remove(world: World, key: str) -> World:
    """Take an icon off the home screen; the app stays."""
    return world.put(PAGES, tuple(_without(page, key) for page in world.state.launcher.pages))


@HOME.action("move")
def move(world: World, key: str, by: int) -> World:
    """Move an icon some pages on; a page is added at the end if there is none."""
    pages = list(world.state.launcher.pages)
    at = next((i for i, page in enumerate(pages) if key in page.apps), None)
    if at is None:
        return world
    goal = max(0, at + by)
    while goal >= len(pages):
        pages.append(HomePage())
    pages[at] = _without(pages[at], key)
    pages[goal] = replace(pages[goal], apps=(*pages[goal].apps, key))
    return world.put(PAGES, tuple(pages)).with_ui(home_page=goal)


@HOME.action("new_folder")
def new_folder(world: World, *keys: str) -> World:
    """Put icons into a new folder on the page of the first."""
    pages = list(world.state.launcher.pages)
    at = next((i for i, page in enumerate(pages) if keys[0] in page.apps), None)
    if at is None:
        return world
    for key in keys:
        pages = [_without(page, key) for page in pages]
    taken = {folder.name for page in pages for folder in page.folders}
    name = next(n for n in ("Folder", *(f"Folder {i}" for i in range(2, 99))) if n not in taken)
    pages[at] = replace(pages[at], folders=(*pages[at].folders, Folder(name, keys)))
    return world.put(PAGES, tuple(pages))


@HOME.action("into_folder")
def into_folder(world: World, key: str, name: str) -> World:
    """Move an icon into a folder."""
    pages = tuple(_without(page, key) for page in world.state.launcher.pages)
    world = world.put(PAGES, pages)
    path = folder_path(world, name)
    return world.put(f"{path}.apps", (*world.get(f"{path}.apps"), key))


def _without(page: HomePage, key: str) -> HomePage:
    if key not in page.apps:
        return page
    return replace(page, apps=tuple(k for k in page.apps if k != key))


register(HOME)
