"""One step of finding one's way on the simulated phone: which visible thing leads towards a named one.

The pages of all apps form a tree: each lies below the page that opens it first, as a walk through a fresh phone finds
them. From the page one is on, the way leads down the tree where the target lies below, and else back or home; so it can
never run in a circle, and costs a look-up instead of a search.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cuarl.pretrain.contents import on_phone
from cuarl.pretrain.facts import Fact
from cuarl.sim.kit.effects import Launch, Open, Replace, dialog_of, flat
from cuarl.sim.kit.scene import Spot
from cuarl.sim.kit.widgets import Control
from cuarl.sim.phone import launcher
from cuarl.sim.phone.apps import PAGES, home_of
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.view import body_spots, view
from cuarl.sim.phone.world import Profile, World

_LONG = Profile(192, 6000)
"""A screen on which nothing has to be scrolled."""
_BARS = frozenset({"Back", "Home", "Recents", "Navigate up"})
MENU = "More options"
PURPOSES: dict[str, tuple[str, ...]] = {
    "settings": ("preferences of the phone", "options of the device"),
    "phone": ("calls", "dialling a number"),
    "messages": ("text messages", "chats"),
    "contacts": ("people's numbers", "the address book"),
    "chrome": ("web pages", "the internet"),
    "camera": ("taking pictures", "filming"),
    "photos": ("pictures", "albums"),
    "clock": ("alarms", "a countdown", "the time elsewhere"),
    "calculator": ("sums", "arithmetic"),
    "calendar": ("appointments", "dates"),
    "files": ("documents", "folders"),
    "notes": ("writing things down", "memos"),
    "store": ("getting apps", "updates of apps"),
    "mail": ("e-mail", "letters"),
    "music": ("songs", "listening"),
    "maps": ("places nearby", "directions"),
    "weather": ("rain or sun", "the forecast"),
}
"""What apps are for, in words of ours, by key."""


class Place(NamedTuple):
    """Where a named thing is: the page that shows it (empty for an app), and the app it belongs to."""

    page: str
    app: str
    menu: bool = False
    """Whether it is in the page's menu."""


class Tree(NamedTuple):
    """The pages of all apps. A page's path leads from its app's first page to it."""

    paths: dict[str, tuple[str, ...]]
    labels: dict[str, dict[str, str]]
    """By page: what opens another page, by that page."""
    places: dict[str, Place]


@lru_cache(maxsize=1)
def tree() -> Tree:
    """Found by walking through every app of a fresh phone once; the nearest to its app's first page counts."""
    state = DeviceState()
    other = _walked(on_phone(random.Random(0), state)).places
    found = _walked(state)
    apps = {a.name: Place("", a.key) for a in state.apps if a.icon}
    # what another phone has not is somebody's data
    return found._replace(places={n: p for n, p in found.places.items() if n in other} | apps)


def _walked(state: DeviceState) -> Tree:
    apps = [a for a in state.apps if a.icon]
    paths: dict[str, tuple[str, ...]] = {}
    labels: dict[str, dict[str, str]] = {}
    places: dict[str, Place] = {}
    for app in sorted(apps, key=lambda a: a.key != "settings"):
        first = home_of(app.key)
        start = apply(World(state, profile=_LONG), Launch(app.key))
        paths.setdefault(first, (first,))
        queue = [first]
        while queue:
            here = queue.pop(0)
            labels[here] = {}
            for label, page, menu in _ways(start, here):
                places.setdefault(label, Place(here, app.key, menu))
                if page.partition("/")[0] != app.key or page not in PAGES:
                    continue
                if not menu:
                    labels[here].setdefault(page, label)
                if page not in paths and not menu:
                    paths[page] = (*paths[here], page)
                    queue.append(page)
    return Tree(paths, labels, places)


def _ways(start: World, page: str) -> list[tuple[str, str, bool]]:
    """Named things of a page: label, the page that it opens, whether it is in the menu. Only what every phone has."""
    found: list[tuple[str, str, bool]] = []
    for e in elements(apply(start, Open(page))):
        box = dialog_of(e.effect) if e.label == MENU else None
        for option in box.options if box else ():
            found.append((option.label, "", True))
        opened = next((x.page for x in flat(e.effect) if isinstance(x, Open | Replace)), "")
        if e.label and e.label not in _BARS and e.label != MENU and e.role != "key" and (opened in PAGES or e.writes):
            found.append((e.label, opened, False))
    return found


