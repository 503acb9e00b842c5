"""YAML files of tasks, without the surprises of YAML 1.1.

There ``on`` and ``no`` are truth values, ``010`` is eight, ``12:30`` is 750, ``1.10`` is 1.1 and a date is an object.
Here a plain scalar is ``true``, ``false``, ``null``, or a number only if writing that number gives the same characters
back; anything else is the text as it stands. So a text field never loses a character, and JSON and YAML agree.
Anchors, aliases, tags and repeated keys are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from cuarl.tasks.raw import Path, Problem

_LOADER: Any = getattr(yaml, "CLoader", yaml.Loader)  # only its event stream is used: nothing is constructed
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_MAX_DEPTH = 50


class _Refused(Exception):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line, self.text = line, text


class YamlDocument:
    """One document: its value as plain data, and the line of every part."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self.value: Any = None
        try:
            self._read(text)
        except _Refused as refused:
            self.problems.append(Problem(refused.line, refused.text))
        except yaml.MarkedYAMLError as error:
            marks = (error.problem_mark, error.context_mark)
            line = next((mark.line + 1 for mark in marks if mark is not None), 0)
            what = ", ".join(part for part in (error.problem, error.context) if part)
            self.problems.append(Problem(line, f"not YAML: {what}"))
        except yaml.YAMLError as error:
            self.problems.append(Problem(0, f"not YAML: {str(error).splitlines()[0]}"))

    def _read(self, text: str) -> None:
        events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Refused(_line(event), "a second document begins: keep one in a file")
                self.value = self._node(next(events), events, ())

    def _node(self, event: Any, events: Iterator[Any], path: Path) -> Any:
        line = _plain_line(event)
        self.lines.setdefault(path, line)
        if len(path) > _MAX_DEPTH:
            raise _Refused(line, f"nested more than {_MAX_DEPTH} levels deep")
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else scalar(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(events, path)
        return self._mapping(events, path)

    def _sequence(self, events: Iterator[Any], path: Path) -> list[Any]:
        items: list[Any] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, events, (*path, len(items))))
        return items

    def _mapping(self, events: Iterator[Any], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            line = _plain_line(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise _Refused(line, "a key must be plain text")
            key: str = event.value
            if key in found:
                first = self.lines[(*path, key)]
                self.problems.append(Problem(line, f'"{key}" is given twice, first on line {first}'))
            self.lines[(*path, key)] = line
            found[key] = self._node(next(events), events, (*path, key))
        return found


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line


def _plain_line(event: Any) -> int:
    line = _line(event)
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise _Refused(line, "anchors and aliases (& and *) are not read: write the value out, or quote the text")
    if event.tag is not None:
        raise _Refused(line, f"the tag {event.tag} is not read: write the plain value, or quote the text")
    return line


def scalar(text: str) -> Any:
    """Value of a plain (unquoted) scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if not _NUMBER.fullmatch(text):
        return text
    value: int | float = float(text) if "." in text else int(text)
    return value if str(value) == text else text
