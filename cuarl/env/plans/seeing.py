"""Which of the things that a target names is meant, and whether it can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cuarl.env.plans.targets import Target

Box = tuple[float, float, float, float]
"""Left, top, right and bottom; right and bottom are exclusive."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A thing that a target names."""

    text: str
    """What it says: the value of a field, else the text that is shown."""
    box: Box | None
    """Of what is visible of it."""
    why: str = ""
    """Why nothing of it can be clicked; empty if it can."""


class NotSeen(Exception):
    """A target can't be pointed at; says why."""


class Named(NamedTuple):
    """A thing at a point, by a name that leads back to it."""

    target: dict[str, object]
    """As a plan writes it."""
    editable: bool
    """Whether text is typed into it."""


class Eyes(Protocol):
    """What a plan may ask of a device: where things are, and nothing else."""

    @property
    def size(self) -> tuple[int, int]:
        """Of the last screenshot, pixels."""
        ...

    async def find(self, target: Target) -> Seen:
        """The one visible thing that is meant, its box in pixels of the screenshot. Raises NotSeen, EnvError."""
        ...

    async def as_shown(self, box: tuple[int, int, int, int]) -> bool:
        """Whether what is there now is what the last screenshot shows there."""
        ...


def chosen(seen: Sequence[Seen], target: Target, where: str = "the page") -> Seen:
    """The one of ``seen`` that is meant. Raises NotSeen."""
    visible = [one for one in seen if not one.why]
    if not seen:
        raise NotSeen(f"nothing on {where} matches")
    if not visible:
        more = f" (the first of {len(seen)} that match)" if len(seen) > 1 else ""
        raise NotSeen(f"it {seen[0].why}{more}")
    if target.nth is not None:
        if target.nth > len(visible):
            raise NotSeen(f"only {len(visible)} visible match")
        return visible[target.nth - 1]
    if len(visible) > 1:
        raise NotSeen(f"{len(visible)} visible elements match: say which, as by nth: 1")
    return visible[0]
