"""One step of finding one's way on the simulated phone: which visible thing leads towards a named one."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cuarl.pretrain.skills import Fact
from cuarl.sim.device.element import Element
from cuarl.sim.kit.effects import Launch, Open
from cuarl.sim.kit.widgets import Control
from cuarl.sim.phone.apps import PAGES
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.route import leads_to, scroll_until
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.world import Profile, World
from cuarl.types import Button, Scroll, Swipe

_LONG = Profile(192, 6000)
"""A screen on which nothing has to be scrolled."""
_BARS = frozenset({"Back", "Home", "Recents", "Navigate up", "More options"})


class Place(NamedTuple):
    """Where a named thing is: the page that shows it, and what it opens or changes (both as in ``leads_to``)."""

    page: str
    thing: str


@lru_cache(maxsize=1)
def targets() -> dict[str, Place]:
    """What one can look for, by name: settings and pages of Settings, and apps; found by walking through Settings once.

    A name that occurs on several pages means the one nearest to the main page.
    """
    start = apply(World(DeviceState(), profile=_LONG), Launch("settings"))
    found: dict[str, Place] = {}
    queue, seen = ["settings/main"], {"settings/main"}
    while queue:
        here = queue.pop(0)
        for e in elements(apply(start, Open(here))):
            page = e.opens if e.opens.startswith("settings/") and e.opens in PAGES else ""
            if e.label and e.label not in _BARS and (page or e.writes):
                found.setdefault(e.label, Place(here, page or e.writes))
            if page and page not in seen:
                seen.add(page)
                queue.append(page)
    return found | {a.name: Place("", f"app/{a.key}") for a in DeviceState().apps if a.icon}


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """Everything that one can look for, sorted."""
    return tuple(sorted(targets()))


@lru_cache(maxsize=256)
def ahead(page: str) -> tuple[str, ...]:
    """Names of what lies on the pages of Settings that ``page`` leads to, at any depth, sorted."""
    below: set[str] = set()
    queue = [page]
    while queue:
        here = queue.pop()
        opened = {p.thing for p in targets().values() if p.page == here and p.thing in PAGES} - below - {page}
        below |= opened
        queue += sorted(opened)
    return tuple(sorted(name for name, place in targets().items() if place.page in below))


def way(world: World, name: str, facts: tuple[Fact, ...]) -> Fact | str | None:
    """First step from ``world`` towards ``name``: what is so named if it is here, an element, or a move.

    Moves are ``down``, ``up``, ``next``, ``previous``, ``drawer``, ``back`` and ``home``. None if there is no way. What
    Settings has is looked for in Settings alone, though other apps may change it too: half-way to one place, the
    shortest way would at times lead back to the other. Of choices that set the same thing, the named one is scrolled
    to.
    """
    here = next((f for f in facts if f.label == name), None)
    if here:
        return here
    page, thing = targets()[name]
    there = not page or (world.ui.page == page and not world.ui.overlay and not world.ui.dialog)
    named = scroll_until(world, lambda s: isinstance(s.widget, Control) and s.widget.label == name) if there else None
    match named or leads_to(world, thing if there else page):
        case Element(label="Home", role="button") | Button(name="home"):
            return "home"
        case Element() as e:
            return Fact(e.label, e.box)
        case Button():
            return "back"
        case Scroll(direction=direction):
            return direction
        case Swipe() as s if abs(s.x2 - s.x) > abs(s.y2 - s.y):
            return "next" if s.x2 < s.x else "previous"
        case Swipe() as s if s.y2 < s.y:
            return "drawer"
    return None
