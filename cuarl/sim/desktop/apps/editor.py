"""Text Editor: one text file a window, with the usual shortcuts, and a question before unsaved text is lost."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.lines import columns, text_lines
from cuarl.sim.desktop.registry import Context, DesktopApp, Pane
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.widgets import Push, Sheet
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Dismiss, Do, Input, Option

TEXT, SAVED, NAME = "text", "saved", "name"
UNTITLED = "Untitled"


def changed(window: Window) -> bool:
    """Whether a window's text differs from its file."""
    return bool(window.box(TEXT).text != window.get(SAVED))


def title_of(window: Window) -> str:
    """File's name, with a star while it is not saved."""
    return ("*" if changed(window) else "") + (fs.name_of(window.page) or UNTITLED)


def pane(ctx: Context) -> Pane:
    """A toolbar and the text."""
    content = ctx.window.box(TEXT)
    focused = ctx.focused and ctx.window.dialog is None
    buttons = (
        Push("Open", ctx.do("open")),
        Push("New", ctx.do("new")),
        Push("Save", ctx.do("save", writes=("files",)), look="suggested" if changed(ctx.window) else "plain"),
        Push("Save As", ctx.do("ask_name")),
    )
    row = content.text.count("\n", 0, content.caret) + 1
    column = content.caret - (content.text.rfind("\n", 0, content.caret) + 1) + 1
    where = f"~/{ctx.window.page}" if ctx.window.page else "not saved yet"
    return Pane(
        title_of(ctx.window),
        (w.Space(3), *text_lines(content, columns(ctx.world, ctx.window), TEXT, focused=focused)),
        (w.HBox(buttons, (1, 1, 1, 1.4), height=26, gap=3, pad=5),),
        foot=f"{where}   Ln {row}, Col {column}",
        sheet=Sheet("", name=TEXT),
    )


def opened(world: DesktopWorld, window: Window) -> Window:
    """A new window with its file's text, the caret at the start."""
    found = fs.find(world.state.files, window.page) if window.page else None
    text = found.text if found else ""
    return window.put(TEXT, TextBox(text)).put(SAVED, text)


APP = DesktopApp(
    "editor",
    "Text Editor",
    pane,
    (330, 220),
    typed=TEXT,
    lines=True,
    opened=opened,
    keys={
        "ctrl+s": "save",
        "ctrl+shift+s": "ask_name",
        "ctrl+o": "open",
        "ctrl+n": "new",
        "ctrl+w": "quit",
        "ctrl+q": "quit",
    },
)


@APP.action("save")
def save(world: DesktopWorld, key: str) -> DesktopWorld:
    """Write the text to its file; a text without one asks for a name."""
    window = world.window(key)
    if window is None:
        return world
    return _written(world, window, window.page) if window.page else ask_name(world, key)


def _written(world: DesktopWorld, window: Window, path: str) -> DesktopWorld:
    text = window.box(TEXT).text
    try:
        world = world.put("files", fs.write(world.state.files, path, text))
    except fs.FileProblem as problem:
        box = Dialog("Could not save", f"{path}: {problem}", buttons=(Option("OK", Dismiss()),))
        return world.with_window(replace(window, dialog=box))
    return world.with_window(replace(window.put(SAVED, text), page=path))


@APP.action("ask_name")
def ask_name(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask where to save."""
    window = world.window(key)
    if window is None:
        return world
    box = Dialog(
        "Save As",
        "Path below the home folder",
        inputs=(Input("Name", NAME),),
        buttons=(Option("Cancel", Dismiss()), Option("Save", Do("editor.save_as", (key,), ("files",)))),
    )
    window = window.put(NAME, TextBox.of(window.page or "Documents/untitled.txt", selected=True))
    return world.with_window(replace(window, dialog=box, focus=NAME))


@APP.action("save_as")
def save_as(world: DesktopWorld, key: str) -> DesktopWorld:
    """Save under the name that was typed, asking before another file is overwritten."""
    window = world.window(key)
    path = "" if window is None else _path(window.box(NAME).text)
    if window is None or not path:
        return world
    if path != window.page and fs.find(world.state.files, path) is not None:
        buttons = (Option("Cancel", Dismiss()), Option("Replace", Do("editor.replace", (key,), ("files",))))
        return world.with_window(replace(window, dialog=Dialog("Replace file?", f"{path} exists.", buttons=buttons)))
    return _written(world, window, path)


@APP.action("replace")
def replace_file(world: DesktopWorld, key: str) -> DesktopWorld:
    """Overwrite the file of the typed name."""
    window = world.window(key)
    return world if window is None else _written(world, window, _path(window.box(NAME).text))


def _path(typed: str) -> str:
    """The path below the home folder that was typed."""
    text = typed.strip()
    for prefix in (f"{fs.HOME}/", "~/"):
        text = text.removeprefix(prefix)
    return text.strip("/")


@APP.action("open")
def ask_file(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask which text file to open."""
    window = world.window(key)
    if window is None:
        return world
    texts = sorted(f.path for f in world.state.files if not f.folder and not f.size_kb)
    options = tuple(Option(path, Do("editor.show", (key, path))) for path in texts)
    box = Dialog("Open", options=options, buttons=(Option("Cancel", Dismiss()),))
    return world.with_window(replace(window, dialog=box, scroll=window.scroll.without("dialog")))


@APP.action("show")
def show(world: DesktopWorld, key: str, path: str) -> DesktopWorld:
    """Show a file: in this window if it is empty, else in a new one."""
    window = world.window(key)
    if window is None or window.page or window.box(TEXT).text:
        return windows.open_window(world, "editor", path)
    return world.with_window(opened(world, replace(window, page=path)))


@APP.action("new")
def new(world: DesktopWorld, key: str) -> DesktopWorld:
    """A window with an empty text."""
    return windows.open_window(world, "editor")


@APP.action("quit")
def quit_editor(world: DesktopWorld, key: str) -> DesktopWorld:
    """Close the window."""
    return windows.close(world, key)


@APP.action("closing")
def closing(world: DesktopWorld, key: str) -> DesktopWorld:
    """Ask before unsaved text is lost."""
    window = world.window(key)
    if window is None or not changed(window):
        return windows.discard(world, key)
    name = fs.name_of(window.page) or UNTITLED
    buttons = (
        Option("Cancel", Dismiss()),
        Option("Discard", Do("window.discard", (key,))),
        Option("Save", Do("editor.save", (key,), ("files",))),
    )
    box = Dialog("Save changes?", f"{name} was changed.", buttons=buttons)
    return windows.focus(world.with_window(replace(window, dialog=box)), key)
