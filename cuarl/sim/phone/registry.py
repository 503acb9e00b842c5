"""How apps register: pages by id, and named actions. An app is one module of ``sim/phone/apps`` with an ``APP``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cuarl.sim.device.order import permutation
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Option
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.world import Ui, World

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Screen:
    """The content of a page."""

    title: str
    body: tuple[w.Widget, ...] = ()
    """Widgets from top to bottom; they scroll."""
    actions: tuple[w.IconButton, ...] = ()
    """Icons at the right of the app bar."""
    menu: tuple[Option, ...] = ()
    """Entries of the overflow menu at the very right."""
    top: tuple[w.Widget, ...] = ()
    """Fixed below the app bar (search field, tabs)."""
    bottom: tuple[w.Widget, ...] = ()
    """Fixed above the navigation bar (tabs, message composer)."""
    fab: w.Fab | None = None
    bar: bool = True
    """Whether there is an app bar at all."""
    background: str = "page"
    """``page``, or ``wallpaper:SUBJECT`` for a full-screen picture."""
    footing: bool = False
    """Start scrolled to the end, as conversations do."""
    back: Effect | None = None
    """What the back button does here in place of leaving the page."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a page is built from."""

    world: World
    page: str
    """Page id without its argument."""
    arg: str = ""
    """What follows the colon of a page id: ``settings/app:chrome`` has ``chrome``."""

    @property
    def state(self) -> DeviceState:
        """The device state."""
        return self.world.state

    @property
    def ui(self) -> Ui:
        """The user interface."""
        return self.world.ui

    def get(self, path: str) -> Any:
        """Value at a path."""
        return self.world.get(path)

    def form(self, name: str, default: Any = "") -> Any:
        """What this page remembers under ``name`` (written with ``Put("ui.form.NAME", …)``)."""
        return self.world.ui.form.get(name, default)

    def shuffled(self, items: Sequence[T], name: str = "") -> tuple[T, ...]:
        """``items`` in this device's own order."""
        order = permutation(self.world.look.seed, f"{self.page}/{name}", len(items))
        return tuple(items[i] for i in order)


Builder = Callable[[Context], Screen]
Action = Callable[..., World]


@dataclass(frozen=True)
class AppModule:
    """An app's pages and actions, filled by its decorators."""

    key: str
    home: str
    """Id of the page that it starts with."""
    pages: dict[str, Builder] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)

    def page(self, name: str) -> Callable[[Builder], Builder]:
        """Register the builder of page ``KEY/NAME``."""

        def register(builder: Builder) -> Builder:
            self.pages[f"{self.key}/{name}"] = builder
            return builder

        return register

    def action(self, name: str) -> Callable[[Action], Action]:
        """Register a pure function ``(world, *args) -> world`` that ``Do("KEY.NAME", args)`` runs."""

        def register(run: Action) -> Action:
            self.actions[f"{self.key}.{name}"] = run
            return run

        return register
