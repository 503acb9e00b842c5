"""Where on the screen an action points: what every backend checks before it carries one out."""

from __future__ import annotations

from cuarl.types import Action, Click, Drag, LongPress, MouseDown, MouseUp, Move, Scroll, SelectOption, Swipe


def points(action: Action) -> list[tuple[int, int]]:
    """The points that an action names, in pixels of the screenshot."""
    match action:
        case Drag():
            return list(action.path)
        case Swipe():
            return [(action.x, action.y), (action.x2, action.y2)]
        case Click() | LongPress() | Move() | SelectOption():
            return [(action.x, action.y)]
        case Scroll() | MouseDown() | MouseUp() if action.x is not None or action.y is not None:
            return [(action.x or 0, action.y or 0)]
        case _:
            return []


def outside(action: Action, size: tuple[int, int]) -> str:
    """That one of them lies outside of a screen of ``size`` pixels; empty if none does."""
    found = [point for point in points(action) if point[0] >= size[0] or point[1] >= size[1]]
    return f"{found[0]} lies outside of the screen, which is {size[0]}x{size[1]}" if found else ""
