"""How much longer than a tap an action takes: what time-outs grow by."""

from __future__ import annotations

from cuarl.types import Action, Drag, Key, LongPress, Swipe, TypeText, Wait

CHARACTER_S = 0.1
"""What typing one character may take: devices handle each as a key of its own, and busy ones are slow at that."""


def expected_s(action: Action) -> float:
    """Seconds that ``action`` takes by itself, however quick the device is."""
    match action:
        case Wait():
            return action.seconds
        case TypeText():
            return CHARACTER_S * len(action.text)
        case Key():
            return CHARACTER_S * (action.count - 1)
        case LongPress() | Swipe() | Drag():
            return action.duration_ms / 1000
        case _:
            return 0.0
