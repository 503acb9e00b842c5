"""Files: folders and what is in them, search, making, renaming, moving, copying and deleting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Back, Dialog, Effect, Focus, Open, Option, Put, Replace, Seq, Show, Toast
from cuarl.sim.phone import forms
from cuarl.sim.phone.apps.settings.apps import size_text
from cuarl.sim.phone.records import File
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, text_field, value_row

APP = AppModule("files", home="files/folder")

NAME, QUERY, BY_SIZE = "ui.form.file.name", "ui.form.files.query", "ui.form.files.by_size"
KINDS = {"jpg": ("photo", "Picture"), "png": ("photo", "Picture"), "svg": ("photo", "Picture"),
    "mp3": ("music", "Sound"), "pdf": ("file", "PDF"), "txt": ("note", "Text")}  # fmt: skip
"""Icon and name of each kind of file, by the end of its name."""


def parent(path: str) -> str:
    """The folder that something is in; empty for the storage's own level."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """A path's last part."""
    return path.rpartition("/")[2]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _kind(file: File) -> tuple[str, str]:
    return ("folder", "Folder") if file.folder else KINDS.get(file.path.rpartition(".")[2], ("file", "File"))


def _find(ctx: Context) -> File | None:
    return next((f for f in ctx.state.files if f.path == ctx.arg), None)


@APP.page("folder")
def folder(ctx: Context) -> Screen:
    """What is in a folder, folders first."""
    inside = [f for f in ctx.state.files if parent(f.path) == ctx.arg]
    by_size = bool(ctx.get(BY_SIZE))
    inside.sort(key=lambda f: (not f.folder, -f.size_kb if by_size else 0, name_of(f.path).lower()))
    sort = Option("Sort by name" if by_size else "Sort by size", Put(BY_SIZE, not by_size))
    own = _folder_options(ctx, ctx.arg) if ctx.arg else ()
    foot = () if ctx.arg else (w.Divider(), link(ctx, "Storage", "settings/storage", "Space used", "storage"))
    return Screen(
        name_of(ctx.arg) or "Files",
        (*(_row(ctx, f) for f in inside), *foot) or forms.empty("This folder is empty"),
        (w.IconButton("Search files", forms.start("files/search", {"files.query": ""}), icon="search"),),
        menu=(sort, *own),
        fab=w.Fab("New folder", forms.start(f"files/new:{ctx.arg}", {"file.name": ""})),
    )


def _folder_options(ctx: Context, path: str) -> tuple[Option, ...]:
    """What can be done with the folder that is shown."""
    return (
        Option("Rename folder", forms.start(f"files/rename:{path}", {"file.name": name_of(path)})),
        Option("Delete folder", Show(_deletion(ctx, path, leave=True))),
    )


def _row(ctx: Context, file: File, subtitle: str = "") -> w.Row:
    page = f"files/{'folder' if file.folder else 'file'}:{file.path}"
    count = sum(parent(f.path) == file.path for f in ctx.state.files)
    size = f"{count} item{'' if count == 1 else 's'}" if file.folder else size_text(file.size_kb)
    options = (
        Option("Rename", forms.start(f"files/rename:{file.path}", {"file.name": name_of(file.path)})),
        Option("Move to", Open(f"files/move:{file.path}")),
        Option("Copy to", Open(f"files/copy:{file.path}")),
        Option("Delete", Show(_deletion(ctx, file.path))),
    )
    menu = Show(Dialog(name_of(file.path), options=options))
    return w.Row(name_of(file.path), Open(page), menu, subtitle=subtitle or size, icon=_kind(file)[0])


def _deletion(ctx: Context, path: str, *, leave: bool = False) -> Dialog:
    left = tuple(f for f in ctx.state.files if not _inside(f.path, path))
    effect: Effect = Put("files", left)
    if leave:
        effect = forms.finish(effect, toast=f"{name_of(path)} deleted")
    more = len(ctx.state.files) - len(left) - 1
    text = f"{name_of(path)} and {more} more will be lost." if more else f"{name_of(path)} will be lost."
    return confirmation("Delete?", text, effect, "Delete")


@APP.page("file")
def file(ctx: Context) -> Screen:
    """What is known of a file."""
    found = _find(ctx)
    if found is None:
        return forms.gone("File")
    name, (icon, kind) = name_of(found.path), _kind(found)
    rename = forms.start(f"files/rename:{found.path}", {"file.name": name})
    actions = (
        w.IconButton("Rename file", rename, icon="edit"),
        w.IconButton("Delete file", Show(_deletion(ctx, found.path, leave=True)), icon="trash"),
    )
    buttons = (
        w.Button("Move to", Open(f"files/move:{found.path}"), icon="folder"),
        w.Button("Copy to", Open(f"files/copy:{found.path}"), icon="copy"),
    )
    body = (
        w.Row(name, icon=icon, bold=True),
        w.HBox(buttons, pad=12),
        w.Divider(),
        value_row("Type", kind, icon="info"),
        value_row("Size", size_text(found.size_kb), icon="storage"),
        value_row("Folder", parent(found.path) or "Storage", icon="folder"),
    )
    return Screen("File", body, actions)


@APP.page("search")
def search(ctx: Context) -> Screen:
    """Files and folders with the typed text in their names."""
    query = str(ctx.get(QUERY)).strip().lower()
    found = [f for f in ctx.state.files if query and query in name_of(f.path).lower()]
    rows = tuple(_row(ctx, f, parent(f.path) or "Storage") for f in found)
    nothing = forms.empty("Nothing found" if query else "Type a name")
    return Screen("Search", rows or nothing, top=(text_field(ctx, "Search files", QUERY, search=True),))


# --- forms ---------------------------------------------------------------------------------------------------------


@APP.page("new")
def new(ctx: Context) -> Screen:
    """The form of a new folder inside another one."""
    path = _joined(ctx.arg, str(ctx.get(NAME)).strip())
    made = forms.finish(Append("files", File(path, folder=True)), toast="Folder created")
    return _name_form(ctx, "New folder", "Folder name", "Create", path, made)


@APP.page("rename")
def rename(ctx: Context) -> Screen:
    """The form that renames a file, or a folder with all that is in it."""
    found = _find(ctx)
    if found is None:
        return forms.gone("Rename")
    path = _joined(parent(found.path), str(ctx.get(NAME)).strip())
    renamed = tuple(_moved(f, found.path, path) for f in ctx.state.files)
    return _name_form(ctx, "Rename", "Name", "Rename", path, _leave(ctx, Put("files", renamed), path, "Renamed"))


def _moved(file: File, old: str, new: str) -> File:
    return replace(file, path=new + file.path[len(old) :]) if _inside(file.path, old) else file


def _leave(ctx: Context, effect: Effect, path: str, toast: str) -> Effect:
    """Leave a form; if the page below shows what was moved away, that page follows it to ``path``."""
    stack = ctx.ui.stacks.get("files", ())
    below = stack[-2] if len(stack) > 1 else ""
    kind, _, shown = below.partition(":")
    follow = (Replace(f"{kind}:{path}"),) if shown == ctx.arg and kind in ("files/file", "files/folder") else ()
    return Seq((effect, Focus(""), Back(), *follow, Toast(toast)))


def _name_form(ctx: Context, title: str, label: str, button: str, path: str, effect: Effect) -> Screen:
    typed = str(ctx.get(NAME)).strip()
    taken = any(f.path == path for f in ctx.state.files)
    ready = bool(typed) and "/" not in typed and not taken
    problem = "This name is taken." if taken and path != ctx.arg else "A name has no slash." if "/" in typed else ""
    body = (
        text_field(ctx, label, NAME, submit=effect if ready else None),
        w.Paragraph(problem or f"In {parent(path) or 'Storage'}" if "/" not in typed else problem),
        w.HBox((w.Button(button, effect, look="filled", enabled=ready),), pad=50),
    )
    return Screen(title, body)


# --- moving and copying --------------------------------------------------------------------------------------------


@APP.page("move")
def move(ctx: Context) -> Screen:
    """Folders to move something into."""

    def moved(target: str) -> Effect:
        files = tuple(_moved(f, ctx.arg, target) for f in ctx.state.files)
        return _leave(ctx, Put("files", files), target, "Moved")

    return _targets(ctx, "Move to", moved)


@APP.page("copy")
def copy(ctx: Context) -> Screen:
    """Folders to copy something into."""

    def copied(target: str) -> Effect:
        copies = tuple(_moved(f, ctx.arg, target) for f in ctx.state.files if _inside(f.path, ctx.arg))
        return forms.finish(Put("files", (*ctx.state.files, *copies)), toast="Copied")

    return _targets(ctx, "Copy to", copied)


def _targets(ctx: Context, title: str, effect: Callable[[str], Effect]) -> Screen:
    """All folders that ``ctx.arg`` can go to: not itself, none inside it, none that has its name already."""
    name, paths = name_of(ctx.arg), {f.path for f in ctx.state.files}
    folders = ["", *sorted(f.path for f in ctx.state.files if f.folder and not _inside(f.path, ctx.arg))]
    rows = tuple(
        w.Row(path or "Storage", effect(_joined(path, name)), icon="folder")
        for path in folders
        if _joined(path, name) not in paths
    )
    head = w.Header(name)
    return Screen(title, (head, *rows) if _find(ctx) and rows else forms.empty("No other folder"))
