"""One thing that a goal asks for, and the table of all kinds of such things."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuarl.sim.phone.generator.catalogue import Catalogue, Page, Setting
from cuarl.sim.phone.generator.device import Device
from cuarl.sim.phone.generator.draw import Draw
from cuarl.tasks.task import Category, Check

OPEN_APP = 2
"""Turns from the home screen to the first page of an app: a swipe or scroll, and a tap."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing to do or to find out."""

    thing: str
    """What it is about, by which objects are held out."""
    words: Mapping[str, str]
    """What the wordings of its kind name."""
    checks: tuple[Check, ...]
    steps: int
    """Turns that the oracle takes from the first page of the app."""
    touches: tuple[str, ...]
    """State paths that it needs for itself, everything below them included."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    """Kinds of the device's content that it needs; see ``device.PATHS``."""
    plan: tuple[Mapping[str, Any], ...] = ()
    allow: tuple[str, ...] = ()
    app: str = ""
    """Key of the app that it is done in, where its kind does not say."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a part may be drawn from."""

    draw: Draw
    device: Device
    catalogue: Catalogue
    settings: tuple[Setting, ...]
    pages: tuple[Page, ...]
    apps: tuple[str, ...]
    """Keys of apps that may be opened, removed or looked at."""
    fits: Callable[[str], bool]
    """Whether a thing may be asked about."""

    def chosen(self, things: tuple[str, ...]) -> str | None:
        """One of the things that may be asked about, if there is one."""
        fitting = [thing for thing in things if self.fits(thing)]
        return self.draw.choose(fitting) if fitting else None


Make = Callable[[Scope], Part | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of goal."""

    name: str
    app: str
    category: Category
    make: Make
    last: bool
    """Whether it says where to end or what to answer, of which a goal has one."""
    weight: float
    """How often it is drawn, against 1 for most kinds."""


KINDS: dict[str, Kind] = {}


def kind(name: str, app: str, category: Category, *, last: bool = False, weight: float = 1) -> Callable[[Make], Make]:
    """Register the function that draws a kind of part."""

    def register(make: Make) -> Make:
        KINDS[name] = Kind(name, app, category, make, last, weight)
        return make

    return register


def equals(path: str, value: Any) -> Check:
    """The check that a path has a value."""
    return Check(path=path, value=value)


def answer(text: Any, *, exactly: bool = False) -> Check:
    """The check on what is told: a text that is in it, or with ``exactly`` the one number in it."""
    return Check(path="answer", op="equals" if exactly else "icontains", value=text)
