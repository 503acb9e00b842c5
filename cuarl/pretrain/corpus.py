"""Words that become tokens: those of the devices' own labels and of requests. All others are spelled."""

from __future__ import annotations

import random

from cuarl.pretrain import reading, skills, soft
from cuarl.pretrain.desktop_screens import elements as desktop_elements
from cuarl.pretrain.desktop_screens import random_desktop
from cuarl.pretrain.moments import screen_of
from cuarl.pretrain.navigation import names, purposes
from cuarl.pretrain.screens import CROSSROADS, random_world
from cuarl.sim.phone.look import NOTIFICATIONS, POPUPS

COMMON = (
    "about above add after again all already also an and answer any are as at away back be before below both but by "
    "can change check choose clear close copy create delete do does down each edit empty end every exactly find first "
    "from get give go has have here how if in into is it its last leave left less list long look make many mark me "
    "more move much my name named new next no not now of off on one only open or other out page paste phone please "
    "press put read remove rename right save say says screen second see select send set should show so star start "
    "stay stop switch tap tell text than that the then there these they this three to today tomorrow turn two type "
    "under unread until up use using value was what when where whether which while who with without word words write "
    "yes you your"
).split()
"""Words in which people ask for things, written down for this purpose."""


def corpus(seed: int = 0, rounds: int = 3000) -> list[str]:
    """Lines whose words are worth a token, the more often they occur."""
    rng = random.Random(f"corpus/{seed}")
    lines = [*names(), *purposes(), *(" ".join(p) for p in POPUPS), *(f"{n.title} {n.text}" for n in NOTIFICATIONS)] * 2
    lines += [f"{word} {word} {word.capitalize()} {word.capitalize()} {word}" for word in (*COMMON, *soft.NOISE)] * 2
    for _ in range(60):
        lines += [e.label for e in desktop_elements(random_desktop(rng))]
    plain = screen_of(random_world(rng, kinds=CROSSROADS, wander=False))
    asked = [r.request for r in skills.rounds(rng, plain, rounds)]
    return lines + asked + [q.request for made in reading.QUESTIONS for _ in range(20) if (q := made(rng, plain))]
