"""How the desktop's apps register: what their windows show, named actions, shortcuts. One module of ``apps`` each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from cuarl.sim.desktop.geometry import frame_of
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.desktop.widgets import Entry
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.device.order import permutation
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Do, Effect

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pane:
    """The content of a window."""

    title: str
    body: tuple[w.Widget, ...] = ()
    """Widgets from top to bottom; they scroll."""
    toolbar: tuple[w.Widget, ...] = ()
    """Rows fixed below the title bar."""
    side: tuple[w.Widget, ...] = ()
    """The sidebar; it scrolls by itself."""
    foot: str = ""
    """The status line."""
    ground: Literal["page", "bar"] = "page"
    sheet: w.Control | None = None
    """What lies behind the body and takes clicks beside its widgets."""
    footing: bool = False
    """Start scrolled to the end, as terminals do."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a window's content is built from."""

    world: DesktopWorld
    window: Window
    focused: bool = True
    """Whether keys go to this window."""

    @property
    def state(self) -> DesktopState:
        """The desktop's state."""
        return self.world.state

    def get(self, path: str) -> Any:
        """Value at a state path."""
        return self.world.get(path)

    def form(self, name: str, default: Any = "") -> Any:
        """What this window remembers."""
        return self.window.get(name, default)

    def do(self, action: str, *args: Any, writes: tuple[str, ...] = ()) -> Do:
        """The effect that runs an action of this app on this window."""
        return Do(f"{self.window.app}.{action}", (self.window.key, *args), writes)

    def entry(self, label: str, name: str, submit: Effect | None = None, icon: str = "") -> Entry:
        """The text field for the text called ``name``."""
        focused = self.focused and self.window.focus == name and self.window.dialog is None
        return Entry(label, name=name, content=self.window.box(name), focused=focused, submit=submit, icon=icon)

    def room(self, taken: int, each: float = 28.0) -> float:
        """Weight of what fills a toolbar beside ``taken`` buttons, so that these are ``each`` units wide."""
        return max(2.0, frame_of(self.world, self.window).width / each - taken)

    def shuffled(self, items: Sequence[T], name: str) -> tuple[T, ...]:
        """``items`` in this desktop's own order."""
        order = permutation(self.world.look.seed, name, len(items))
        return tuple(items[i] for i in order)


Builder = Callable[[Context], Pane]
Action = Callable[..., DesktopWorld]


@dataclass(frozen=True)
class DesktopApp:
    """An app: its windows' size, content, actions and shortcuts."""

    key: str
    name: str
    """As menus write it."""
    build: Builder
    size: tuple[int, int]
    """Units on the small screen."""
    page: str = ""
    """What a new window shows."""
    typed: str = ""
    """Name of the text that takes what is typed while no field has the focus; empty if nothing does."""
    lines: bool = False
    """Whether Enter starts a new line in that text."""
    opened: Callable[[DesktopWorld, Window], Window] | None = None
    """Fills in what a new window remembers."""
    single: bool = False
    """Whether there is only one window of it."""
    keys: dict[str, str] = field(default_factory=dict)
    """Names of actions by chord: ``ctrl+s``."""
    actions: dict[str, Action] = field(default_factory=dict)

    def action(self, name: str) -> Callable[[Action], Action]:
        """Register a pure function ``(world, window_key, *args) -> world`` that ``Do("KEY.NAME", …)`` runs."""

        def register(run: Action) -> Action:
            self.actions[f"{self.key}.{name}"] = run
            return run

        return register


APPS: dict[str, DesktopApp] = {}
"""Apps by key, filled by the package ``apps``."""
