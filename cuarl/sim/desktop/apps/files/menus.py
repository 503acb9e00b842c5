"""What Files says about files: kinds, sizes, and the menus of a right click."""

from __future__ import annotations

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.records import File
from cuarl.sim.desktop.registry import Context
from cuarl.sim.kit.effects import Dialog, Dismiss, Option, Show

KINDS = {
    "jpg": ("photo", "Picture"), "png": ("photo", "Picture"), "svg": ("photo", "Picture"), "mp3": ("music", "Sound"),
    "pdf": ("file", "PDF document"), "txt": ("note", "Text"), "log": ("note", "Text"), "md": ("note", "Text"),
}  # fmt: skip
"""Icon and name of each kind of file, by the end of its name."""


def icon_of(file: File) -> str:
    """A file's icon."""
    return "folder" if file.folder else KINDS.get(file.path.rpartition(".")[2], ("note", ""))[0]


def size_text(file: File) -> str:
    """A size as people read it."""
    size = fs.size_of(file)
    return f"{size} B" if size < 1024 else f"{size // 1024} kB" if size < 1024**2 else f"{size / 1024**2:.1f} MB"


def item_menu(ctx: Context, file: File, *, in_trash: bool) -> Dialog:
    """Menu of a file or folder."""
    path = file.path
    if in_trash:
        restore = Option("Restore", ctx.do("restore", path, writes=("files", "trash")))
        return Dialog("item", options=(restore, Option("Delete Permanently", ctx.do("ask_delete", path))), kind="menu")
    kind = "Folder" if file.folder else KINDS.get(path.rpartition(".")[2], ("", "File"))[1]
    inside = len([f for f in ctx.state.files if f.path != path and fs.is_inside(f.path, path)])
    size = f"{inside} items" if file.folder else f"{fs.size_of(file)} bytes"
    facts = Dialog(fs.name_of(path), f"{kind}, {size}, in ~/{fs.parent(path)}", buttons=(Option("Close", Dismiss()),))
    options = (
        Option("Open", ctx.do("open_menu_item", path)),
        Option("Cut", ctx.do("take", True, path)),
        Option("Copy", ctx.do("take", False, path)),
        Option("Rename", ctx.do("ask_name", path)),
        Option("Move to Trash", ctx.do("throw_away", path, writes=("files", "trash"))),
        Option("Properties", Show(facts)),
    )
    return Dialog("item", options=options, kind="menu")


def folder_menu(ctx: Context) -> Dialog:
    """Menu of the empty part of a folder."""
    options = (
        Option("New Folder", ctx.do("ask_folder")),
        Option("New Text File", ctx.do("ask_file")),
        Option("Paste", ctx.do("paste", writes=("files",))),
        Option("Select All", ctx.do("pick_all")),
    )
    return Dialog("folder", options=options, kind="menu")


def trash_menu(ctx: Context) -> Dialog:
    """Menu of the trash."""
    return Dialog("trash", options=(Option("Empty Trash", ctx.do("ask_empty")),), kind="menu")
