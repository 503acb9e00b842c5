"""What the base is taught: single skills on single screens, each as a request and the call that answers it.

Pointing, reading, comparing, counting, copying into a field, one step of finding one's way, the state of switches,
gestures, keys and buttons. Requests are worded unlike any task: whole solutions never occur, and ``cuarl model build``
leaves out every request that is a goal of a suite, so that what reinforcement learning is shown to learn was not put in
beforehand.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from cuarl.pretrain import calls, reading
from cuarl.pretrain import words as t
from cuarl.pretrain.calls import Box
from cuarl.pretrain.facts import Fact, Screen
from cuarl.pretrain.navigation import names, purposes

POINT = ("Tap {x}.", "Touch {x}.", "Press {x}.", "{x}", "Select {x}.", "Point at {x}.", "Click {x}.", 'Tap "{x}".')
TEXT_AT = ("Where does it say {x}?", "Tap the text {x}.", 'Point at the words "{x}".')
WAY = ("Find {x}.", "Where is {x}?", "Way to {x}?", "Look for {x}.", "Go towards {x}.")
FOR = ("Find an app for {x}.", "Where does one go for {x}?", "Which icon is for {x}?")
READ = ("Read {x}, {y}.", "What is at {x}, {y}?", "Text at {x}, {y}?", "What does it say at {x}, {y}?")
STATE = ("Is {x} on?", "{x}: on or off?")
STATE_AT = ("On or off at {x}, {y}?", "State at {x}, {y}?")
HOLDS = ("Check: {x} {s}.", "{x} {s}?", "Stop if {x} {s}.")
DOWN, UP = ("Scroll down.", "Show more below.", "Further down."), ("Scroll up.", "Show more above.", "Further up.")
BACK, HOME = ("Go back.", "Back.", "Previous screen."), ("Home.", "To the home screen.", "Leave the app.")
ENTER, ERASE = ("Press Enter.", "Enter.", "Confirm the text."), ("Erase one letter.", "Backspace.")
TYPE = ("Type {x}", "Write {x}", "Enter the text {x}", 'Type "{x}"', "Put in: {x}")
OPEN = ("Open the app {x} by its name.", "Launch {x} by name.")
FIELD = ('Fill {x} with "{y}".', "{x}: write {y}", "Put {y} into {x}.")
HOLD = ("Hold {x}.", "Long press {x}.", "Keep a finger on {x}.")
ASIDE = ("Swipe {x} away.", "Push {x} aside.")
SLIDE = ("{x} to {n}%.", "Slide {x} to {n} percent.", "Move {x} to {n}%.")
COPY_AT = ("Type what is at {x}, {y}.", "Copy the text at {x}, {y} into the field.")
COPY_OF = ("Type what it says beside {x}.", "Copy the value of {x}.")
DOUBLE, CONTEXT = ("Double-click {x}.",), ("Right-click {x}.", "Menu of {x}.")
STATES = ("on", "off")


class Round(NamedTuple):
    """A request and the call that answers it."""

    request: str
    call: str
    skill: str
    box: Box | None = None
    """Where a tap counts as right, pixels; None where the call is no tap."""
    past: tuple[str, ...] = ()
    """Calls that the prompt shows as the policy's own earlier answers."""


class Step(NamedTuple):
    """A call, and the box of the element that it taps, if any."""

    call: str
    box: Box | None = None


FINGER = {"down": "up", "up": "down", "next": "left", "previous": "right", "drawer": "up"}
"""Where the finger goes to show what is further down, further up, on the next page, on the previous one, all apps."""


def step_towards(rng: random.Random, screen: Screen, name: str) -> Step | None:
    """The first step towards ``name``; None if there is no way."""
    found = screen.way(name)
    if isinstance(found, Fact):
        return Step(calls.click(rng, screen.kind, found.box, screen.size), found.box)
    if found in ("back", "home"):
        return Step(calls.press(found.capitalize()))
    return Step(calls.swipe(rng, FINGER[found])) if found in FINGER else None


