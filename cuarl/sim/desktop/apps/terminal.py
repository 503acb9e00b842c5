"""Terminal: windows with a shell on the tree of files."""

from __future__ import annotations

from cuarl.sim.desktop import windows
from cuarl.sim.desktop.lines import columns, spans
from cuarl.sim.desktop.registry import Context, DesktopApp, Pane
from cuarl.sim.desktop.shell import Result, run_line
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.widgets import Fill, Sheet, TextLine
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.kit import widgets as w

KEPT = 200
"""How many printed lines a terminal keeps."""


def prompt(cwd: str) -> str:
    """What stands before what is typed."""
    return f"sam@desk:{f'~/{cwd}' if cwd else '~'}$ "


def pane(ctx: Context) -> Pane:
    """What was printed, and the line being typed."""
    width = columns(ctx.world, ctx.window)
    sheet: Fill = "terminal" if ctx.world.look.dark_terminal else "terminal_light"
    cwd, typed = ctx.window.page, ctx.window.box("input")
    shown = [
        TextLine("", text=line[s.start : s.end], prompt=_prompt_in(line[s.start : s.end]), sheet=sheet)
        for line in ctx.form("lines", ())
        for s in spans(line, width)
    ]
    mark = prompt(cwd)
    whole, caret = mark + typed.text, len(mark) + typed.caret
    for start, end, last in spans(whole, width):
        here = ctx.focused and (start <= caret < end or (caret == end and last))
        shown.append(
            TextLine(
                "",
                name="input",
                start=start - len(mark),
                text=whole[start:end],
                caret=caret - start if here else -1,
                prompt=min(max(0, len(mark) - start), end - start),
                sheet=sheet,
            )
        )
    title = f"sam@desk: {f'~/{cwd}' if cwd else '~'}"
    return Pane(title, (w.Space(3), *shown), sheet=Sheet("", fill=sheet, name="input"), footing=True)


def _prompt_in(line: str) -> int:
    """Length of the prompt that a printed line starts with."""
    return line.index("$ ") + 2 if line.startswith("sam@desk:") and "$ " in line else 0


def opened(world: DesktopWorld, window: Window) -> Window:
    """A new terminal."""
    return window.put("input", TextBox()).put("lines", ())


APP = DesktopApp(
    "terminal",
    "Terminal",
    pane,
    (340, 210),
    typed="input",
    opened=opened,
    keys={
        "return": "enter",
        "up": "earlier",
        "down": "later",
        "ctrl+c": "interrupt",
        "ctrl+l": "clear",
        "ctrl+u": "erase_line",
        "ctrl+d": "leave",
        "tab": "complete",
    },
)


@APP.action("enter")
def enter(world: DesktopWorld, key: str) -> DesktopWorld:
    """Run the line that was typed."""
    window = world.window(key)
    if window is None:
        return world
    line, cwd = window.box("input").text, window.page
    past = (*world.state.terminal.history, line) if line.strip() else world.state.terminal.history
    result = run_line(world.state.files, cwd, past, line, columns(world, window))
    world = world.put("terminal.history", past).put("files", result.files)
    if result.leave:
        return windows.discard(world, key)
    return world.with_window(_shown(window, result, (prompt(cwd) + line,)))


def _shown(window: Window, result: Result, typed: tuple[str, ...]) -> Window:
    printed = tuple(result.output.removesuffix("\n").split("\n")) if result.output else ()
    lines = printed if result.clear else (*window.get("lines", ()), *typed, *printed)
    window = window.put("lines", lines[-KEPT:]).put("input", TextBox()).put("recalled", 0)
    return window.with_page(result.cwd)


@APP.action("interrupt")
def interrupt(world: DesktopWorld, key: str) -> DesktopWorld:
    """Give up the line being typed."""
    window = world.window(key)
    if window is None:
        return world
    typed = prompt(window.page) + window.box("input").text + "^C"
    return world.with_window(_shown(window, Result((), window.page), (typed,)))


@APP.action("clear")
def clear(world: DesktopWorld, key: str) -> DesktopWorld:
    """Empty the screen, not the line."""
    window = world.window(key)
    return world if window is None else world.with_window(window.put("lines", ()))


@APP.action("erase_line")
def erase_line(world: DesktopWorld, key: str) -> DesktopWorld:
    """Empty the line."""
    window = world.window(key)
    return world if window is None else world.with_window(window.put("input", TextBox()))


@APP.action("leave")
def leave(world: DesktopWorld, key: str) -> DesktopWorld:
    """End the shell if nothing is typed."""
    window = world.window(key)
    return world if window is None or window.box("input").text else windows.discard(world, key)


@APP.action("earlier")
def earlier(world: DesktopWorld, key: str) -> DesktopWorld:
    """Take back the line that was typed before."""
    return _recall(world, key, 1)


@APP.action("later")
def later(world: DesktopWorld, key: str) -> DesktopWorld:
    """Go back towards the newest line."""
    return _recall(world, key, -1)


def _recall(world: DesktopWorld, key: str, step: int) -> DesktopWorld:
    window, past = world.window(key), world.state.terminal.history
    if window is None:
        return world
    back = min(max(0, int(window.get("recalled", 0)) + step), len(past))
    line = past[-back] if back else ""
    return world.with_window(window.put("recalled", back).put("input", TextBox.of(line)))


@APP.action("complete")
def complete(world: DesktopWorld, key: str) -> DesktopWorld:
    """Complete the name of a file if only one begins like this."""
    window = world.window(key)
    if window is None:
        return world
    typed = window.box("input")
    head, _, word = typed.text.rpartition(" ")
    folder, slash, start = word.rpartition("/")
    listed = run_line(world.state.files, window.page, (), f"ls -1 '{folder or '.'}'").output.split("\n")
    found = [name for name in listed if start and name.startswith(start)]
    if len(found) != 1:
        return world
    line = f"{head} {folder}{slash}{found[0]}".lstrip() if head else f"{folder}{slash}{found[0]}"
    return world.with_window(window.put("input", TextBox.of(line)))
