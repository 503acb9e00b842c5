"""A whole desktop at one moment: state, windows, look. Immutable, so that keeping a reference is a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.device import tree
from cuarl.sim.device.bag import Bag
from cuarl.sim.kit.effects import Dialog, Option
from cuarl.sim.kit.style import Style


@dataclass(frozen=True, slots=True)
class Screen:
    """A desktop's screen; lengths in the simulator are units of ``scale`` pixels."""

    width_px: int
    height_px: int
    scale: float = 1.0

    @property
    def width(self) -> float:
        """Width in units."""
        return self.width_px / self.scale

    @property
    def height(self) -> float:
        """Height in units."""
        return self.height_px / self.scale


PROFILES: Mapping[str, Screen] = {
    "desktop-small": Screen(480, 320),
    "desktop": Screen(1024, 768, 1.3),
}


EMPTY = Bag()


@dataclass(frozen=True, slots=True)
class Window:
    """A window. ``key`` is ``APP-NUMBER``; lengths are units."""

    key: str
    app: str
    page: str = ""
    """What it shows: a folder, a file, an address, a page of the settings."""
    x: int = 0
    y: int = 0
    width: int = 320
    height: int = 220
    minimised: bool = False
    maximised: bool = False
    form: Bag = EMPTY
    """What the window remembers by name: selections, typed texts (``TextBox``), lines of a terminal."""
    focus: str = ""
    """Name of the text in ``form`` that keys go to."""
    scroll: Bag = EMPTY
    """Offset in units by region."""
    dialog: Dialog | None = None
    """A box over the window; nothing else in it can be used while it is open."""

    def get(self, name: str, default: Any = "") -> Any:
        """What is remembered under ``name``."""
        return self.form.get(name, default)

    def box(self, name: str) -> TextBox:
        """The text that is typed under ``name``."""
        found = self.form.get(name)
        return found if isinstance(found, TextBox) else TextBox()

    def put(self, name: str, value: Any) -> Window:
        """A copy that remembers ``value`` under ``name``."""
        return replace(self, form=self.form.put(name, value))

    def with_page(self, page: str) -> Window:
        """A copy that shows another page from its top."""
        return replace(self, page=page, scroll=self.scroll.without("body"))


@dataclass(frozen=True, slots=True)
class Menu:
    """An open menu called ``name``: entries at a place in units."""

    name: str
    x: int
    y: int
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Ui:
    """Where the user is. Nothing here outlives the episode."""

    windows: tuple[Window, ...] = ()
    """From the lowest to the topmost."""
    opened: int = 0
    """How many windows were opened so far."""
    menu: Menu | None = None
    notice: str = ""
    """Title of the notification that is shown."""
    pointer: tuple[int, int] = (0, 0)
    """Where the mouse is, pixels."""
    tip: str = ""
    """Name of the button under the resting pointer."""
    picked: str = ""
    """Path of the icon on the desktop that is selected."""


@dataclass(frozen=True, slots=True)
class DesktopWorld:
    """A desktop at one moment."""

    state: DesktopState = field(default_factory=DesktopState)
    ui: Ui = Ui()
    look: DesktopLook = field(default_factory=DesktopLook)
    screen: Screen = PROFILES["desktop-small"]

    def get(self, path: str) -> Any:
        """Value at a state path."""
        return tree.get(self.state, path)

    def put(self, path: str, value: Any) -> DesktopWorld:
        """A world with ``value`` at a state path."""
        state = tree.put(self.state, path, value)
        return self if state is self.state else replace(self, state=state)

    def with_ui(self, **changes: Any) -> DesktopWorld:
        """A world with some fields of ``ui`` changed."""
        return replace(self, ui=replace(self.ui, **changes))

    def window(self, key: str) -> Window | None:
        """The window of a key."""
        return next((window for window in self.ui.windows if window.key == key), None)

    def with_window(self, window: Window) -> DesktopWorld:
        """A world in which ``window`` takes the place of the one with its key."""
        return self.with_ui(windows=tuple(window if old.key == window.key else old for old in self.ui.windows))

    @property
    def focused(self) -> Window | None:
        """The window that keys go to: the topmost one that is shown."""
        return next((window for window in reversed(self.ui.windows) if not window.minimised), None)

    @property
    def style(self) -> Style:
        """How things look now."""
        state = self.state
        return _style(
            self.look,
            self.screen.scale,
            state.appearance.dark_style,
            state.appearance.accent,
            state.accessibility.text_size,
            state.accessibility.high_contrast,
        )

    @property
    def wallpaper(self) -> str:
        """Subject of the wallpaper."""
        chosen = self.state.appearance.wallpaper
        return self.look.wallpaper if chosen == "Seed" else chosen.lower()


TEXT_SIZES = {"Small": 0.94, "Default": 1.0, "Large": 1.08}
ACCENT_NAMES = {"Blue": 0, "Green": 1, "Orange": 2, "Purple": 3}
DENSITY = 0.9
"""A mouse needs less room than a finger: text is smaller than on the phone's screen of the same scale."""


@lru_cache(maxsize=1024)
def _style(look: DesktopLook, scale: float, dark: bool, accent: str, text: str, contrast: bool) -> Style:
    return Style(
        scale=scale,
        dark=dark,
        accent=ACCENT_NAMES.get(accent, look.accent),
        icon_shape=look.icon_shape,
        icon_set=look.icon_set,
        icon_hue=look.icon_hue,
        font_step=DENSITY * look.font_step * TEXT_SIZES[text],
        bold=look.bold,
        contrast=contrast,
    )