def _point(rng: random.Random, screen: Screen, fact: Fact) -> Round | None:
    request = rng.choice(POINT).format(x=fact.label)
    return Round(request, calls.click(rng, screen.kind, fact.box, screen.size), "point", fact.box)


def _point_at_text(rng: random.Random, screen: Screen) -> Round | None:
    line = reading.some_line(rng, screen, unique=True)
    if line is None:
        return None
    x0, y0, x1, y1 = line.box
    box = (x0 - 2, y0 - 2, x1 + 2, y1 + 2)
    return Round(rng.choice(TEXT_AT).format(x=line.text), calls.click(rng, screen.kind, box, screen.size), "text", box)


def _read(rng: random.Random, screen: Screen) -> Round | None:
    """Reading what is written at a place.

    The same eyes as pointing needs, and every letter of the text teaches them.
    """
    line = reading.some_line(rng, screen)
    if line is None:
        return None
    x, y = calls.point(rng, line.box, screen.size)
    return Round(rng.choice(READ).format(x=x, y=y), calls.answer(screen.kind, line.text), "read")


def _told(rng: random.Random, screen: Screen) -> Round | None:
    """A question about the texts of the screen, answered in words."""
    made = rng.choices(reading.QUESTIONS, reading.WEIGHTS)[0]
    found = made(rng, screen)
    return found and Round(found.request, calls.answer(screen.kind, found.answer), found.skill)


def _way(rng: random.Random, screen: Screen) -> Round | None:
    if not screen.names:
        return None
    if rng.random() < 0.1:
        purpose, name = rng.choice(sorted(purposes().items()))
        request = rng.choice(FOR).format(x=purpose)
    else:
        name = screen.sought(rng)
        request = rng.choice(WAY).format(x=name)
    step = step_towards(rng, screen, name)
    return step and Round(request, step.call, "way", step.box)


def _switch(rng: random.Random, screen: Screen) -> Round | None:
    """By place, by name, or as something that holds: from the place to its state is half the way from a name to it."""
    switches = [f for f in screen.facts if f.checked is not None]
    if not switches:
        return None
    fact, kind = rng.choice(switches), rng.random()
    state = "on" if fact.checked else "off"
    if kind < 0.25:
        x, y = calls.point(rng, fact.box, screen.size)
        return Round(rng.choice(STATE_AT).format(x=x, y=y), calls.answer(screen.kind, state), "state_at")
    if kind < 0.5:
        return Round(rng.choice(STATE).format(x=fact.label), calls.answer(screen.kind, state), "state")
    asked = rng.random() < 0.5
    request = rng.choice(HOLDS).format(x=fact.label, s="on" if asked else "off")
    return Round(request, calls.finish(screen.kind, asked == fact.checked), "holds")


def _says(rng: random.Random, screen: Screen) -> Round | None:
    """Whether a text is here, as something that holds."""
    line = reading.some_line(rng, screen)
    if line is None:
        return None
    there = rng.random() < 0.5
    text = line.text if there else reading.another(rng, screen, line.text)
    request = rng.choice(('Check: it says "{x}".', "Stop if it says {x}.")).format(x=text)
    return Round(request, calls.finish(screen.kind, there), "says")


def _text(rng: random.Random, screen: Screen) -> str:
    """To be typed: mostly what nobody has seen; also what the screen says or the device, whose words are tokens."""
    kind = rng.random()
    if kind < 0.15 and (line := reading.some_line(rng, screen)):
        return line.text
    if kind < 0.35:
        return " ".join(rng.choice(names()) for _ in range(rng.choice((1, 1, 2))))
    return t.anything(rng)


def _type(rng: random.Random, screen: Screen) -> Round | None:
    text = _text(rng, screen)
    return Round(rng.choice(TYPE).format(x=text), calls.type_text(screen.kind, text), "type")