def targets() -> dict[str, Place]:
    """What one can look for, by name: what pages show and menus hold, and apps."""
    return tree().places


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Everything that one can look for, sorted."""
    return tuple(sorted(targets()))


@lru_cache(maxsize=1)
def purposes() -> dict[str, str]:
    """Names of apps by what they are for."""
    apps = {a.key: a.name for a in DeviceState().apps}
    return {purpose: apps[key] for key, found in PURPOSES.items() for purpose in found}


@lru_cache(maxsize=512)
def ahead(page: str) -> tuple[str, ...]:
    """Names of what lies on the pages that ``page`` leads to, at any depth, sorted."""
    below = {p for p, path in tree().paths.items() if page in path[:-1]}
    return tuple(sorted(name for name, place in targets().items() if place.page in below))


def way(world: World, name: str, facts: Sequence[Fact]) -> Fact | str | None:
    """First step from ``world`` towards ``name``: what is so named if it is here, an element, or a move.

    Moves are ``down``, ``up``, ``next``, ``previous``, ``drawer``, ``back`` and ``home``. None if there is no way. What
    Settings has is looked for in Settings alone, though other apps may change it too.
    """
    here = _named(facts, name)
    if here or world.ui.dialog:
        return here or _closing(world, facts)
    place, ui = targets()[name], world.ui
    if not place.page:
        return _to_app(world, place.app, facts)
    if ui.overlay or ui.app != place.app:
        return _to_app(world, place.app, facts)
    if ui.focus:
        return "back"
    if ui.page == place.page:
        return _named(facts, MENU) if place.menu else _scrolling(world, name)
    known = tree().labels.get(ui.page, {})
    onward = next((known[p] for p in reversed(tree().paths[place.page]) if p in known and p != ui.page), None)
    if ui.page in tree().paths[place.page][:-1] or onward:
        return (_named(facts, onward) or _scrolling(world, onward)) if onward else None
    return "back"


def _named(facts: Sequence[Fact], label: str | None) -> Fact | None:
    return next((f for f in facts if f.label == label), None)


def _closing(world: World, facts: Sequence[Fact]) -> Fact | str | None:
    """Out of a dialog: the button of a pop-up, or back."""
    assert world.ui.dialog is not None
    if world.ui.dialog.kind != "popup":
        return "back"
    return next((f for f in facts if f.label in {b.label for b in world.ui.dialog.buttons}), None)


def _to_app(world: World, app: str, facts: Sequence[Fact]) -> Fact | str | None:
    """Towards an app's icon."""
    ui = world.ui
    found = world.app(app)
    icon = next((f for f in facts if f.role == "icon" and found and f.label == found.name), None)
    if icon and (not ui.app or ui.overlay):
        return icon
    if ui.focus:
        return "back"
    if ui.overlay == "drawer" and found:
        return _direction(world, launcher.drawer(world)[1], "drawer:", found.name)
    if ui.overlay or ui.app:
        return "home" if ui.app and not ui.overlay else "back"
    page = next((i for i, p in enumerate(world.state.launcher.pages) if app in p.apps), None)
    if page is None or page == ui.home_page:
        return "drawer"
    return "next" if page > ui.home_page else "previous"


def _scrolling(world: World, label: str) -> str | None:
    """Which way to scroll the shown page so that a named thing of it comes into sight; None if it is not on it."""
    return _direction(world, body_spots(world), f"page:{world.ui.page}", label)


def _direction(world: World, spots: Sequence[Spot], region: str, label: str) -> str | None:
    spot = next((s for s in spots if isinstance(s.widget, Control) and s.widget.label == label), None)
    shown = next((r for r in view(world).regions if r.id == region), None)
    if spot is None or shown is None:
        return None
    middle = (spot.y + spot.height / 2 - shown.offset) * world.profile.scale
    if middle > (shown.box[1] + shown.box[3]) / 2:
        return "down" if shown.offset < shown.reach else None
    return "up" if shown.offset > 0 else None
