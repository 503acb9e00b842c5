"""The widgets: frozen, hashable descriptions. Lengths are logical units (the screen is 192 units wide)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from cuarl.sim.kit.effects import Effect

Trailing = Literal["", "switch", "radio", "check", "chevron", "split"]


@dataclass(frozen=True, slots=True)
class Widget:
    """Base of everything that can be placed on a screen."""

    role: ClassVar[str] = ""
    """What an accessibility service would call it; empty for decoration."""


@dataclass(frozen=True, slots=True)
class Control(Widget):
    """A widget with a name that may react to a tap.

    Two controls are equal if they look the same, whatever they do: equal ones share their pixels.
    """

    label: str = ""
    on_tap: Effect | None = field(default=None, compare=False)
    on_long: Effect | None = field(default=None, compare=False)
    on_swipe: Effect | None = field(default=None, compare=False, kw_only=True)
    """For a slide to the left or right, as dismisses a notification."""
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Switch(Control):
    """A bare switch, placed on the right of a row whose body does something else."""

    role: ClassVar[str] = "switch"
    checked: bool = False


@dataclass(frozen=True, slots=True)
class Row(Control):
    """A line of a list."""

    role: ClassVar[str] = "row"
    subtitle: str = ""
    icon: str = ""
    tint: str = ""
    """App key whose launcher icon is shown in place of ``icon``."""
    value: str = ""
    """Short text on the right."""
    trailing: Trailing = ""
    checked: bool | None = None
    switch: Switch | None = None
    """With ``trailing="split"``: a switch of its own at the right end."""
    accent: bool = False
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Header(Widget):
    """A section title."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph(Widget):
    """Wrapped text."""

    text: str = ""
    size: float = 10.5
    muted: bool = True
    align: Literal["left", "centre", "right"] = "left"


@dataclass(frozen=True, slots=True)
class Display(Widget):
    """One large line of text, such as a clock or a calculator's display."""

    text: str = ""
    size: float = 28
    align: Literal["left", "centre", "right"] = "centre"
    height: float = 48


@dataclass(frozen=True, slots=True)
class Bubble(Control):
    """A chat message."""

    role: ClassVar[str] = "text"
    mine: bool = False


@dataclass(frozen=True, slots=True)
class Slider(Control):
    """A slider bound to an integer path; a tap or a drag along it sets the value."""

    role: ClassVar[str] = "slider"
    path: str = ""
    value: int = 0
    low: int = 0
    high: int = 100
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Button(Control):
    """A push button."""

    role: ClassVar[str] = "button"
    look: Literal["filled", "tonal", "text", "outlined", "round"] = "tonal"
    icon: str = ""
    danger: bool = False


@dataclass(frozen=True, slots=True)
class IconButton(Control):
    """An icon without text; ``label`` is its accessible name."""

    role: ClassVar[str] = "button"
    icon: str = "dots"
    active: bool = False
    white: bool = False
    """Over a picture or a dimmed screen."""


@dataclass(frozen=True, slots=True)
class Fab(Control):
    """The floating action button."""

    role: ClassVar[str] = "button"
    icon: str = "plus"


@dataclass(frozen=True, slots=True)
class Field(Control):
    """A text field bound to a path. ``submit`` runs on Enter."""

    MARGIN: ClassVar[float] = 8.0
    CROSS: ClassVar[float] = 22.0
    """Width of the cross of a field with ``clear``."""

    role: ClassVar[str] = "field"
    path: str = ""
    text: str = ""
    focused: bool = False
    hidden: bool = False
    search: bool = False
    submit: Effect | None = field(default=None, compare=False)
    lines: int = 1
    """How many lines it shows; a longer text shows its end."""
    clear: Effect | None = field(default=None, compare=False)
    """What the cross at its right end does, which is there while the field has text."""

    @property
    def crossed(self) -> bool:
        """Whether the cross is shown."""
        return self.clear is not None and self.text != ""


@dataclass(frozen=True, slots=True)
class Tab(Control):
    """One tab of a tab bar or navigation bar."""

    role: ClassVar[str] = "tab"
    selected: bool = False
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Chip(Control):
    """A small rounded filter or suggestion."""

    role: ClassVar[str] = "button"
    selected: bool = False


@dataclass(frozen=True, slots=True)
class AppIcon(Control):
    """A launcher icon with its name below."""

    role: ClassVar[str] = "icon"
    app: str = ""
    badge: bool = False
    named: bool = True
    on_wallpaper: bool = True


@dataclass(frozen=True, slots=True)
class FolderIcon(Control):
    """A launcher folder: up to four small icons."""

    role: ClassVar[str] = "icon"
    apps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tile(Control):
    """A quick-settings tile."""

    role: ClassVar[str] = "switch"
    icon: str = ""
    checked: bool = False
    subtitle: str = ""


@dataclass(frozen=True, slots=True)
class Picture(Control):
    """A drawn picture (a photo, a wallpaper); ``subject`` names what it shows."""

    role: ClassVar[str] = "image"
    subject: str = "hills"
    height: float = 60
    badge: str = ""
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Card(Control):
    """A raised box with a title and text."""

    role: ClassVar[str] = "card"
    text: str = ""
    icon: str = ""
    tint: str = ""


@dataclass(frozen=True, slots=True)
class Key(Control):
    """One key of the on-screen keyboard. ``char`` is typed; special keys have names such as ``shift``."""

    role: ClassVar[str] = "key"
    char: str = ""
    icon: str = ""
    active: bool = False


@dataclass(frozen=True, slots=True)
class Day(Control):
    """One day of a calendar's month."""

    role: ClassVar[str] = "button"
    today: bool = False
    marked: bool = False
    selected: bool = False


@dataclass(frozen=True, slots=True)
class Divider(Widget):
    """A thin line."""


@dataclass(frozen=True, slots=True)
class Space(Widget):
    """Nothing, ``height`` units of it."""

    height: float = 8


@dataclass(frozen=True, slots=True)
class Bar(Widget):
    """A filled area behind other widgets.

    ``bar``, ``surface``, ``raised``, ``sheet`` (rounded top), ``scrim`` (dims all below).
    """

    fill: str = "bar"


@dataclass(frozen=True, slots=True)
class Title(Widget):
    """The title of the app bar."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class HBox(Widget):
    """Children side by side; ``weights`` share the width (equal if empty)."""

    children: tuple[Widget, ...] = ()
    weights: tuple[float, ...] = ()
    height: float = 0
    """Units; 0 takes the tallest child."""
    gap: float = 4
    pad: float = 8


@dataclass(frozen=True, slots=True)
class Grid(Widget):
    """Children in rows of ``columns``; each row ``height`` units high."""

    children: tuple[Widget, ...] = ()
    columns: int = 4
    height: float = 44
    gap: float = 2
    pad: float = 6
