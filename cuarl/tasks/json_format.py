"""JSON and JSON-lines files of tasks, with the line of every part."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from cuarl.tasks.raw import Path, Problem

_SPACE = re.compile(r"[ \t\n]*")


class JsonDocument:
    """One document: its value as plain data, and the line of every part.

    A syntax error ends the reading, as nothing after it can be trusted. Repeated keys are problems.
    """

    def __init__(self, text: str, first_line: int = 1) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self.value: Any = None
        self._text, self._first_line = text, first_line
        self._line_ends = [i for i, character in enumerate(text) if character == "\n"]
        self._decoder = json.JSONDecoder(parse_constant=self._constant)
        try:
            start = self._skip(0)
            self.value, end = self._decoder.raw_decode(text, start)
            if self._skip(end) < len(text):
                what = "more text follows the value; a file with one value a line is named .jsonl"
                raise json.JSONDecodeError(what, text, self._skip(end))
            self._locate(start, ())
        except json.JSONDecodeError as error:
            self.value = None
            self.problems.append(
                Problem(
                    self._line(error.pos), f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"
                )
            )
        except RecursionError:
            self.problems.append(Problem(first_line, "not JSON: nested too deeply"))

    def _locate(self, at: int, path: Path) -> None:
        self.lines.setdefault(path, self._line(at))
        if self._text[at] == "[":
            for i, start in enumerate(self._items(at)):
                self._locate(start, (*path, i))
        elif self._text[at] == "{":
            for key, key_at, value_at in self._members(at):
                line, place = self._line(key_at), (*path, key)
                if place in self.lines:
                    self.problems.append(Problem(line, f'"{key}" is given twice, first on line {self.lines[place]}'))
                self.lines[place] = line
                self._locate(value_at, place)

    def _items(self, at: int) -> Iterator[int]:
        """Offsets of the items of the list that begins at ``at``."""
        at = self._skip(at + 1)
        while self._text[at] != "]":
            yield at
            at = self._next(at)

    def _members(self, at: int) -> Iterator[tuple[str, int, int]]:
        """Keys of the object that begins at ``at``, each with its offset and that of its value."""
        at = self._skip(at + 1)
        while self._text[at] != "}":
            key, end = self._decoder.raw_decode(self._text, at)
            value_at = self._skip(self._skip(end) + 1)
            yield key, at, value_at
            at = self._next(value_at)

    def _next(self, at: int) -> int:
        """Offset of what follows the value at ``at`` and its comma."""
        _, end = self._decoder.raw_decode(self._text, at)
        end = self._skip(end)
        return self._skip(end + 1) if self._text[end] == "," else end

    def _skip(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return space.end() if space else at

    def _line(self, at: int) -> int:
        return bisect.bisect_left(self._line_ends, at) + self._first_line

    def _constant(self, name: str) -> NoReturn:
        raise json.JSONDecodeError(f'"{name}" is not a JSON value', self._text, self._text.index(name))


class JsonLine:
    """A document on a line of its own: its value as plain data, and that line."""

    def __init__(self, value: Any, line: int) -> None:
        self.value = value
        self.lines: dict[Path, int] = {(): line}
        self.problems: list[Problem] = []


def json_lines(text: str) -> Iterator[JsonDocument | JsonLine]:
    r"""The documents of a JSON-lines file; blank lines and ``#`` comment lines are skipped.

    Lines end at ``\n`` alone: JSON texts may hold other Unicode line separators.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                yield JsonLine(json.loads(line, object_pairs_hook=_once, parse_constant=_refused), number)
            except (ValueError, RecursionError):  # slower, it says what is wrong and where
                yield JsonDocument(line, number)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
