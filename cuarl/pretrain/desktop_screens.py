"""Random moments of the simulated desktop to pre-train on."""

from __future__ import annotations

import random

from cuarl.pretrain import words as t
from cuarl.pretrain.contents import on_desktop
from cuarl.pretrain.shuffling import shuffled
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.device import Rejected, step
from cuarl.sim.desktop.elements import elements
from cuarl.sim.desktop.look import NOTICES, DesktopLook
from cuarl.sim.desktop.registry import APPS
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.desktop.view import view
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.types import Click, TypeText

__all__ = ["elements", "random_desktop", "view"]

_CLOSING = frozenset({"Close", "Minimise", "Power off", "Log out"})


def random_desktop(rng: random.Random, *, unseen: bool = False) -> DesktopWorld:
    """A desktop somebody uses: any look, settings and files, up to three windows, after a few clicks."""
    look = DesktopLook.drawn(rng.randrange(2**31), 0.15)
    state = shuffled(rng, on_desktop(rng, DesktopState(), unseen=unseen))
    world = DesktopWorld(state, look=look)
    world = world.put("appearance.dark_style", look.dark).put("power.battery", look.battery)
    for _ in range(rng.choices((0, 1, 2, 3), (0.15, 0.5, 0.25, 0.1))[0]):
        world = windows.launch(world, rng.choice(sorted(APPS)))
    for _ in range(rng.choice((0, 1, 2, 3, 4))):
        world = clicked(rng, world, unseen=unseen)
    return world.with_ui(notice=NOTICES[look.notice][0]) if look.notice >= 0 else world


def clicked(rng: random.Random, world: DesktopWorld, *, unseen: bool = False) -> DesktopWorld:
    """The world after a random click, or after some text where that goes somewhere."""
    window = world.focused
    try:
        if window is not None and window.focus and rng.random() < 0.5:
            return step(world, TypeText(text=t.anything(rng, unseen=unseen)))
        found = [e for e in elements(world) if e.label not in _CLOSING]
        if not found:
            return world
        x, y = rng.choice(found).centre
        how = rng.random()
        if how < 0.15:
            return step(world, Click(x=x, y=y, button="right"))
        return step(world, Click(x=x, y=y, count=2 if how < 0.35 else 1))
    except Rejected:
        return world
