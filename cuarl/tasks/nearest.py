"""How near goals are to each other, by their words: near-duplicates of evaluation goals must not be trained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BAR = 0.8
"""Similarity from which a goal counts as a near-duplicate."""

_WORD = re.compile(r"[^\W_]+")


class Match(NamedTuple):
    """The goal that is nearest to another one; no position where there is none at all."""

    similarity: float
    """Share of the words of both goals together that both have (Jaccard), 0 to 1; case and punctuation don't count."""
    position: int | None


class Nearest:
    """Goals among which the nearest to another one is looked for."""

    def __init__(self, goals: Sequence[str]) -> None:
        self._bits: dict[str, int] = {}
        for goal in goals:
            for word in words(goal):
                self._bits.setdefault(word, 1 << len(self._bits))
        self._goals = [(self._mask(words(goal)), len(words(goal))) for goal in goals]

    def of(self, goal: str) -> Match:
        """The nearest goal, the first of several that are equally near."""
        asked = words(goal)
        mask, size = self._mask(asked), len(asked)
        best, position = 0.0, None
        for i, (other, length) in enumerate(self._goals):
            shared = (mask & other).bit_count()
            similarity = shared / ((size + length - shared) or 1)
            if position is None or similarity > best:
                best, position = similarity, i
        return Match(best, position)

    def _mask(self, found: Iterable[str]) -> int:
        mask = 0
        for word in found:
            mask |= self._bits.get(word, 0)
        return mask


def words(goal: str) -> frozenset[str]:
    """The words of a goal, without case and punctuation."""
    return frozenset(_WORD.findall(goal.casefold()))
