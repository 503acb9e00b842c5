"""Reading the arguments of a call, one kind of value a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.agent.formats.base import Size
from cuarl.agent.formats.points import RELATIVE, to_pixel
from cuarl.agent.formats.qwen3_vl.call import CallError

_HUGE = 1e6


class Arguments:
    """The arguments of one call. Every method raises ``CallError``; what was repaired goes to ``warnings``."""

    def __init__(
        self, given: Mapping[str, Any], screen: Size, *, strict: bool, warnings: list[str], grid: Size = RELATIVE
    ) -> None:
        self._given, self._screen, self._strict, self._warnings = given, screen, strict, warnings
        self._grid = grid
        self._used = {"action"}

    def has(self, name: str) -> bool:
        """Whether the argument is given."""
        return self._given.get(name) is not None

    def finish(self) -> None:
        """Object to arguments that nobody asked for."""
        unused = sorted(set(self._given) - self._used)
        if unused:
            self._fault(f"needless arguments: {', '.join(unused)}")

    def point(self, name: str) -> tuple[int, int]:
        """A point in pixels of the screen."""
        return self._pixel(self._get(name), name)

    def path(self, name: str) -> tuple[tuple[int, int], ...]:
        """Two or more points."""
        value = self._get(name)
        if not isinstance(value, list) or len(value) < 2:
            raise CallError("bad_argument", f"{name} must be a list of two or more points")
        return tuple(self._pixel(v, name) for v in value)

    def text(self, name: str) -> str:
        """A text."""
        value = self._get(name)
        if not isinstance(value, str):
            raise CallError("bad_argument", f"{name} must be a text, not {value!r}")
        if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise CallError("bad_argument", f"{name} holds code points that are no text")
        return value

    def keys(self) -> tuple[str, ...]:
        """Names of keys pressed together: a list ``keys``, or a lone name, which the family's older form calls ``text``."""
        name = "text" if self.has("text") and not self.has("keys") else "keys"
        value = self._get(name)
        keys = [value] if isinstance(value, str) else value
        if not isinstance(keys, list) or not keys or not all(isinstance(k, str) and k for k in keys):
            raise CallError("bad_argument", f"{name} must be a list of key names, not {value!r}")
        return tuple(keys)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of ``choices``."""
        value = self.text(name)
        if value in choices:
            return value
        near = next((c for c in choices if c.lower() == value.strip().lower()), None)
        if near is None:
            raise CallError("bad_argument", f"{name} must be one of {', '.join(choices)}, not {value!r}")
        self._fault(f"{name} is written {value!r} instead of {near!r}")
        return near

    def pixels(self, name: str) -> int:
        """A whole number of pixels other than 0."""
        value = round(self._number(self._get(name), name))
        if value == 0:
            raise CallError("bad_argument", f"{name} must not be 0")
        return value

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

    def duration_ms(self) -> dict[str, int]:
        """``duration_ms`` from ``time``, as keyword arguments: none where it is left to the default."""
        if not self.has("time"):
            return {}
        milliseconds = round(self.seconds("time", most=60.0) * 1000)
        if milliseconds == 0:
            raise CallError("bad_argument", "time must not be 0")
        return {"duration_ms": milliseconds}

    def _get(self, name: str) -> Any:
        self._used.add(name)
        if not self.has(name):
            raise CallError("missing_argument", f"{name} is missing")
        return self._given[name]

    def _pixel(self, value: Any, name: str) -> tuple[int, int]:
        x, y = self._pair(value, name)
        placed = to_pixel(x, y, self._screen)
        if placed is None:
            raise CallError("out_of_range", f"{name} [{x:g}, {y:g}] is off the screen (0 to 1000)")
        if placed.clamped:
            self._warnings.append(f"clamped: {name} [{x:g}, {y:g}] is past the edge")
        return placed.x, placed.y

    def _pair(self, value: Any, name: str) -> tuple[float, float]:
        if not isinstance(value, list) or len(value) not in (2, 4):
            raise CallError("bad_argument", f"{name} must be a point [x, y], not {value!r}")
        numbers = [self._number(v, name) for v in value]
        if len(numbers) == 2:
            return numbers[0], numbers[1]
        self._fault(f"{name} is a box; its centre is meant")
        return (numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2

    def _number(self, value: Any, name: str) -> float:
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise CallError("bad_argument", f"{name} must be a number, not {value!r}")
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise CallError("bad_argument", f"{name} must be a number, not {value!r}") from None
        if not abs(number) < _HUGE:
            raise CallError("bad_argument", f"{name} must be a number of sensible size")
        if isinstance(value, str):
            self._fault(f"{name} holds a number as text")
        return number

    def _fault(self, message: str) -> None:
        """An error in the strict reading, a warning in the lenient one."""
        if self._strict:
            raise CallError("bad_argument", message)
        self._warnings.append(message)
