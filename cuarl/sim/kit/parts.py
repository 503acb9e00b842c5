"""Long work as a generator that yields where others may have their turn."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def at_once(work: Generator[None, None, T]) -> T:
    """Do all of it now, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
