"""Random moments of the simulated phone to pre-train on: other states, pages, scroll positions and looks each time."""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from cuarl.pretrain import words as t
from cuarl.pretrain.contents import notifications, on_phone
from cuarl.pretrain.navigation import ahead
from cuarl.pretrain.shuffling import shuffled
from cuarl.sim.kit.effects import Launch, Open, Overlay, dialog_of
from cuarl.sim.phone import launcher, system
from cuarl.sim.phone.apps import PAGES
from cuarl.sim.phone.device import Rejected, scroll_by, step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.start import with_popup
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES, Profile, World
from cuarl.types import Click, LongPress, TypeText

KINDS = {
    "home": 0.12, "main": 0.08, "switches": 0.13, "settings": 0.16, "app": 0.34, "drawer": 0.05, "quick": 0.03,
    "shade": 0.03, "popup": 0.02, "recents": 0.02, "power": 0.02,
}  # fmt: skip
"""Share of each kind of screen to begin with; ``switches`` are pages of Settings with several, hard to tell apart."""

CROSSROADS = {
    "home": 0.18, "main": 0.22, "junctions": 0.2, "switches": 0.16, "settings": 0.08, "app": 0.08, "drawer": 0.03,
    "quick": 0.01, "shade": 0.01, "popup": 0.03,
}  # fmt: skip
"""The same for the soft part of the run: more of the screens from which ways part."""

WANDERED = (0.5, 0.25, 0.15, 0.1)
"""How often so many taps at random follow, which open dialogs, menus, keyboards, folders and forms."""


def held_out(page: str) -> bool:
    """Whether a page is kept for the exam: one in twenty-four, by its name alone, but none that an app starts with."""
    return not page.endswith(("/main", "home", "/list")) and zlib.crc32(page.partition(":")[0].encode()) % 24 == 0


def random_world(
    rng: random.Random,
    profile: Profile = PROFILES["small"],
    kinds: Mapping[str, float] = KINDS,
    *,
    unseen: bool = False,
    wander: bool = True,
) -> World:
    """A phone somebody uses: any look, any switches, any data, on any page, scrolled anywhere, after a few taps.

    ``unseen`` draws the words of its data from those held out.
    """
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    look = Look.drawn(rng.randrange(2**31), float(kind == "popup"))
    fresh = on_phone(rng, DeviceState(), unseen=unseen) if rng.random() < 0.8 else DeviceState()
    state = shuffled(rng, replace(fresh, launcher=replace(fresh.launcher, pages=())))
    world = World(state, look=look, profile=profile)
    world = world.put("display.dark_theme", look.dark).put("battery.level", look.battery)
    posted = notifications(rng, unseen=unseen) if rng.random() < 0.7 else look.notifications
    world = world.put("notifications.items", posted).put("network.airplane_mode", rng.random() < 0.1)
    pages = launcher.first_layout(world.state, look.seed, launcher.rows_that_fit(profile.height))
    world = _somewhere(rng, world.put("launcher.pages", pages), kind)
    if wander:
        for _ in range(rng.choices(range(len(WANDERED)), WANDERED)[0]):
            world = tapped(rng, _scrolled(rng, world), unseen=unseen)
    return _scrolled(rng, world)


def tapped(rng: random.Random, world: World, *, unseen: bool = False) -> World:
    """The world after a random tap, long press, or text typed into the focused field; as it is if nothing happens."""
    try:
        if world.ui.focus and rng.random() < 0.6:
            return step(world, TypeText(text=t.anything(rng, unseen=unseen)))
        found = [e for e in elements(world) if e.label not in _LEAVING and (e.role != "key" or rng.random() < 0.03)]
        if not found:
            return world
        telling = [e for e in found if e.role == "field" or dialog_of(e.effect) is not None]
        x, y = rng.choice(telling if telling and rng.random() < 0.6 else found).centre
        return step(world, LongPress(x=x, y=y) if rng.random() < 0.12 else Click(x=x, y=y))
    except Rejected:
        return world


_LEAVING = frozenset({"Back", "Home", "Recents", "Navigate up"})


def _somewhere(rng: random.Random, world: World, kind: str) -> World:
    match kind:
        case "home":
            return world.with_ui(home_page=rng.randrange(len(world.state.launcher.pages)))
        case "popup":
            return with_popup(world)
        case "main":
            return apply(world, Launch("settings"))
        case "settings" | "switches" | "junctions":
            pages = _pages_of(kind)
            return apply(apply(world, Launch("settings")), Open(rng.choice(pages)))
        case "recents":
            for app in rng.sample(sorted(a.key for a in world.state.apps if a.icon), rng.randint(0, 3)):
                world = apply(world, Launch(app))
            return apply(world, Overlay("recents"))
        case "power":
            return system.power(world)
        case "app":
            page = rng.choice(_plain_pages(False) or ("weather/main",))
            return apply(apply(world, Launch(page.partition("/")[0])), Open(page))
    return apply(world, Overlay(kind))


@lru_cache(maxsize=2)
def _plain_pages(settings: bool) -> tuple[str, ...]:
    """Ids of all pages that can be shown, of Settings or of the other apps; those about an app, of several apps."""
    return tuple(p for name in sorted(PAGES) if name.startswith("settings/") == settings for p in _variants(name))


@lru_cache(maxsize=3)
def _pages_of(kind: str) -> tuple[str, ...]:
    """Pages of Settings: all, those with at least three switches, or those below the main one that lead further on."""
    pages = _plain_pages(True)
    if kind == "junctions":
        return tuple(p for p in pages if p != "settings/main" and ahead(p))
    if kind == "settings":
        return pages
    start = apply(World(profile=Profile(192, 6000)), Launch("settings"))
    return tuple(p for p in pages if sum(e.checked is not None for e in elements(apply(start, Open(p)))) >= 3)


def _variants(name: str) -> list[str]:
    """A page id with the arguments that it can have."""
    start = World(profile=PROFILES["small"])
    fitting = []
    for page in (name, *(f"{name}:{arg}" for arg in ("chrome", "mail", "camera", "0", "1"))):
        try:
            view(apply(apply(start, Launch(page.partition("/")[0])), Open(page)))
        except (KeyError, IndexError, ValueError, AttributeError, AssertionError, TypeError):
            continue
        fitting.append(page)
        if ":" not in page:
            break
    return fitting


def _scrolled(rng: random.Random, world: World) -> World:
    for region in view(world).regions:
        if region.reach > 0 and rng.random() < 0.5:
            world = scroll_by(world, region, rng.choice((rng.uniform(0, region.reach), region.reach)))
    return world
