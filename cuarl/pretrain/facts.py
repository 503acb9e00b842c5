"""What can be asked about a screen: its elements, its lines of text, and where things are to be found."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuarl.pretrain.calls import Box, Kind
from cuarl.pretrain.texts import Line


@dataclass(frozen=True, slots=True)
class Fact:
    """A visible element: its label, its box (x0, y0, x1, y1) in pixels, and whether a switch is on."""

    label: str
    box: Box
    checked: bool | None = None
    role: str = ""
    value: str = ""
    """What it shows beside its label, if that is drawn."""
    focused: bool = False
    """Whether it is the text field that keys go to."""
    share: float | None = None
    """Of a slider: where its handle is, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Screen:
    """What a request can be about."""

    width: int
    height: int
    facts: tuple[Fact, ...]
    """Elements that their labels name without doubt."""
    way: Callable[[str], Fact | str | None] = lambda name: None
    """First step towards a named thing that may not be here: an element, a move (see ``step_towards``), or None."""
    names: Sequence[str] = ()
    """Everything that one can look for."""
    ahead: Sequence[str] = ()
    """What of it is further on from here: which of the rows leads there is the hardest to know."""
    lines: tuple[Line, ...] = ()
    kind: Kind = "phone"
    focused: bool = False
    """Whether a text field has the focus."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.width, self.height

    def sought(self, rng: random.Random) -> str:
        """Something to look for; half the time something further on, if there is."""
        return rng.choice(self.ahead if self.ahead and rng.random() < 0.5 else self.names)
