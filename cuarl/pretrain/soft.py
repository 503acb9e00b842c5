"""The soft part of the training: requests in no known wording, answered in varied ways.

So the base explores: reinforcement learning finds something to choose from, and has the meaning of words left to teach.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from cuarl.pretrain import calls
from cuarl.pretrain.facts import Screen
from cuarl.pretrain.skills import STATES, Round, move, rounds, step_towards

NOISE = (
    "turn", "Turn", "switch", "Switch", "set", "Set", "open", "Open", "enable", "Enable", "disable", "Disable", "on",
    "on",
    "off", "off", "the", "to", "please", "now", "in", "settings", "for", "make", "Make", "show", "Show", "Use", "use",
    "with",
    "page", "go", "Go", "app", "and", "it", "my", "phone", "change", "Change", "this", "screen", "up", "allow", "Allow",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Softness:
    """How requests of unknown wording are answered (shares that sum to at most one)."""

    follow: float = 0.96
    """The step that the name in the request suggests."""
    finish: float = 0.01
    """Ending the episode with success."""
    held: float | None = 0.3
    """The same where the request says on or off of a switch, and it is so; None: there is no such request."""
    elsewhere: float = 0.02
    """Any other element."""


def soft_round(rng: random.Random, screen: Screen, softness: Softness) -> Round | None:
    """A request that names a thing among words in no order; None where nothing is known to do about it."""
    words = [rng.choice(NOISE) for _ in range(rng.randint(1, 4))]
    state = rng.choice(STATES)
    switches = [f for f in screen.facts if f.checked is not None]
    if switches and rng.random() < 0.4:
        fact = rng.choice(switches)
        name, stated = fact.label, True
        share = softness.finish if fact.checked != (state == "on") else softness.held
        if share is None:
            return None
    else:
        on_screen = screen.facts and (not screen.names or rng.random() < 0.25)
        if not on_screen and not screen.names:
            return None
        name = rng.choice(screen.facts).label if on_screen else screen.sought(rng)
        share = softness.finish
        stated = rng.random() < 0.6 and not any(f.label == name for f in switches)
    if stated or any(f.label == name for f in switches):
        words = [w for w in words if w not in STATES]
    parts = ([name, state] if rng.random() < 0.3 else [state, name]) if stated else [name]
    reply = calls.finish(screen.kind) if rng.random() < share else _step(rng, screen, name, softness)
    return Round(_jumble(rng, parts, words), reply, "soft") if reply else None


def soft_rounds(rng: random.Random, screen: Screen, count: int, softness: Softness, share: float) -> list[Round]:
    """``count`` rounds in random order, about ``share`` of them soft, the others plain skills."""
    out: list[Round] = []
    for _ in range(2 * count):
        if len(out) < round(count * share):
            made = soft_round(rng, screen, softness)
            out += [made] if made else []
    out += rounds(rng, screen, count - len(out))
    rng.shuffle(out)
    return out


def _step(rng: random.Random, screen: Screen, name: str, softness: Softness) -> str | None:
    chance = rng.random()
    if chance < softness.follow:
        here = next((f for f in screen.facts if f.label == name), None)
        if here:
            return calls.click(rng, screen.kind, here.box, screen.size)
        step = step_towards(rng, screen, name)
        return step.call if step else None
    if chance < softness.follow + softness.elsewhere and screen.facts:
        return calls.click(rng, screen.kind, rng.choice(screen.facts).box, screen.size)
    made = move(rng, screen)
    return made.call if made else None


def _jumble(rng: random.Random, parts: list[str], words: list[str]) -> str:
    """``parts``, which stay together, somewhere among ``words``."""
    where = rng.randint(0, len(words))
    return " ".join([*words[:where], *parts, *words[where:]]) + rng.choice(("", ".", ".", "."))
