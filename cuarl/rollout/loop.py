"""Recognises an episode that goes round in circles.

A loop is the same action on the same screen, met ``threshold`` times in the episode: five taps that change nothing are
one, so is opening and closing the same page, but not a tap that shows something new each time. What varies without
changing the deed is left out of the comparison (how long a wait or a press lasts, jitter of a few pixels), since a
sampled policy varies it by chance.
"""

from __future__ import annotations

from collections import Counter

from cuarl.types import Action

_POINTS = ("x", "y", "x2", "y2")
_CELLS_ACROSS = 20


class LoopGuard:
    """Counts (screen, action) pairs of one episode."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._seen: Counter[tuple[str, tuple[object, ...]]] = Counter()

    def repeats(self, screen: str, action: Action, width_px: int) -> bool:
        """Note ``action`` on the screen with digest ``screen``; True if that closes the loop."""
        key = (screen, likeness(action, width_px))
        self._seen[key] += 1
        return self._seen[key] >= self._threshold


def likeness(action: Action, width_px: int) -> tuple[object, ...]:
    """What two repetitions of one action have in common, on a screen ``width_px`` wide."""
    cell = max(1, width_px // _CELLS_ACROSS)
    parts: list[object] = [action.kind]
    for name in type(action).model_fields:
        value = getattr(action, name)
        if name in _POINTS and value is not None:
            parts.append(value // cell)
        elif name == "path":
            parts.extend((x // cell, y // cell) for x, y in value)
        elif name not in ("kind", "seconds", "duration_ms"):
            parts.append(value)
    return tuple(parts)
