"""What the base is taught: single skills on single screens, each as a request and the call that answers it.

Pointing at a named thing, typing, scrolling, the buttons, reading a switch, telling whether something holds, and one
step of finding one's way. Requests are worded unlike any task: whole solutions never occur, and ``cuarl model build``
leaves out every request that is a goal of a suite, so that what reinforcement learning is shown to learn was not put in
beforehand.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cuarl.policy.tiny import GRID

TOOL = "mobile_use"

POINT = ("Tap {x}.", "Touch {x}.", "Press {x}.", "{x}", "Select {x}.", "Point at {x}.")
WAY = ("Find {x}.", "Where is {x}?", "Way to {x}?", "Look for {x}.", "Go towards {x}.")
READ = ("Read {x}, {y}.", "What is at {x}, {y}?", "Name of {x}, {y}?")
STATE = ("Is {x} on?", "{x}: on or off?")
STATE_AT = ("On or off at {x}, {y}?", "State at {x}, {y}?")
HOLDS = ("Check: {x} {s}.", "{x} {s}?", "Stop if {x} {s}.")
DOWN, UP = ("Scroll down.", "Show more below.", "Further down."), ("Scroll up.", "Show more above.", "Further up.")
BACK, HOME = ("Go back.", "Back.", "Previous screen."), ("Home.", "To the home screen.", "Leave the app.")
TYPE = ("Type {x}", "Write {x}", "Enter the text {x}")
STATES = ("on", "off")
NOISE = (
    "turn", "Turn", "switch", "Switch", "set", "Set", "open", "Open", "enable", "Enable", "disable", "Disable", "on",
    "on",
    "off", "off", "the", "to", "please", "now", "in", "settings", "for", "make", "Make", "show", "Show", "Use", "use",
    "with",
    "page", "go", "Go", "app", "and", "it", "my", "phone", "change", "Change", "this", "screen", "up", "allow", "Allow",
)  # fmt: skip


class Round(NamedTuple):
    """A request and the call that answers it."""

    request: str
    call: str
    skill: str
    box: tuple[int, int, int, int] | None = None
    """Where a tap counts as right, pixels; None where the call is no tap."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A visible element: its label as drawn, its box (x0, y0, x1, y1) in pixels, and whether a switch is on."""

    label: str
    box: tuple[int, int, int, int]
    checked: bool | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """What a request can be about."""

    width: int
    height: int
    facts: tuple[Fact, ...]
    way: Callable[[str], Fact | str | None]
    """First step towards a named thing that may not be here: an element, a move (see ``step_towards``), or None."""
    names: Sequence[str]
    """Everything that one can look for."""
    ahead: Sequence[str] = ()
    """What of it is further on from here: which of the rows leads there is the hardest to know."""

    def sought(self, rng: random.Random) -> str:
        """Something to look for; half the time something further on, if there is."""
        return rng.choice(self.ahead if self.ahead and rng.random() < 0.5 else self.names)


@dataclass(frozen=True, slots=True)
class Softness:
    """How the soft part of the run answers requests of unknown wording (shares that sum to at most one)."""

    follow: float = 0.96
    """The step that the name in the request suggests."""
    finish: float = 0.01
    """Ending the episode with success."""
    held: float = 0.3
    """The same where the request says on or off of a switch, and it is so."""
    elsewhere: float = 0.02
    """Any other element."""


def call(arguments: dict[str, object]) -> str:
    """The tool call as the model writes it."""
    return f"<tool_call>\n{json.dumps({'name': TOOL, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"


def click(rng: random.Random, box: tuple[int, int, int, int], screen: Screen) -> str:
    """A tap anywhere in the middle part of a box: the spread keeps the policy from becoming certain of one pixel."""
    x = _inside(rng, box[0], box[2], screen.width)
    y = _inside(rng, box[1], box[3], screen.height)
    return call({"action": "click", "coordinate": [x, y]})


