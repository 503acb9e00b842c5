"""What a window of Files shows."""

from __future__ import annotations

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.apps.files.menus import KINDS, folder_menu, icon_of, item_menu, size_text, trash_menu
from cuarl.sim.desktop.records import File
from cuarl.sim.desktop.registry import Context, DesktopApp, Pane
from cuarl.sim.desktop.widgets import Caption, Item, Push, Sheet
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Dismiss, Open, Option, Show

TRASH = "trash:"
"""Page of the trash."""
PICKED, BEFORE, AFTER = "picked", "before", "after"
"""What a window remembers: selected paths, and folders shown before and after."""
PLACES = ("", "Desktop", "Documents", "Downloads", "Music", "Pictures")


def pane(ctx: Context) -> Pane:
    """The shown folder beside the places."""
    folder, picked = ctx.window.page, ctx.form(PICKED, ())
    in_trash = folder == TRASH
    shown = listed(ctx.world, ctx.window)
    rows = tuple(_row(ctx, f, f.path in picked) for f in shown)
    empty = "Trash is empty" if in_trash else "Folder is empty"
    name = title_of(folder)
    return Pane(
        name,
        rows or (w.Space(30), Caption(empty, strong=False, centred=True)),
        (_toolbar(ctx, name, in_trash),),
        tuple(_place(ctx, place) for place in (*PLACES, TRASH)),
        foot=_status(shown, picked),
        sheet=Sheet("", ctx.do("pick", ""), Show(trash_menu(ctx) if in_trash else folder_menu(ctx)), name=""),
    )


def listed(world: DesktopWorld, window: Window) -> list[File]:
    """What a window lists: of a deleted folder only itself, not what was in it."""
    if window.page != TRASH:
        return fs.children(world.state.files, window.page)
    trash = world.state.trash
    return [f for f in trash if not any(f.path != other.path and fs.is_inside(f.path, other.path) for other in trash)]


def title_of(folder: str) -> str:
    """What a folder is called."""
    return "Trash" if folder == TRASH else fs.name_of(folder) or "Home"


def _toolbar(ctx: Context, name: str, in_trash: bool) -> w.HBox:
    parent = fs.parent(ctx.window.page)
    last: w.Widget = w.IconButton("New folder", ctx.do("ask_folder"), icon="plus")
    if in_trash:
        last = Push("Empty", ctx.do("ask_empty"), enabled=bool(ctx.state.trash))
    buttons: tuple[w.Widget, ...] = (
        w.IconButton("Back", ctx.do("back"), icon="back", enabled=bool(ctx.form(BEFORE))),
        w.IconButton("Forward", ctx.do("forward"), icon="chevron", enabled=bool(ctx.form(AFTER))),
        w.IconButton("Up", Open(f"files/{parent}"), icon="up", enabled=bool(ctx.window.page) and not in_trash),
        Caption(name),
        last,
    )
    return w.HBox(buttons, (1, 1, 1, ctx.room(5 if in_trash else 4), 2 if in_trash else 1), height=26, gap=0, pad=4)


def _place(ctx: Context, place: str) -> Item:
    icon = {"": "home", TRASH: "trash", "Music": "music", "Pictures": "photo", "Downloads": "download"}.get(
        place, "folder"
    )
    menu = Show(trash_menu(ctx)) if place == TRASH else None
    return Item(
        title_of(place),
        Open(f"files/{place}"),
        menu,
        icon="trash_side" if icon == "trash" else icon + SIDE.get(icon, ""),
        selected=ctx.window.page == place,
        path=place,
        folder=True,
    )


SIDE = {"folder": "_side", "music": "_side", "photo": "_side"}
"""Sidebars draw these icons plain, not in files' colours."""


def _row(ctx: Context, file: File, picked: bool) -> Item:
    count = len(fs.children(ctx.state.files, file.path))
    detail = f"{count} item{'' if count == 1 else 's'}" if file.folder else size_text(file)
    in_trash = ctx.window.page == TRASH
    return Item(
        fs.name_of(file.path),
        ctx.do("pick", file.path),
        Show(item_menu(ctx, file, in_trash=in_trash)),
        icon=icon_of(file),
        detail=detail if not in_trash else "",
        selected=picked,
        path=file.path,
        folder=file.folder,
        on_double=None if in_trash else opening(file),
    )


def opening(file: File) -> Open | Show:
    """What a double click on a file does."""
    if file.folder:
        return Open(f"files/{file.path}")
    if file.size_kb:
        kind = KINDS.get(file.path.rpartition(".")[2], ("file", "File"))[1]
        return Show(Dialog(fs.name_of(file.path), f"{kind}, {size_text(file)}", buttons=(Option("Close", Dismiss()),)))
    return Open(f"editor/{file.path}")


def _status(shown: list[File], picked: tuple[str, ...]) -> str:
    if len(picked) == 1:
        found = next((f for f in shown if f.path == picked[0]), None)
        if found:
            return f"{fs.name_of(found.path)} selected" + ("" if found.folder else f" ({size_text(found)})")
    if picked:
        return f"{len(picked)} items selected"
    return f"{len(shown)} item{'' if len(shown) == 1 else 's'}"


APP = DesktopApp(
    "files", "Files", pane, (350, 226),
    keys={
        "return": "open_picked", "delete": "trash_picked", "f2": "rename_picked", "ctrl+a": "pick_all",
        "ctrl+c": "copy_picked", "ctrl+x": "cut_picked", "ctrl+v": "paste", "alt+up": "up", "backspace": "up",
        "alt+left": "back", "alt+right": "forward", "ctrl+shift+n": "ask_folder", "ctrl+n": "window", "ctrl+w": "shut",
        "down": "pick_next", "up": "pick_previous", "shift+delete": "ask_delete",
    },
)  # fmt: skip
