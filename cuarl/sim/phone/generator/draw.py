"""Draws that come out the same on every Python and machine: only ``random.Random.random`` promises that."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of draws, told apart by its key."""

    def __init__(self, *key: object) -> None:
        self._random = random.Random("/".join(map(str, key))).random

    def below(self, n: int) -> int:
        """A number from 0 to ``n - 1``."""
        return int(self._random() * n)

    def between(self, low: int, high: int) -> int:
        """A number from ``low`` to ``high``."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """True in about ``share`` of all draws."""
        return self._random() < share

    def choose(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` of the items in a random order, none twice; all of them if there are fewer."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]


def share_of(name: str) -> float:
    """A number from 0 to below 1 that belongs to a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") / 2**48