def _copy(rng: random.Random, screen: Screen) -> Round | None:
    """Typing what is shown elsewhere on the screen."""
    fact = reading.some_value(rng, screen)
    if fact is not None and rng.random() < 0.5:
        return Round(rng.choice(COPY_OF).format(x=fact.label), calls.type_text(screen.kind, fact.value), "copy")
    line = reading.some_line(rng, screen)
    if line is None:
        return None
    x, y = calls.point(rng, line.box, screen.size)
    return Round(rng.choice(COPY_AT).format(x=x, y=y), calls.type_text(screen.kind, line.text), "copy")


def _field(rng: random.Random, screen: Screen) -> Round | None:
    """Text for a named field: typed where the field has the focus, else the field is tapped first."""
    fields = [f for f in screen.facts if f.role == "field"]
    if not fields:
        return None
    fact, text = rng.choice(fields), _text(rng, screen)
    request = rng.choice(FIELD).format(x=fact.label, y=text)
    if fact.focused:
        return Round(request, calls.type_text(screen.kind, text), "field")
    return Round(request, calls.click(rng, screen.kind, fact.box, screen.size), "field", fact.box)


def _slide(rng: random.Random, screen: Screen) -> Round | None:
    sliders = [f for f in screen.facts if f.share is not None]
    if not sliders:
        return None
    fact, percent = rng.choice(sliders), rng.randrange(0, 101, 5)
    x0, y0, x1, y1 = fact.box
    margin = (x1 - x0) * 0.08
    x = x0 + margin + percent / 100 * (x1 - x0 - 2 * margin)
    box = (round(x) - 8, y0 + (y1 - y0) // 2, round(x) + 8, y1)
    at = calls.point(rng, (round(x) - 2, box[1], round(x) + 2, y1), screen.size)
    action = "click" if screen.kind == "phone" else "left_click"
    request = rng.choice(SLIDE).format(x=fact.label, n=percent)
    return Round(request, calls.call(screen.kind, {"action": action, "coordinate": at}), "slide", box)


def _gesture(rng: random.Random, screen: Screen) -> Round | None:
    """A press that lasts, a swipe on a thing; with a mouse a double click or the right button."""
    pool = [f for f in screen.facts if f.role in ("icon", "row", "card", "task", "image")]
    if not pool:
        return None
    fact, size = rng.choice(pool), screen.size
    if screen.kind == "desktop":
        action, said = rng.choice((("double_click", DOUBLE), ("right_click", CONTEXT)))
        made = calls.gesture(rng, "desktop", action, fact.box, size)
        return Round(rng.choice(said).format(x=fact.label), made, "gesture", fact.box)
    if rng.random() < 0.6:
        made = calls.gesture(rng, "phone", "long_press", fact.box, size)
        return Round(rng.choice(HOLD).format(x=fact.label), made, "gesture", fact.box)
    made = calls.swipe_from(rng, fact.box, size, rng.choice(("left", "right")))
    return Round(rng.choice(ASIDE).format(x=fact.label), made, "gesture", fact.box)


def move(rng: random.Random, screen: Screen) -> Round | None:
    """Scrolling, buttons and keys: what can be done on any screen."""
    kind, phone = rng.random(), screen.kind == "phone"
    if kind < 0.35:
        down = rng.random() < 0.5
        made = calls.swipe(rng, "up" if down else "down") if phone else calls.wheel(rng, down)
        return Round(rng.choice(DOWN if down else UP), made, "scroll")
    if kind < 0.5:
        enter = calls.press("Enter") if phone else calls.key("desktop", "enter")
        return Round(rng.choice(ENTER), enter, "button")
    if kind < 0.6:
        return Round(rng.choice(ERASE), calls.key(screen.kind, "BackSpace" if phone else "backspace"), "button")
    if not phone:
        return None
    if kind < 0.75:
        return Round(rng.choice(BACK), calls.press("Back"), "button")
    if kind < 0.9:
        return Round(rng.choice(HOME), calls.press("Home"), "button")
    if kind < 0.95:
        x = rng.randrange(200, 800, 10)
        box = (x * screen.width // 1000, 2, x * screen.width // 1000 + 10, 10)
        return Round("Pull the shade down.", calls.swipe_from(rng, box, screen.size, "down"), "scroll")
    return Round(
        *rng.choice((("Recent apps.", calls.press("Recents")), ("The menu key.", calls.press("Menu")))), "button"
    )


def _open(rng: random.Random, screen: Screen) -> Round | None:
    if screen.kind != "phone":
        return None
    name = rng.choice(sorted(set(purposes().values()))) if rng.random() < 0.6 else t.title(rng, 1, 2)
    return Round(rng.choice(OPEN).format(x=name), calls.open_app(name), "open")


def _order(rng: random.Random, screen: Screen) -> Round | None:
    """First one thing, then another: which is next follows from the answers so far."""
    if len(screen.facts) < 3:
        return None
    wanted = rng.sample(screen.facts, rng.choice((2, 2, 3)))
    done = rng.randrange(len(wanted) + 1)
    request = rng.choice(("{} and then {}.", "First {}, then {}.")).format(
        ", ".join(f.label for f in wanted[:-1]), wanted[-1].label
    )
    past = tuple(calls.click(rng, screen.kind, f.box, screen.size) for f in wanted[:done])
    if done == len(wanted):
        return Round(request, calls.finish(screen.kind), "order", past=past)
    fact = wanted[done]
    return Round(request, calls.click(rng, screen.kind, fact.box, screen.size), "order", fact.box, past)


Maker = Callable[[random.Random, Screen], Round | None]
MIXTURE: tuple[tuple[float, Maker], ...] = (
    (0.2, _read), (0.07, _point_at_text), (0.17, _told), (0.12, _way), (0.09, _switch), (0.03, _says), (0.05, _type),
    (0.05, _copy), (0.03, _field), (0.02, _slide), (0.03, _gesture), (0.04, move), (0.02, _open),
)  # fmt: skip
"""Shares of the skills; the rest is pointing."""
RARE = 0.12
"""Share of rounds about sliders and text fields on the few screens that have some."""


def rounds(rng: random.Random, screen: Screen, count: int) -> list[Round]:
    """``count`` rounds of mixed skills about one screen; pointing covers different elements in random order."""
    pool = list(screen.facts)
    rng.shuffle(pool)
    makers, shares = [m for _, m in MIXTURE], [s for s, _ in MIXTURE]
    sliders, fields = any(f.share is not None for f in pool), any(f.role == "field" for f in pool)
    rare: list[Maker] = [m for m, here in ((_slide, sliders), (_field, fields)) if here]
    out: list[Round] = []
    tries = 0
    while len(out) < count:
        tries += 1
        made: Round | None = None
        if rare and rng.random() < RARE:
            made = rng.choice(rare)(rng, screen)
        elif pool and (rng.random() > sum(shares) or tries > 8 * count):
            made = _point(rng, screen, pool[len(out) % len(pool)])
        else:
            made = rng.choices(makers, shares)[0](rng, screen)
        if made is not None:
            out.append(made)
    return out


def with_past(rng: random.Random, screen: Screen) -> Round | None:
    """A round whose prompt shows earlier answers: half the time they say what is next, else they change nothing."""
    if rng.random() < 0.5:
        return _order(rng, screen)
    made = rounds(rng, screen, 1)[0]
    return made._replace(past=tuple(_earlier(rng, screen) for _ in range(rng.randint(1, 4))))


def _earlier(rng: random.Random, screen: Screen) -> str:
    """Something that may have been done before."""
    if screen.facts and rng.random() < 0.6:
        return calls.click(rng, screen.kind, rng.choice(screen.facts).box, screen.size)
    made = (move if rng.random() < 0.7 else _type)(rng, screen)
    return made.call if made else calls.key(screen.kind, "escape")
