"""Random moments of the simulated phone to pre-train on: other states, pages, scroll positions and looks each time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw

from cuarl.pretrain.navigation import ahead
from cuarl.pretrain.skills import Fact
from cuarl.sim.device.element import Element
from cuarl.sim.kit.effects import Launch, Open, Overlay
from cuarl.sim.kit.render import render
from cuarl.sim.phone import launcher
from cuarl.sim.phone.apps import PAGES
from cuarl.sim.phone.device import scroll_by
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.start import with_popup
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES, Profile, World

KINDS = {
    "home": 0.14, "main": 0.16, "switches": 0.3, "settings": 0.22, "app": 0.09, "drawer": 0.04, "quick": 0.03,
    "shade": 0.02,
}  # fmt: skip
"""Share of each kind of screen; ``switches`` are pages of Settings with several, hard to tell apart."""

CROSSROADS = {
    "home": 0.16, "main": 0.22, "junctions": 0.22, "switches": 0.16, "settings": 0.1, "app": 0.03, "drawer": 0.03,
    "quick": 0.02, "shade": 0.01, "popup": 0.05,
}  # fmt: skip
"""The same for the soft part of the run: more of the screens from which ways part, and some with a pop-up in the
way."""


def shuffled(rng: random.Random, node: Any) -> Any:
    """A copy of a state in which every second switch is thrown anew, at any depth; lists stay."""
    changes: dict[str, Any] = {}
    for f in fields(node):
        value = getattr(node, f.name)
        if isinstance(value, bool):
            changes[f.name] = rng.random() < 0.5 if rng.random() < 0.5 else value
        elif is_dataclass(value):
            changes[f.name] = shuffled(rng, value)
    return replace(node, **changes) if changes else node


def random_world(rng: random.Random, profile: Profile = PROFILES["small"], kinds: Mapping[str, float] = KINDS) -> World:
    """A phone somebody uses: any look, any switches, on any page without argument, scrolled anywhere."""
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    look = Look.drawn(rng.randrange(2**31), float(kind == "popup"))
    state = shuffled(rng, replace(DeviceState(), launcher=replace(DeviceState().launcher, pages=())))
    world = World(state, look=look, profile=profile)
    world = world.put("display.dark_theme", look.dark).put("battery.level", look.battery)
    world = world.put("notifications.items", look.notifications).put("network.airplane_mode", rng.random() < 0.1)
    pages = launcher.first_layout(world.state, look.seed, launcher.rows_that_fit(profile.height))
    return _scrolled(rng, _somewhere(rng, world.put("launcher.pages", pages), kind))


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
    return tuple(p for p in pages if sum(f.checked is not None for f in facts_of(elements(apply(start, Open(p))))) >= 3)


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


def facts_of(found: tuple[Element, ...]) -> tuple[Fact, ...]:
    """Elements that their label names without doubt; of a row with its own switch, the row."""
    by_label: dict[str, list[Element]] = {}
    for e in found:
        if e.label and e.enabled:
            by_label.setdefault(e.label, []).append(e)
    facts = []
    for label, same in by_label.items():
        rows = [e for e in same if e.role != "switch"]
        if len(rows) == 1 or len(same) == 1:
            e = (rows or same)[0]
            facts.append(Fact(label, e.box, e.checked if e.role in SWITCHES else None))
    return tuple(facts)


SWITCHES = frozenset({"row", "switch", "tile", "check"})
"""Roles of which it can be asked whether they are on."""


def picture(world: World) -> Image.Image:
    """The screen, RGB."""
    return render(view(world))


def visible(world: World) -> tuple[Element, ...]:
    """Its elements."""
    return elements(world)


def add_telltales(image: Image.Image, facts: tuple[Fact, ...]) -> Image.Image:
    """A mark in colours of its own on every element: what is named can be told apart before letters can be read."""
    image = image.copy()
    draw = ImageDraw.Draw(image)
    for fact in facts:
        x0, y0, x1, y1 = fact.box
        rng = random.Random(f"telltale/{fact.label}")
        side = min(24, y1 - y0 - 2, x1 - x0 - 2)
        x, y = x0 + 2, (y0 + y1 - side) // 2
        for k in range(4):
            colour = tuple(rng.choice((0, 85, 170, 255)) for _ in range(3))
            cx, cy = x + (k % 2) * side // 2, y + (k // 2) * side // 2
            draw.rectangle((cx, cy, cx + side // 2, cy + side // 2), fill=colour)
    return image
