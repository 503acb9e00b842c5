"""Wrong pages to begin on: what a user's finger may have led to before anybody was asked for anything."""

from __future__ import annotations

import random

from cuarl.sim.device.rejected import Rejected
from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.report import state_mapping
from cuarl.sim.phone.state import DERIVED, VOLATILE
from cuarl.sim.phone.world import World
from cuarl.tasks.paths import changes, covers, leaves
from cuarl.types import Click

TRIES = 8
"""Controls that are tried for one tap."""


def astray(world: World, taps: int, seed: int) -> World:
    """The world after up to ``taps`` taps drawn by ``seed``, none of which changes what the device remembers."""
    rng = random.Random(f"astray/{seed}")
    for _ in range(rng.randint(0, taps)):
        for _ in range(TRIES):
            after = _tapped(world, rng)
            if after is not None:
                world = after
                break
    return world


def _tapped(world: World, rng: random.Random) -> World | None:
    controls = elements(world)
    if not controls:
        return None
    x, y = rng.choice(controls).centre
    try:
        after = step(world, Click(x=x, y=y))
    except Rejected:
        return None
    return None if after is world or _remembers(world, after) else after


def _remembers(world: World, after: World) -> bool:
    spared = (*VOLATILE, *DERIVED)
    found = changes(state_mapping(world), state_mapping(after))
    return any(not any(covers(glob, leaf) for glob in spared) for change in found for leaf in leaves(change))
