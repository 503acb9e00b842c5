"""A whole device at one moment: state, user interface, look. Immutable, so that keeping a reference is a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from cuarl.sim.device import tree
from cuarl.sim.device.bag import Bag
from cuarl.sim.kit.effects import Dialog
from cuarl.sim.kit.style import Style
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.records import App
from cuarl.sim.phone.state import DeviceState


@dataclass(frozen=True, slots=True)
class Profile:
    """Screen of a device. The width is always 192 units; the height follows from the aspect."""

    width_px: int
    height_px: int

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return self.width_px / WIDTH

    @property
    def height(self) -> float:
        """Height in units."""
        return self.height_px / self.scale


WIDTH = 192
PROFILES: Mapping[str, Profile] = {
    "small": Profile(192, 384),
    "phone": Profile(360, 640),
    "tall": Profile(1080, 2400),
}


@dataclass(frozen=True, slots=True)
class Ui:
    """Where the user is. Nothing here outlives the episode."""

    app: str = ""
    """Key of the app in front; empty for the home screen."""
    stacks: Bag = Bag()
    """Open pages of each app that runs, the shown one last."""
    recents: tuple[str, ...] = ()
    """Most recent first."""
    home_page: int = 0
    overlay: str = ""
    """``drawer``, ``recents``, ``shade``, ``quick``, ``power`` or ``folder:NAME``."""
    scroll: Bag = Bag()
    """Offset in units by region."""
    focus: str = ""
    """Path of the text field with the cursor; the keyboard is open while it is not empty."""
    shift: bool = False
    symbols: bool = False
    dialog: Dialog | None = None
    toast: str = ""
    form: Bag = Bag()
    """What pages remember only while they are used, at paths ``ui.form.*``."""
    derived: tuple[str, ...] = ()
    """State paths that the device itself changed as a consequence of something else."""

    @property
    def page(self) -> str:
        """Id of the shown page; ``home`` on the home screen."""
        stack = self.stacks.get(self.app) if self.app else None
        return stack[-1] if stack else "home"


@dataclass(frozen=True, slots=True)
class World:
    """A device at one moment."""

    state: DeviceState = field(default_factory=DeviceState)
    ui: Ui = Ui()
    look: Look = field(default_factory=Look)
    profile: Profile = PROFILES["small"]

    def get(self, path: str) -> Any:
        """Value at a state path, or of a form field (``ui.form.NAME``; empty text if never set)."""
        if path.startswith(FORM):
            return self.ui.form.get(path[len(FORM) :], "")
        return tree.get(self.state, path)

    def put(self, path: str, value: Any) -> World:
        """A world with ``value`` at ``path``."""
        if path.startswith(FORM):
            return self.with_ui(form=self.ui.form.put(path[len(FORM) :], value))
        state = tree.put(self.state, path, value)
        return self if state is self.state else World(state, self.ui, self.look, self.profile)

    def with_ui(self, **changes: Any) -> World:
        """A world with some fields of ``ui`` changed."""
        return World(self.state, replace(self.ui, **changes), self.look, self.profile)

    def app(self, key: str) -> App | None:
        """The application of a key."""
        return next((a for a in self.state.apps if a.key == key), None)

    @property
    def style(self) -> Style:
        """How things look now."""
        look, state = self.look, self.state
        return _style(
            look,
            self.profile.scale,
            state.display.dark_theme,
            state.display.font_size,
            state.accessibility.bold_text,
            state.accessibility.high_contrast,
        )

    @property
    def wallpaper(self) -> str:
        """Subject of the wallpaper."""
        chosen = self.state.display.wallpaper
        return self.look.wallpaper if chosen == "Seed" else chosen.lower()


FORM = "ui.form."
FONT_SIZES = {"Small": 0.94, "Default": 1.0, "Large": 1.08}


@lru_cache(maxsize=4096)
def _style(look: Look, scale: float, dark: bool, font: str, bold: bool, contrast: bool) -> Style:
    return Style(
        scale=scale,
        dark=dark,
        accent=look.accent,
        icon_shape=look.icon_shape,
        icon_set=look.icon_set,
        icon_hue=look.icon_hue,
        font_step=look.font_step * FONT_SIZES[font],
        bold=look.bold or bold,
        row_pad=look.row_pad,
        contrast=contrast,
        discs=look.discs,
    )
