"""What the base is taught about finding its way: every taught step brings it nearer."""

from __future__ import annotations

import random

import pytest

from cuarl.agent import formats
from cuarl.agent.formats.base import Size
from cuarl.pretrain import skills
from cuarl.pretrain.facts import Fact
from cuarl.pretrain.moments import screen_of
from cuarl.pretrain.navigation import ahead, names, purposes, targets
from cuarl.pretrain.screens import random_world
from cuarl.sim.phone.device import step
from cuarl.sim.phone.look import POPUPS
from cuarl.sim.phone.world import World

PARSER = formats.get("qwen3-vl")
LONGEST = 12
"""More steps than any way has: out of a form, home, the drawer, some scrolls, three pages."""


def _walk(rng: random.Random, world: World, name: str) -> list[World] | None:
    """The moments on the taught way until ``name`` is on the screen; None where the teacher knows no further."""
    seen = [world]
    while len(seen) <= LONGEST:
        screen = screen_of(seen[-1])
        if any(f.label == name for f in screen.facts):
            return seen
        taught = skills.step_towards(rng, screen, name)
        if taught is None:
            return None
        action = PARSER.parse(taught.call, Size(screen.width, screen.height)).action
        assert action is not None
        seen.append(step(seen[-1], action))
    raise AssertionError(f"{name}: not reached in {LONGEST} steps from {world.ui.page} {world.ui.overlay}")


@pytest.mark.parametrize("seed", range(4))
def test_taught_steps_lead_to_what_is_looked_for(seed: int) -> None:
    rng = random.Random(f"ways/{seed}")
    wanted = rng.sample(names(), 40)
    walks = [_walk(rng, random_world(rng), name) for name in wanted]
    # what a fresh phone shows may be missing on others: a record that is gone, a button that only shows now and then
    assert sum(w is None for w in walks) <= 6


@pytest.mark.parametrize("name", ["Flash alerts", "Show suggestions", "24-hour format"])
def test_what_another_app_changes_too_is_looked_for_in_settings(name: str) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        start = random_world(rng, kinds={"home": 1.0}, wander=False)
        walk = _walk(rng, start, name)
        assert walk is not None
        assert {w.ui.app for w in walk if w.ui.app} == {"settings"}
        assert walk[-1].ui.page == targets()[name].page


def test_every_purpose_names_an_app() -> None:
    assert set(purposes().values()) <= set(names())
    assert purposes()["alarms"] == "Clock"


def test_what_is_ahead_lies_below() -> None:
    """Of the names ahead on a page, each has a way that goes forward: an element of the page, or scrolling to it."""
    assert "Show passwords" in ahead("settings/security")
    assert "Wi-Fi" not in ahead("settings/security")
    assert ahead("settings/hotspot") == ()
    rng = random.Random(0)
    for _ in range(12):
        screen = screen_of(random_world(rng, kinds={"junctions": 1.0}, wander=False))
        for name in screen.ahead:
            found = screen.way(name)
            forward = isinstance(found, Fact) and found.label not in ("Navigate up", "Back")
            assert forward or found in ("up", "down")


def test_a_popup_is_answered_first() -> None:
    rng = random.Random(1)
    screen = screen_of(random_world(rng, kinds={"popup": 1.0}, wander=False))
    found = screen.way("Show passwords")
    assert isinstance(found, Fact)
    assert found.label in {button for _, _, button in POPUPS}
