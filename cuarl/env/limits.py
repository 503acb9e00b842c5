"""How long one action that a stranger sends may take.

What a model asks for is bounded by its tokens, a request is not.
"""

from __future__ import annotations

from cuarl.types import Action, Drag, LongPress, Scroll, Swipe, TypeText

LONGEST_TEXT = 10_000
"""Characters that are typed at once: a real keyboard's events take about a second for a thousand."""
LONGEST_GESTURE_MS = 60_000
FARTHEST_SCROLL = 100_000
"""Pixels or notches."""


def excess(action: Action) -> str:
    """What of an action is too much; empty if nothing is."""
    match action:
        case TypeText() if len(action.text) > LONGEST_TEXT:
            return f"{len(action.text)} characters are too many at once: at most {LONGEST_TEXT}"
        case LongPress() | Swipe() | Drag() if action.duration_ms > LONGEST_GESTURE_MS:
            return f"a gesture takes at most {LONGEST_GESTURE_MS} ms"
        case Scroll() if action.amount > FARTHEST_SCROLL:
            return f"one scroll goes at most {FARTHEST_SCROLL} {action.unit}"
    return ""
