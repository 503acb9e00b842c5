"""The widgets that only a desktop has: frozen descriptions, like the kit's. Lengths are units."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from cuarl.sim.desktop.text import TextBox
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect
from cuarl.sim.kit.scene import FIXED

Fill = Literal["page", "terminal", "terminal_light"]
"""Grounds of texts."""
CELL, LINE = 6.0, 12.0
"""Width of a character and height of a line of fixed-width text."""


EMPTY = TextBox()


@dataclass(frozen=True, slots=True)
class Clickable(w.Control):
    """A control of the mouse's world. ``on_long`` is what a right click does."""

    on_double: Effect | None = field(default=None, compare=False, kw_only=True)
    on_middle: Effect | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Shadow(w.Widget):
    """What a window casts on things below it."""


@dataclass(frozen=True, slots=True)
class WindowBox(w.Control):
    """A window's body below its title bar, behind everything in it."""


@dataclass(frozen=True, slots=True)
class TitleBar(Clickable):
    """A window's title bar: dragging moves the window."""

    role: ClassVar[str] = "titlebar"
    focused: bool = True
    centred: bool = True
    square: bool = False
    pad: float = 62
    """Units at the buttons' side that the title keeps clear of."""
    left_buttons: bool = False


@dataclass(frozen=True, slots=True)
class WindowButton(Clickable):
    """Close, Minimise, Maximise or Restore."""

    role: ClassVar[str] = "button"
    icon: str = "close"
    disc: str = ""
    """Colour of a round button: ``red``, ``amber`` or ``green``; empty for a bare mark."""
    focused: bool = True


@dataclass(frozen=True, slots=True)
class PanelButton(Clickable):
    """A button of the panel: an icon, a text, or both."""

    role: ClassVar[str] = "button"
    icon: str = ""
    text: str = ""
    active: bool = False


@dataclass(frozen=True, slots=True)
class Task(Clickable):
    """The panel's entry of a window."""

    role: ClassVar[str] = "task"
    app: str = ""
    active: bool = False
    minimised: bool = False
    labelled: bool = True


@dataclass(frozen=True, slots=True)
class DeskIcon(Clickable):
    """An icon on the desktop: a double click opens it."""

    role: ClassVar[str] = "icon"
    icon: str = "folder"
    app: str = ""
    picked: bool = False
    path: str = ""


@dataclass(frozen=True, slots=True)
class MenuEntry(Clickable):
    """A line of a menu. ``indent`` leaves room for the marks that other lines have."""

    role: ClassVar[str] = "menuitem"
    app: str = ""
    checked: bool | None = None
    indent: bool = False


@dataclass(frozen=True, slots=True)
class Item(Clickable):
    """A line of a list or a sidebar; in Files a double click opens it and it can be dragged onto a folder."""

    role: ClassVar[str] = "row"
    icon: str = ""
    detail: str = ""
    selected: bool = False
    path: str = ""
    folder: bool = False


@dataclass(frozen=True, slots=True)
class Setting(Clickable):
    """A line of a page of settings."""

    role: ClassVar[str] = "row"
    subtitle: str = ""
    value: str = ""
    trailing: Literal["", "switch", "radio", "menu", "chevron"] = ""
    checked: bool | None = None
    first: bool = True
    last: bool = True
    """Whether it is at the top or bottom of its box."""


@dataclass(frozen=True, slots=True)
class Level(w.Slider):
    """A slider in a box of settings."""

    first: bool = True
    last: bool = True


@dataclass(frozen=True, slots=True)
class Push(Clickable):
    """A push button."""

    role: ClassVar[str] = "button"
    look: Literal["plain", "suggested", "flat", "key", "operator"] = "plain"
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Entry(w.Control):
    """A one-line text field. ``name`` is the text of its window's ``form`` that it edits; Enter runs ``submit``."""

    role: ClassVar[str] = "field"
    name: str = ""
    content: TextBox = EMPTY
    focused: bool = False
    icon: str = ""
    submit: Effect | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TextLine(w.Control):
    """A line of fixed-width text that can be clicked into. Columns of the caret and the selection are -1 for none."""

    name: str = ""
    """The text of the window's ``form`` that it shows a part of; empty for text that can't be edited."""
    start: int = 0
    """Position of its first character in that text."""
    text: str = ""
    caret: int = -1
    marked: tuple[int, int] = (-1, -1)
    ink: Literal["text", "muted", "prompt"] = "text"
    prompt: int = 0
    """How many characters at the start are the prompt."""
    sheet: Fill = "page"


@dataclass(frozen=True, slots=True)
class Sheet(w.Control):
    """The area behind the lines of a text."""

    fill: Fill = "page"
    name: str = ""


@dataclass(frozen=True, slots=True)
class ScrollBar(w.Control):
    """The bar beside what scrolls; ``top`` and ``length`` of its handle are pixels."""

    region: str = ""
    top: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Ruled(w.Widget):
    """A filled strip with a hairline at its edge: toolbars, sidebars, the panel, menus."""

    fill: str = "bar"
    edge: Literal["", "top", "bottom", "right", "all"] = ""


@dataclass(frozen=True, slots=True)
class Tip(w.Widget):
    """The name of a button beside the resting pointer."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class NoticeBox(w.Control):
    """A notification."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Caption(w.Widget):
    """A heading above a box of settings, or a line of a dialog."""

    text: str = ""
    strong: bool = True
    centred: bool = False


FIXED.update(
    {Item: 21.0, Setting: 27.0, Level: 38.0, Push: 24.0, Entry: 25.0, TextLine: LINE, Caption: 20.0, MenuEntry: 20.0}
)
