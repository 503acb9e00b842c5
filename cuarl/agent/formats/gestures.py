"""Moves that families call by one word and devices do in another way."""

from __future__ import annotations

from typing import Any, Literal, cast

from cuarl.agent.formats.base import DeviceKind, Size
from cuarl.types import Action, Button, Drag, Held, Key, LongPress, Scroll, Swipe, held_keys

Direction = Literal["up", "down", "left", "right"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down", "left", "right")
Point = tuple[int, int]
BUTTON_KEYS: dict[str, str] = {
    "back": "back", "home": "home", "recents": "recents", "menu": "menu", "power": "power", "volume_up": "volume_up",
    "volume_down": "volume_down",
}  # fmt: skip
"""Keys of a phone that are its buttons."""


def scrolled(
    kind: DeviceKind,
    screen: Size,
    at: Point | None,
    direction: str,
    amount: int | None = None,
    held: Held = (),
) -> Scroll | Swipe:
    """Reveal what lies in ``direction``: a wheel's turn, or on a touch screen a slide of the finger the other way.

    ``amount`` is in pixels; None means the usual scroll, or half of the screen's side for a finger.
    """
    if kind == "desktop":
        x, y = at or (None, None)
        usual = Scroll.model_fields["amount"].default
        far = usual if amount is None else amount
        return Scroll(x=x, y=y, direction=cast(Direction, direction), amount=far, held=held)
    x, y = at or (screen.width // 2, screen.height // 2)
    side = screen.height if direction in ("up", "down") else screen.width
    length = side // 2 if amount is None else amount
    ahead = {"down": (0, -1), "up": (0, 1), "right": (-1, 0), "left": (1, 0)}[direction]
    x2 = min(max(x + ahead[0] * length, 0), screen.width - 1)
    y2 = min(max(y + ahead[1] * length, 0), screen.height - 1)
    return Swipe(x=x, y=y, x2=x2, y2=y2)


def dragged(
    kind: DeviceKind, path: tuple[Point, ...], *, holds: bool = False, held: Held = ()
) -> Drag | Swipe | LongPress:
    """A held movement: of the mouse, with keys ``held``, or of a finger from the first point to the last.

    ``holds``: a finger that stays where it is holds the point, in families without another word for that.
    """
    if kind == "desktop":
        return Drag(path=path, held=held)
    (x, y), (x2, y2) = path[0], path[-1]
    if holds and (x, y) == (x2, y2):
        return LongPress(x=x, y=y)
    return Swipe(x=x, y=y, x2=x2, y2=y2)


def pressed(kind: DeviceKind, keys: tuple[str, ...], count: int = 1) -> Button | Key:
    """Keys, pressed ``count`` times, or the button of a phone that a lone key names."""
    name = BUTTON_KEYS.get(keys[0].lower()) if len(keys) == 1 and kind == "phone" else None
    return Key(keys=keys, count=count) if name is None or count > 1 else Button(name=cast(Any, name))


def plain(action: Action) -> bool:
    """Whether no key is held meanwhile and none is pressed several times: what every family has words for."""
    return not held_keys(action) and not (isinstance(action, Key) and action.count > 1)


def usual_ms(kind: type[Drag | Swipe | LongPress]) -> int:
    """How long a movement takes where nobody says, in ms: what families mean that have no word for it."""
    default: int = kind.model_fields["duration_ms"].default
    return default
