"""Questions about the texts of a screen that are answered in words: values, neighbours, order, numbers, presence."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from cuarl.pretrain import words as t
from cuarl.pretrain.facts import Fact, Screen
from cuarl.pretrain.texts import Line

LONGEST = 26
"""Letters of a line that is asked for."""


class Question(NamedTuple):
    """A request, and the answer in words."""

    request: str
    answer: str
    skill: str


def lines_to_ask(screen: Screen, *, unique: bool = False) -> list[Line]:
    """Whole lines of printable ASCII that are not too long; ``unique`` leaves out what is there twice."""
    counts = Counter(line.text.casefold() for line in screen.lines)
    return [
        line
        for line in screen.lines
        if line.whole
        and 1 < len(line.text) <= LONGEST
        and line.text.isascii()
        and line.text.isprintable()
        and line.text == line.text.strip()
        and not (unique and counts[line.text.casefold()] > 1)
    ]


def some_line(rng: random.Random, screen: Screen, *, unique: bool = False) -> Line | None:
    """One of them, longer ones more often: the clock of the status bar is on every screen."""
    found = lines_to_ask(screen, unique=unique)
    return rng.choices(found, [len(line.text) for line in found])[0] if found else None


def some_value(rng: random.Random, screen: Screen) -> Fact | None:
    """An element that shows something beside its label."""
    found = [f for f in screen.facts if f.value and f.label and len(f.value) <= LONGEST and f.value.isascii()]
    return rng.choice(found) if found else None


def another(rng: random.Random, screen: Screen, text: str) -> str:
    """A text like ``text`` that is not on the screen."""
    there = {line.text.casefold() for line in screen.lines}
    for _ in range(8):
        letters = list(text)
        if rng.random() < 0.4 and len(letters) > 2:
            letters[rng.randrange(len(letters))] = rng.choice("abcdefghijklmnoprstuvwy")
            found = "".join(letters)
        else:
            found = t.title(rng)
        if found.casefold() not in there:
            return found
    return t.title(rng, 3, 4)


def value_of(rng: random.Random, screen: Screen) -> Question | None:
    """What stands beside or below a label."""
    fact = some_value(rng, screen)
    if fact is None:
        return None
    asked = rng.choice(("Value of {x}?", "What does it say beside {x}?", "{x}: what is it?", "Read out {x}."))
    return Question(asked.format(x=fact.label), fact.value, "value")


def aloud(rng: random.Random, screen: Screen) -> Question | None:
    """Some lines one after the other, from the top or from a named one on.

    Nothing else teaches so many letters at once, nor to go on with the next.
    """
    lines = sorted(lines_to_ask(screen), key=lambda o: (o.box[1], o.box[0]))
    lines = [o for o in lines if o.box[1] > screen.height // 24]
    if len(lines) < 2:
        return None
    first, count = rng.choice((0, rng.randrange(len(lines)))), rng.randint(2, 4)
    found = lines[first : first + count]
    while len(found) > 1 and sum(len(o.text) for o in found) > 44:
        found = found[:-1]
    said = "; ".join(o.text for o in found)
    if first == 0:
        return Question(f"Read {len(found)} lines from the top.", said, "aloud")
    return Question(f"Read {len(found)} lines from {lines[first].text} on.", said, "aloud")


def below(rng: random.Random, screen: Screen) -> Question | None:
    """The next line above or below in the same column."""
    lines = lines_to_ask(screen, unique=True)
    if len(lines) < 2:
        return None
    line, up = rng.choice(lines), rng.random() < 0.4
    column = [o for o in lines if abs(o.box[0] - line.box[0]) <= 3 and o is not line]
    near = [o for o in column if (o.box[1] < line.box[1]) == up and o.box[1] != line.box[1]]
    if not near:
        return None
    other = min(near, key=lambda o: abs(o.box[1] - line.box[1]))
    asked = "What does it say just {d} {x}?" if rng.random() < 0.5 else "Next text {d} {x}?"
    return Question(asked.format(d="above" if up else "below", x=line.text), other.text, "neighbour")


def ends(rng: random.Random, screen: Screen) -> Question | None:
    """The first, second, third or last of the rows."""
    rows = sorted((f for f in screen.facts if f.role == "row" and _readable(f)), key=lambda f: f.box[1])
    if len(rows) < 3:
        return None
    which = rng.choice(("first", "second", "third", "last"))
    fact = rows[{"first": 0, "second": 1, "third": 2, "last": -1}[which]]
    return Question(f"Which row is the {which} one?", fact.label, "order_of")


def _readable(fact: Fact) -> bool:
    return fact.label.isascii() and 1 < len(fact.label) <= LONGEST


def higher(rng: random.Random, screen: Screen) -> Question | None:
    """Which of two texts is further up, or whether one is."""
    lines = lines_to_ask(screen, unique=True)
    if len(lines) < 2:
        return None
    a, b = rng.sample(lines, 2)
    if abs(a.box[1] - b.box[1]) < 8:
        return None
    if rng.random() < 0.5:
        return Question(f"Is {a.text} above {b.text}?", "yes" if a.box[1] < b.box[1] else "no", "compare")
    return Question(f"Which is further up, {a.text} or {b.text}?", min(a, b, key=lambda o: o.box[1]).text, "compare")


def count(rng: random.Random, screen: Screen) -> Question | None:
    """How many rows, switches, switches that are on, fields."""
    kinds = {
        "rows": [f for f in screen.facts if f.role == "row"],
        "icons": [f for f in screen.facts if f.role == "icon"],
        "switches": [f for f in screen.facts if f.checked is not None],
        "switches that are on": [f for f in screen.facts if f.checked],
        "switches that are off": [f for f in screen.facts if f.checked is False],
    }
    here = [k for k, found in kinds.items() if found or rng.random() < 0.1]
    if not here:
        return None
    what = rng.choice(here)
    return Question(rng.choice(("How many {x}?", "Count the {x}.")).format(x=what), str(len(kinds[what])), "count")


def there(rng: random.Random, screen: Screen) -> Question | None:
    """Whether a text is on the screen."""
    line = some_line(rng, screen)
    if line is None:
        return None
    yes = rng.random() < 0.5
    text = line.text if yes else another(rng, screen, line.text)
    return Question(rng.choice(("Is there {x}?", 'Does it say "{x}"?')).format(x=text), "yes" if yes else "no", "there")


QUESTIONS: tuple[Callable[[random.Random, Screen], Question | None], ...] = (
    aloud,
    value_of,
    below,
    ends,
    higher,
    count,
    there,
)
WEIGHTS = (0.4, 0.2, 0.12, 0.06, 0.08, 0.06, 0.08)
"""Shares of the questions."""
