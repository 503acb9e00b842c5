"""Whether a model reads, taps and types words that it never saw: one table, for any model that the command line takes.

    python -m benchmarks.reading                           the shipped base
    python -m benchmarks.reading --model my-base --device cuda --worlds 60

Notes and Contacts of the simulated phone, as shipped and with other words in their place: names and titles of the
device's own data, two random English words, and two of the words that ``cuarl model build`` holds out. Requests are
"Tap X.", "Read x, y." and "Type X", answers the likeliest. Right is a tap inside the row, and the very text else.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from PIL import Image

from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.agent.prompt import Shown, build_messages
from cuarl.policy.generate import generate
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.spec import ModelSpec
from cuarl.pretrain import words as t
from cuarl.sim.device.element import Element
from cuarl.sim.kit.effects import Launch
from cuarl.sim.kit.render import render
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import World
from cuarl.types import Answer, Click, Finish, Screenshot, TypeText

KINDS: dict[str, Callable[[random.Random], str] | None] = {
    "shipped": None,
    "english": lambda rng: f"{rng.choice(t.PLAIN).capitalize()} {rng.choice(t.PLAIN)}",
    "held out": lambda rng: t.words(rng, 2, 2, unseen=True).capitalize(),
}
TYPED = ("Battery Saver", "Wi-Fi", "Dark theme", "Clock 12", "Do Not Disturb")
_AT_ONCE = 64


class Ask(NamedTuple):
    """A request about a screen, and what its answer has to be."""

    skill: str
    words: str
    screen: Image.Image
    request: str
    wanted: Element | str


def asks(worlds: int, seed: int = 4) -> Iterator[Ask]:
    """Requests of all kinds about ``worlds`` phones for each kind of words."""
    for words, draw in KINDS.items():
        rng = random.Random(f"{seed}/{words}")
        for _ in range(worlds):
            look = Look.drawn(rng.randrange(2**31))
            world = World(look=look).put("display.dark_theme", look.dark)
            if draw is not None:
                world = world.put("notes", tuple(replace(n, title=draw(rng)) for n in world.state.notes))
                world = world.put("contacts", tuple(replace(c, name=draw(rng)) for c in world.state.contacts))
            for app, names in (
                ("notes", {n.title for n in world.state.notes}),
                ("contacts", {c.name for c in world.state.contacts}),
            ):
                shown = apply(world, Launch(app))
                yield from _about(rng, words, render(view(shown)), [e for e in elements(shown) if e.label in names])


def _about(rng: random.Random, words: str, screen: Image.Image, rows: list[Element]) -> Iterator[Ask]:
    for row in rng.sample(rows, min(1, len(rows))):
        x, y = (round(c * 100 / side) * 10 for c, side in zip(row.centre, screen.size, strict=True))
        yield Ask("tap", words, screen, f"Tap {row.label}.", row)
        yield Ask("read", words, screen, f"Read {x}, {y}.", row.label)
    draw = KINDS[words]
    text = rng.choice(TYPED) if draw is None else draw(rng)
    yield Ask("type", words, screen, f"Type {text}", text)


def right(action: Any, wanted: Element | str) -> bool:
    """Whether an action does what was asked."""
    match action:
        case Click(x=x, y=y) if isinstance(wanted, Element):
            x0, y0, x1, y1 = wanted.box
            return x0 <= x < x1 and y0 <= y < y1
        case Answer(text=text) | TypeText(text=text) | Finish(message=text):
            return text == wanted
    return False


def main() -> None:
    """Ask, and print shares and counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--worlds", type=int, default=30, help="phones for each kind of words")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    policy = load_policy(ModelSpec(model=given.model, device=given.device))
    format = formats.get(formats.for_model(given.model), "phone")
    asked = list(asks(given.worlds))
    found: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for start in range(0, len(asked), _AT_ONCE):
        part = asked[start : start + _AT_ONCE]
        jobs = []
        for a in part:
            told = format.told(Size(*a.screen.size))
            prompt = policy.render(
                build_messages(a.request, [Screenshot(a.screen)], [], system=told, shown=Shown(0, 0))
            )
            assert isinstance(prompt, Prompt)
            jobs.append(Job(prompt, SamplingParams(temperature=0, max_tokens=60), 0))
        for a, answer in zip(part, generate(policy, jobs), strict=True):
            action = format.parse(answer.text, Size(*a.screen.size)).action
            found[a.skill, a.words].append(right(action, a.wanted))
    rows = [
        {"skill": skill, "words": words, "asked": len(v), "right": sum(v) / len(v)}
        for (skill, words), v in found.items()
    ]
    if given.json:
        print(json.dumps(rows))
        return
    for row in sorted(rows, key=lambda r: (str(r["words"]), str(r["skill"]))):
        print(f"{row['words']:9} {row['skill']:5} {row['right']:7.1%} of {row['asked']}")


if __name__ == "__main__":
    main()
