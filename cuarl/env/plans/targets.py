"""How a plan names a place. A text alone means one by its words; a mapping says by what, and which of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cuarl.suggest import did_you_mean


class BadTarget(ValueError):
    """What is wrong with a target, in words."""


@dataclass(frozen=True, slots=True)
class Target:
    """How a thing is found: one of the ways that a device has, with its value."""

    by: str
    value: str
    name: str = ""
    """Accessible name, with a role."""
    nth: int | None = None
    """Which of the visible ones, from 1; None where there may be one only."""
    at: tuple[int, int] | None = None
    """The pixel itself, where it is by that."""

    def __str__(self) -> str:
        if self.at:
            return f"pixel {self.at[0]}, {self.at[1]}"
        words = f'{self.by} "{self.value}"' if self.by != "role" else f"role {self.value}"
        return words + (f' "{self.name}"' if self.name else "") + (f", nth {self.nth}" if self.nth else "")


class Names(NamedTuple):
    """How things are named on one kind of device."""

    ways: tuple[str, ...]
    plain_problem: Callable[[str], str] = lambda text: ""
    """What is wrong with a text alone."""
    problem: Callable[[Target], str] = lambda target: ""
    """What is wrong with any other target."""


def read_target(value: Any, names: Names, plain: str = "text") -> Target:
    """The target that ``value`` names; a text alone is one by ``plain``. Raises BadTarget."""
    if not isinstance(value, Mapping):
        text = text_of(value)
        if problem := names.plain_problem(text):
            raise BadTarget(problem)
        return Target(plain, text)
    ways = [way for way in names.ways if way in value]
    if len(ways) != 1:
        raise BadTarget(f"{dict(value)} points at nothing: give one of {', '.join(names.ways)}")
    (way,) = ways
    known = {"role": (way, "nth", "name"), "at": (way,)}.get(way, (way, "nth"))
    for key in value:
        if key not in known:
            raise BadTarget(f"unknown key {key} beside {way}{did_you_mean(str(key), known)}")
    if way == "at":
        return Target(way, "", at=_pixel(value[way]))
    name = text_of(value["name"]) if "name" in value else ""
    target = Target(way, text_of(value[way]), name, _number(value.get("nth")))
    if problem := names.problem(target):
        raise BadTarget(problem)
    return target


def text_of(value: Any) -> str:
    """A text, or a number as one. Raises BadTarget for anything else, and for an empty one."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        return str(value)
    raise BadTarget(f"{value!r} is no text")


def _number(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise BadTarget(f"nth is {value!r}: count from 1")


def _pixel(value: Any) -> tuple[int, int]:
    """A text of two numbers is one, too, since parameters are filled in as such."""
    parts = re.split(r"[,\s]+", value.strip()) if isinstance(value, str) else value
    try:
        x, y = (int(part) for part in parts)
    except (TypeError, ValueError):
        x = y = -1
    if min(x, y) < 0:
        raise BadTarget(f"at is {value!r}: a pixel of the screenshot, [x, y]")
    return x, y
