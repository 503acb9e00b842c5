"""Reading the arguments of a call, one kind of value a method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cuarl.agent.formats.base import Size
from cuarl.agent.formats.call import PLAIN_NUMBER, CallError, sound
from cuarl.agent.formats.points import RELATIVE, to_pixel
from cuarl.types import MOST_PRESSES

_HUGE = 1e6
_HELD = ("keys", "key", "modifiers", "modifier", "modifier_keys", "hold_keys")
_AGAIN = ("repeat", "repeats", "count", "clicks", "num_clicks", "times", "presses")
_TYPED = ("press_enter", "submit", "clear", "clear_before_typing")
_NOT_DONE = (
    dict.fromkeys(_HELD, "held keys") | dict.fromkeys(_AGAIN, "repeats") | dict.fromkeys(_TYPED, "such parts of typing")
)
"""Arguments that make another action of one that doesn't know them, and what of it is not carried out."""


class Arguments:
    """The arguments of one call. Every method raises ``CallError``; what was repaired goes to ``warnings``.

    ``grid`` is the space of its coordinates. ``spent`` are arguments that have been read. ``objects``: points are
    objects of x and y, not lists. ``held`` are further names of keys that are held meanwhile.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        screen: Size,
        *,
        strict: bool,
        warnings: list[str],
        grid: Size = RELATIVE,
        spent: Iterable[str] = ("action",),
        objects: bool = False,
        held: Iterable[str] = (),
    ) -> None:
        self._given, self._screen, self._strict, self._warnings = given, screen, strict, warnings
        self._grid, self._objects = grid, objects
        self._used = set(spent)
        self._not_done = _NOT_DONE | dict.fromkeys(held, "held keys")

    @property
    def screen(self) -> Size:
        """Size of the screen in pixels."""
        return self._screen

    def has(self, name: str) -> bool:
        """Whether the argument is given."""
        return self._given.get(name) is not None

    def finish(self) -> None:
        """Object to arguments that nobody asked for.

        Also leniently to those without which another action would be done.
        """
        unused = sorted(set(self._given) - self._used)
        for name in unused:
            value = self._given[name]
            if (
                name in self._not_done
                and value not in (None, False, "", [], {})
                and not (name in _AGAIN and value == 1)
            ):
                raise CallError("bad_argument", f"{self._not_done[name]} are not carried out here: {name} {value!r}")
        if unused:
            self.fault(f"needless arguments: {', '.join(unused)}")

    def point(self, name: str) -> tuple[int, int]:
        """A point in pixels of the screen."""
        return self._pixel(self._get(name), name)

    def xy(self, x: str = "x", y: str = "y") -> tuple[int, int]:
        """A point whose sides are two arguments."""
        return self._pixel([self._get(x), self._get(y)], f"{x}, {y}", listed=True)

    def path(self, name: str) -> tuple[tuple[int, int], ...]:
        """Two or more points."""
        value = self._get(name)
        if not isinstance(value, list) or len(value) < 2:
            raise CallError("bad_argument", f"{name} must be a list of two or more points")
        return tuple(self._pixel(v, name) for v in value)

    def flag(self, name: str) -> bool:
        """A truth value; False where it is left out."""
        value = self._get(name) if self.has(name) else False
        if not isinstance(value, bool):
            raise CallError("bad_argument", f"{name} must be true or false, not {value!r}")
        return value

    def fault(self, message: str) -> None:
        """An error in the strict reading, a warning in the lenient one."""
        if self._strict:
            raise CallError("bad_argument", message)
        self._warnings.append(message)

    def text(self, name: str) -> str:
        """A text."""
        value = self._get(name)
        if not isinstance(value, str):
            raise CallError("bad_argument", f"{name} must be a text, not {value!r}")
        if not sound(value):
            raise CallError("bad_argument", f"{name} holds code points that are no text")
        return value

    def keys(self) -> tuple[str, ...]:
        """Names of keys pressed together.

        A list ``keys``, or a lone name, which the family's older form calls ``text``.
        """
        name = "text" if self.has("text") and not self.has("keys") else "keys"
        value = self._get(name)
        keys = [value] if isinstance(value, str) else value
        if not isinstance(keys, list) or not keys or not all(isinstance(k, str) and k for k in keys):
            raise CallError("bad_argument", f"{name} must be a list of key names, not {value!r}")
        return tuple(keys)

    def held(self, name: str, *, other: str = "") -> tuple[str, ...]:
        """Keys that are held meanwhile: a list, or one text joined by plus signs. None where nothing is asked for.

        ``other`` is an argument that is another family's word for it.
        """
        if other and self._given.get(other) not in (None, "", []):
            self.fault(f"{other} is given instead of {name}")
            name = other
        value = self._given.get(name)
        if value in (None, "", []):
            return ()
        self._used.add(name)
        keys = value.split("+") if isinstance(value, str) else value
        if not isinstance(keys, list) or not all(isinstance(k, str) and k and sound(k) for k in keys):
            raise CallError("bad_argument", f"{name} must name keys, not {value!r}")
        return tuple(keys)

    def presses(self, *, documented: bool) -> int:
        """How often keys are pressed: ``repeat``. Where it is no word of the family's, that is a fault."""
        if not self.has("repeat") or self._given["repeat"] == 1:
            return 1
        if not documented:
            self.fault("repeat is no word of this family's")
        count = self.whole("repeat")
        if not 1 <= count <= MOST_PRESSES:
            raise CallError("bad_argument", f"repeat must be from 1 to {MOST_PRESSES}, not {count}")
        return count

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of ``choices``."""
        value = self.text(name)
        if value in choices:
            return value
        near = next((c for c in choices if c.lower() == value.strip().lower()), None)
        if near is None:
            raise CallError("bad_argument", f"{name} must be one of {', '.join(choices)}, not {value!r}")
        self.fault(f"{name} is written {value!r} instead of {near!r}")
        return near

    def pixels(self, name: str) -> int:
        """A whole number of pixels other than 0."""
        value = self.whole(name)
        if value == 0:
            raise CallError("bad_argument", f"{name} must not be 0")
        return value

    def whole(self, name: str) -> int:
        """A whole number."""
        return round(self._number(self._get(name), name))

    def seconds(self, name: str, *, most: float) -> float:
        """A time from 0 to ``most`` seconds."""
        value = self._number(self._get(name), name)
        if value < 0:
            raise CallError("bad_argument", f"{name} must not be negative")
        if value > most:
            if self._strict:
                raise CallError("out_of_range", f"{name} must be at most {most:g} seconds, not {value:g}")
            self._warnings.append(f"{name} cut to {most:g} seconds")
        return min(value, most)

    def duration_ms(self, name: str = "time") -> dict[str, int]:
        """``duration_ms`` from a time in seconds, as keyword arguments: none where it is left to the default."""
        if not self.has(name):
            return {}
        milliseconds = round(self.seconds(name, most=60.0) * 1000)
        if milliseconds == 0:
            raise CallError("bad_argument", f"{name} must not be 0")
        return {"duration_ms": milliseconds}

    def _get(self, name: str) -> Any:
        self._used.add(name)
        if not self.has(name):
            raise CallError("missing_argument", f"{name} is missing")
        return self._given[name]

    def _pixel(self, value: Any, name: str, *, listed: bool = False) -> tuple[int, int]:
        numbers = self._numbers(value, name, listed=listed)
        shown = f"{name} [{', '.join(f'{n:g}' for n in numbers)}]"
        corners = [to_pixel(x, y, self._screen, self._grid) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if None in corners:
            raise CallError("out_of_range", f"{shown} is off the screen ({self._grid.width} by {self._grid.height})")
        if any(corner is not None and corner.clamped for corner in corners):
            self._warnings.append(f"clamped: {shown} is past the edge")
        sides = [min(max(n, 0), side) for n, side in zip(numbers, self._grid * 2, strict=False)]
        middle = [sum(sides[i::2]) / len(sides[i::2]) for i in (0, 1)]
        placed = to_pixel(middle[0], middle[1], self._screen, self._grid)
        assert placed is not None, "the middle of points on the screen is on it"
        return placed.x, placed.y

    def _numbers(self, value: Any, name: str, *, listed: bool) -> list[float]:
        """The two numbers of a point or the four of a box."""
        if isinstance(value, dict) and set(value) == {"x", "y"}:
            value, is_object = [value["x"], value["y"]], True
        else:
            is_object = False
        if not isinstance(value, list) or len(value) not in (2, 4):
            raise CallError("bad_argument", f"{name} must be a point, not {value!r}")
        if not listed and is_object is not self._objects:
            self.fault(f"{name} is not written as {'an object of x and y' if self._objects else 'a list [x, y]'}")
        if len(value) == 4:
            self.fault(f"{name} is a box; its centre is meant")
        return [self._number(v, name) for v in value]

    def _number(self, value: Any, name: str) -> float:
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise CallError("bad_argument", f"{name} must be a number, not {value!r}")
        if isinstance(value, str) and not PLAIN_NUMBER.fullmatch(value.strip(" ")):
            raise CallError("bad_argument", f"{name} must be a number in plain digits, not {value!r}")
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise CallError("bad_argument", f"{name} must be a number, not {value!r}") from None
        if not abs(number) < _HUGE:
            raise CallError("bad_argument", f"{name} must be a number of sensible size")
        if isinstance(value, str):
            self.fault(f"{name} holds a number as text")
        return number
