"""A moment of a simulated device, ready to be asked about: its picture, and what is known of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cuarl.pretrain import desktop_screens, screens
from cuarl.pretrain.calls import Kind
from cuarl.pretrain.facts import Fact, Screen
from cuarl.pretrain.navigation import ahead, names, way
from cuarl.pretrain.relabel import other_words, rewritten
from cuarl.pretrain.texts import Line, lines_of
from cuarl.sim.device.element import Element
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.render import render
from cuarl.sim.kit.scene import Scene
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import World

SIZES: dict[Kind, tuple[int, int]] = {"phone": (192, 384), "desktop": (480, 320)}
"""Width and height of the screens that the base is taught, pixels."""
RELABELLED = 0.5
"""Share of screens on which most labels say something that no device says."""
Split = Literal["train", "exam"]


@dataclass(frozen=True, slots=True)
class Moment:
    """A screen."""

    picture: np.ndarray
    """(height, width, 3) uint8."""
    screen: Screen


def moment(
    rng: random.Random, kind: Kind, *, split: Split = "train", ways: bool = False, unseen: bool | None = None
) -> Moment:
    """A random one.

    In training no page and no word is shown that is held out; ``unseen`` (by default, in the exam) draws words of those
    alone. ``ways`` dwells on screens from which ways part, and leaves labels as they are.
    """
    novel = split == "exam" if unseen is None else unseen
    relabelled = not ways and rng.random() < RELABELLED
    if kind == "desktop":
        desk = desktop_screens.random_desktop(rng, unseen=novel)
        return _moment(rng, desktop_screens.view(desk), desktop_screens.elements(desk), "desktop", relabelled, novel)
    kinds = screens.CROSSROADS if ways else screens.KINDS
    world = screens.random_world(rng, kinds=kinds, unseen=novel, wander=not ways)
    while split == "train" and screens.held_out(world.ui.page):
        world = screens.random_world(rng, kinds=kinds, unseen=novel, wander=not ways)
    return _moment(rng, view(world), elements(world), "phone", relabelled, novel, world)


def screen_of(world: World) -> Screen:
    """What can be asked about a moment of a phone, its labels as they are."""
    scene = view(world)
    lines = lines_of(scene)
    return _screen(scene, facts_of(elements(world), lines, {}, scene), lines, "phone", world)


def _moment(
    rng: random.Random,
    scene: Scene,
    found: tuple[Element, ...],
    kind: Kind,
    relabelled: bool,
    novel: bool,
    world: World | None = None,
) -> Moment:
    lines, changed = lines_of(scene), dict[str, str]()
    if relabelled:
        changed = other_words(rng, lines, scene, rng.choice((0.5, 0.9, 1.0)), unseen=novel)
        scene = rewritten(scene, changed)
        lines = lines_of(scene)
    facts = facts_of(found, lines, changed, scene)
    picture = np.asarray(render(scene))
    return Moment(picture, _screen(scene, facts, lines, kind, None if relabelled else world))


def _screen(scene: Scene, facts: tuple[Fact, ...], lines: tuple[Line, ...], kind: Kind, world: World | None) -> Screen:
    width, height = scene.size
    focused = any(f.focused for f in facts)
    if world is None:
        return Screen(width, height, facts, lines=lines, kind=kind, focused=focused)
    return Screen(
        width, height, facts, lambda name: way(world, name, facts), names(), ahead(world.ui.page), lines, kind, focused
    )


def facts_of(
    found: tuple[Element, ...], lines: tuple[Line, ...], changed: dict[str, str], scene: Scene
) -> tuple[Fact, ...]:
    """Elements that their label names without doubt; of a row with its own switch, the row."""
    drawn = {line.text for line in lines}
    focused = {item.visible for item in scene.items if getattr(item.widget, "focused", False)}
    shares = {item.visible: _share(item.widget) for item in scene.items if isinstance(item.widget, w.Slider)}
    by_label: dict[str, list[Element]] = {}
    for e in found:
        label = changed.get(e.label, e.label)
        if label and e.enabled:
            by_label.setdefault(label, []).append(e)
    facts = []
    for label, same in by_label.items():
        rows = [e for e in same if e.role != "switch"]
        if len(rows) == 1 or len(same) == 1:
            e = (rows or same)[0]
            value = changed.get(e.value, e.value) if e.role in VALUED else ""
            checked = e.checked if e.role in SWITCHES else None
            focus = e.role == "field" and e.box in focused
            facts.append(Fact(label, e.box, checked, e.role, value if value in drawn else "", focus, shares.get(e.box)))
    return tuple(facts)


def _share(slider: w.Slider) -> float:
    return (slider.value - slider.low) / (slider.high - slider.low)


VALUED = frozenset({"row", "card"})
SWITCHES = frozenset({"row", "switch", "tile", "check"})
"""Roles of which it can be asked whether they are on."""