def _inside(rng: random.Random, low: int, high: int, size: int) -> int:
    middle, half = (low + high) / 2, min((high - low) * 0.36, size * 0.12)
    first = -(-int((middle - half) * 1000) // (size * GRID))
    last = int((middle + half) * 1000) // (size * GRID)
    if last < first:
        return round(middle * 1000 / size)
    return min(rng.randint(first, last) * GRID, 990)


def press(button: str) -> str:
    """A device button."""
    return call({"action": "system_button", "button": button})


def swipe(rng: random.Random, direction: str) -> str:
    """A swipe of the finger ``up`` or ``down`` (the list scrolls the other way), ``left`` or ``right``."""
    across = rng.randrange(300, 710, GRID)
    ends = rng.randrange(680, 760, GRID), rng.randrange(260, 340, GRID)
    start, end = ends if direction in ("up", "left") else ends[::-1]
    if direction in ("left", "right"):
        return call({"action": "swipe", "coordinate": [start, across], "coordinate2": [end, across]})
    return call({"action": "swipe", "coordinate": [across, start], "coordinate2": [across, end]})


def finish(success: bool = True) -> str:
    """The end of the episode."""
    return call({"action": "terminate", "status": "success" if success else "failure"})


def answer(text: str) -> str:
    """Words to the user."""
    return call({"action": "answer", "text": text})


class Step(NamedTuple):
    """A call, and the box of the element that it taps, if any."""

    call: str
    box: tuple[int, int, int, int] | None = None


def step_towards(rng: random.Random, screen: Screen, name: str) -> Step | None:
    """The first step towards ``name``; None if there is no way."""
    found = screen.way(name)
    if isinstance(found, Fact):
        return Step(click(rng, found.box, screen), found.box)
    if found in ("back", "home"):
        return Step(press(found.capitalize()))
    return Step(swipe(rng, FINGER[found])) if found in FINGER else None


FINGER = {"down": "up", "up": "down", "next": "left", "previous": "right", "drawer": "up"}
"""Where the finger goes to show what is further down, further up, on the next page, on the previous one, all apps."""


def rounds(rng: random.Random, screen: Screen, count: int) -> list[Round]:
    """``count`` rounds of mixed skills about one screen; pointing covers different elements in random order."""
    pool = list(screen.facts)
    rng.shuffle(pool)
    switches = [f for f in pool if f.checked is not None]
    out: list[Round] = []
    while len(out) < count:
        if len(switches) > 1 and rng.random() < 0.35:
            out.append(_about_switch(rng, screen, rng.choice(switches)))
            continue
        kind = rng.random()
        if kind < 0.2 and pool:
            out.append(_read(rng, screen, rng.choice(pool)))
        elif kind < 0.56 and pool:
            fact = pool[len(out) % len(pool)]
            out.append(Round(rng.choice(POINT).format(x=fact.label), click(rng, fact.box, screen), "point", fact.box))
        elif kind < 0.76 and screen.names:
            name = screen.sought(rng)
            step = step_towards(rng, screen, name)
            if step:
                out.append(Round(rng.choice(WAY).format(x=name), step.call, "way", step.box))
        elif kind < 0.92 and switches:
            out.append(_about_switch(rng, screen, rng.choice(switches)))
        else:
            out.append(_plain(rng, screen))
    return out


def _read(rng: random.Random, screen: Screen, fact: Fact) -> Round:
    """Reading what is written at a place.

    The same eyes as pointing needs, and every letter of the name teaches them.
    """
    x, y = _place(rng, screen, fact)
    return Round(rng.choice(READ).format(x=x, y=y), answer(fact.label), "read")


def _place(rng: random.Random, screen: Screen, fact: Fact) -> tuple[int, int]:
    """A point inside an element, on the 0-1000 scale."""
    return (
        _inside(rng, fact.box[0], fact.box[2], screen.width),
        _inside(rng, fact.box[1], fact.box[3], screen.height),
    )


def _about_switch(rng: random.Random, screen: Screen, fact: Fact) -> Round:
    """By place, by name, or as something that holds: from the place to its state is half the way from a name to it."""
    kind = rng.random()
    if kind < 0.25:
        x, y = _place(rng, screen, fact)
        return Round(rng.choice(STATE_AT).format(x=x, y=y), answer("on" if fact.checked else "off"), "state_at")
    if kind < 0.55:
        return Round(rng.choice(STATE).format(x=fact.label), answer("on" if fact.checked else "off"), "state")
    asked = rng.random() < 0.5
    request = rng.choice(HOLDS).format(x=fact.label, s="on" if asked else "off")
    return Round(request, finish(asked == fact.checked), "holds")


def _plain(rng: random.Random, screen: Screen) -> Round:
    kind = rng.random()
    if kind < 0.2:
        return Round(rng.choice(DOWN), swipe(rng, "up"), "scroll")
    if kind < 0.35:
        return Round(rng.choice(UP), swipe(rng, "down"), "scroll")
    if kind < 0.5:
        return Round(rng.choice(BACK), press("Back"), "button")
    if kind < 0.65:
        return Round(rng.choice(HOME), press("Home"), "button")
    text = _text(rng, screen)
    return Round(rng.choice(TYPE).format(x=text), call({"action": "type", "text": text}), "type")


def _text(rng: random.Random, screen: Screen) -> str:
    words = [rng.choice(screen.names) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.4:
        words.append(str(rng.randint(0, 9999)))
    return " ".join(words)


def soft_rounds(rng: random.Random, screen: Screen, count: int, softness: Softness) -> list[Round]:
    """Rounds whose request names a thing among words in no order, answered in varied ways; a third are plain skills."""
    out = rounds(rng, screen, count // 3)
    switches = [f for f in screen.facts if f.checked is not None]
    while len(out) < count:
        words = [rng.choice(NOISE) for _ in range(rng.randint(1, 4))]
        state = rng.choice(STATES)
        if switches and rng.random() < 0.4:
            fact = rng.choice(switches)
            name, share, stated = (
                fact.label,
                softness.held if fact.checked == (state == "on") else softness.finish,
                True,
            )
        else:
            on_screen = screen.facts and rng.random() < 0.25
            name, share = rng.choice(screen.facts).label if on_screen else screen.sought(rng), softness.finish
            stated = rng.random() < 0.6 and not any(f.label == name for f in switches)
        if stated or any(f.label == name for f in switches):
            words = [w for w in words if w not in STATES]
        parts = ([name, state] if rng.random() < 0.3 else [state, name]) if stated else [name]
        reply = finish() if rng.random() < share else _soft_step(rng, screen, name, softness)
        if reply:
            out.append(Round(_jumble(rng, parts, words), reply, "soft"))
    rng.shuffle(out)
    return out


def _soft_step(rng: random.Random, screen: Screen, name: str, softness: Softness) -> str | None:
    chance = rng.random()
    if chance < softness.follow:
        step = step_towards(rng, screen, name)
        return step.call if step else None
    if chance < softness.follow + softness.elsewhere and screen.facts:
        return click(rng, rng.choice(screen.facts).box, screen)
    return _plain(rng, screen).call


def _jumble(rng: random.Random, parts: list[str], words: list[str]) -> str:
    """``parts``, which stay together, somewhere among ``words``."""
    where = rng.randint(0, len(words))
    return " ".join([*words[:where], *parts, *words[where:]]) + rng.choice(("", ".", ".", "."))
