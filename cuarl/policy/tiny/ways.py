"""One step of finding one's way on the simulated phone: which visible thing leads towards a named one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import lru_cache

from cuarl.env.sim.apps import PAGES
from cuarl.env.sim.elements import Element, elements
from cuarl.env.sim.kit.effects import Launch, Open
from cuarl.env.sim.reduce import apply
from cuarl.env.sim.state import DeviceState
from cuarl.env.sim.view import view
from cuarl.env.sim.world import Profile, World
from cuarl.policy.tiny.skills import Fact

_LONG = Profile(192, 6000)
"""A screen on which nothing has to be scrolled."""
_BARS = frozenset({"Back", "Home", "Recents", "Navigate up", "More options"})


@dataclass(frozen=True, slots=True)
class Map:
    """What Settings and the launcher hold: where each name is found, and how pages hang together."""

    page_of: dict[str, str]
    """Page of Settings that a label is on (the one nearest to the main page)."""
    parent: dict[str, tuple[str, str]]
    """Page -> (page above it, label of the row that opens it)."""
    apps: frozenset[str]
    """Names of apps."""


@lru_cache(maxsize=1)
def phone_map() -> Map:
    """Found once by walking through Settings, breadth first."""
    start = apply(World(DeviceState(), profile=_LONG), Launch("settings"))
    page_of: dict[str, str] = {}
    parent: dict[str, tuple[str, str]] = {}
    queue, seen = ["settings/main"], {"settings/main"}
    while queue:
        page = queue.pop(0)
        for e in elements(apply(start, Open(page))):
            if e.label in _BARS or not e.label:
                continue
            page_of.setdefault(e.label, page)
            plain = e.opens.startswith("settings/") and ":" not in e.opens
            if plain and e.opens not in seen and e.opens in PAGES:
                seen.add(e.opens)
                parent[e.opens] = (page, e.label)
                queue.append(e.opens)
    apps = frozenset(a.name for a in DeviceState().apps if a.icon)
    return Map(page_of, parent, apps)


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Everything that one can look for: settings, pages, apps."""
    known = phone_map()
    return tuple(sorted(set(known.page_of) | known.apps))


def way(world: World, name: str, facts: tuple[Fact, ...]) -> Fact | str | None:
    """First step from ``world`` towards ``name``: an element, or ``down``, ``up``, ``next``, ``previous``, ``back``, ``home``."""
    here = {f.label: f for f in facts}
    if name in here:
        return here[name]
    if world.ui.overlay or world.ui.dialog:
        return "back"
    known = phone_map()
    in_settings = name in known.page_of
    if not world.ui.app:
        return _from_home(world, "Settings" if in_settings else name, here)
    if not in_settings or world.ui.app != "settings":
        return "home"
    chain = _chain(known, known.page_of[name])
    page = world.ui.page
    if page == known.page_of[name]:
        return _on_page(world, name, here)
    for above, below in itertools.pairwise(chain):
        if above == page:
            return _on_page(world, known.parent[below][1], here)
    return "back"


def _chain(known: Map, page: str) -> list[str]:
    chain = [page]
    while chain[0] in known.parent:
        chain.insert(0, known.parent[chain[0]][0])
    return chain


def _from_home(world: World, app: str, here: dict[str, Fact]) -> Fact | str | None:
    if app in here:
        return here[app]
    for i, page in enumerate(world.state.launcher.pages):
        if any((a := world.app(key)) and a.name == app for key in page.apps):
            return "next" if i > world.ui.home_page else "previous"
    return None


def _on_page(world: World, label: str, here: dict[str, Fact]) -> Fact | str | None:
    if label in here:
        return here[label]
    whole: dict[str, Element] = {e.label: e for e in elements(_unrolled(world))}
    regions = view(world).regions
    if label not in whole or not regions:
        return None
    region = regions[0]
    middle = (region.box[1] + region.box[3]) / 2 / world.profile.scale
    y = (whole[label].box[1] + whole[label].box[3]) / 2
    return "down" if y - region.offset > middle else "up"


def _unrolled(world: World) -> World:
    """The same page on a screen long enough to show all of it."""
    flat = world.with_ui(scroll=world.ui.scroll.drop("page:"))
    return replace(flat, profile=_LONG)
