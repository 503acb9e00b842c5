"""The oracle: carries out the lines of a task's ``plan`` with mouse and keyboard.

Each line is a mapping with one of these keys::

    type: Hello                    type where the focus is  (submit: true presses Enter)
    key: ctrl+s                    press keys together
    run: mkdir Music               type a command into the terminal and press Enter; focuses it first
    focus: mousepad                click the title bar of an app's window, unless it has the focus
    click: galculator, at: [9, 9]  click within an app's window, pixels from its inner corner; negative ones count from
                                   the other end  (count: 2, button: right)
    title: xterm, button: close    click a button of the title bar: close, maximise, minimise
    move: xterm, by: [60, 40]      drag a window by its title bar
    scroll: xterm, notches: -5     turn the wheel over a window; negative is up
    open: Calculator               start an application
    menu: Calculator               start it by a right click on the wallpaper and a click on its entry
    appear: galculator             wait until an app has a window
    wait: 1                        wait some seconds
    answer: 320                    tell the user something
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.env.linux.programs import APPS
from cuarl.env.linux.windows import Window
from cuarl.errors import TaskError
from cuarl.types import Action, Answer, Click, Drag, Finish, Key, OpenApp, Scroll, TypeText, Wait

KEYS = ("type", "key", "run", "focus", "click", "title", "move", "scroll", "open", "menu", "appear", "wait", "answer")
TITLE_BUTTONS = {"close": 9, "maximise": 25, "minimise": 41}
"""Pixels from the right end of the title bar, in openbox's own theme."""
MENU_ENTRY = 18
"""Height of an entry of the desktop's menu, in pixels, in openbox's own theme."""

Line = Mapping[str, Any]


class PlanOracle:
    """Where an episode's plan stands."""

    def __init__(self, plan: Sequence[Line]) -> None:
        self._lines = list(plan)
        self._half_done = False
        """The first part of a line with two of them is done."""

    def next(self, windows: Sequence[Window], size: tuple[int, int]) -> Action:
        """The next action; ``Finish`` when there is none left. Raises TaskError for a line that says nothing known."""
        while self._lines:
            line = self._lines[0]
            if "focus" in line and _focused(windows, str(line["focus"])):
                self._done()
                continue
            if "appear" in line:
                if not any(window.app == line["appear"] for window in windows):
                    return Wait(seconds=0.5)
                self._done()
                continue
            if "run" in line and not _focused(windows, "xterm"):
                return _click_title(_find(windows, "xterm"))
            action = self._action(line, windows, size)
            if "menu" in line and not self._half_done:
                self._half_done = True
            else:
                self._done()
            return action
        return Finish()

    def _done(self) -> None:
        self._lines.pop(0)
        self._half_done = False

    def _action(self, line: Line, windows: Sequence[Window], size: tuple[int, int]) -> Action:
        key = next((k for k in KEYS if k in line), None)
        if key is None:
            raise TaskError(f"a line of the plan has none of {', '.join(KEYS)}", where=f"plan: {dict(line)}")
        value = str(line[key])
        match key:
            case "type":
                return TypeText(text=value, submit=bool(line.get("submit")))
            case "run":
                return TypeText(text=value, submit=True)
            case "key":
                return Key(keys=tuple(value.split("+")) if value != "+" else (value,))
            case "open":
                return OpenApp(name=value)
            case "wait":
                return Wait(seconds=float(value))
            case "answer":
                return Answer(text=value)
            case "menu":
                return _menu(value, windows, size, entry=self._half_done)
        return _on_window(key, line, _find(windows, value))


def _on_window(key: str, line: Line, window: Window) -> Action:
    x, y = window.x + window.width // 2, window.y - window.top // 2
    match key:
        case "title":
            return Click(x=window.x + window.width - TITLE_BUTTONS[str(line["button"])], y=y)
        case "move":
            by = line["by"]
            return Drag(path=((x, y), (x + int(by[0]), y + int(by[1]))))
        case "scroll":
            notches = int(line["notches"])
            inside = y + window.height // 2
            return Scroll(x=x, y=inside, direction="down" if notches > 0 else "up", amount=abs(notches), unit="notch")
        case "click":
            ax, ay = line["at"]
            return Click(
                x=window.x + ax % window.width,
                y=window.y + ay % window.height,
                button=line.get("button", "left"),
                count=line.get("count", 1),
            )
    return _click_title(window)


def _find(windows: Sequence[Window], app: str) -> Window:
    """The topmost window of an app. Raises TaskError if it has none."""
    found = [window for window in windows if window.app == app and not window.minimised]
    if not found:
        raise TaskError(f"the plan needs a window of {app}, and there is none", where="plan")
    return found[-1]


def _focused(windows: Sequence[Window], app: str) -> bool:
    return any(window.focused and window.app == app for window in windows)


def _click_title(window: Window) -> Action:
    return Click(x=window.x + 20, y=max(0, window.y - window.top // 2))


def _menu(title: str, windows: Sequence[Window], size: tuple[int, int], *, entry: bool) -> Action:
    """A right click on the wallpaper, then a click on an entry, counted from the pointer's place."""
    x, y = _bare(windows, size)
    if not entry:
        return Click(x=x, y=y, button="right")
    number = [app.title for app in APPS.values()].index(title)
    return Click(x=x + 20, y=y + MENU_ENTRY * number + MENU_ENTRY // 2)


def _bare(windows: Sequence[Window], size: tuple[int, int]) -> tuple[int, int]:
    """A point of the wallpaper. Raises TaskError if windows hide it all."""
    for y in range(4, size[1] - 110, 8):
        for x in range(4, size[0] - 120, 8):
            if not any(
                w.x - 8 <= x <= w.x + w.width + 8 and w.y - w.top - 8 <= y <= w.y + w.height + 8
                for w in windows
                if not w.minimised
            ):
                return x, y
    raise TaskError("the plan needs a bare place of the wallpaper, and windows hide it", where="plan")
