"""Task files: text (one goal a line), YAML, JSON and JSON lines, read whole or not at all."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cuarl.errors import TaskError
from cuarl.regular_file import read_regular
from cuarl.suggest import did_you_mean
from cuarl.tasks.build import Broken, build
from cuarl.tasks.json_format import JsonDocument, json_lines
from cuarl.tasks.raw import Path, Problem, RawTask, decode, failure
from cuarl.tasks.task import Task
from cuarl.tasks.text_format import read_text
from cuarl.tasks.yaml_format import YamlDocument

_HINT = "cuarl tasks schema   # the fields of a task"


@dataclass(frozen=True, slots=True)
class Located:
    """A task and where it was read."""

    task: Task
    file: str
    line: int

    @property
    def where(self) -> str:
        """``tasks.yaml, line 7``."""
        return f"{self.file}, line {self.line}"


def load_file(path: pathlib.Path, defaults: Mapping[str, str] | None = None) -> list[Located]:
    """Tasks of one file; ``defaults`` fill fields that a task leaves out.

    Raises TaskError that lists all problems with their lines: unreadable, broken, empty, or an id used for two tasks.
    """
    where = str(path)
    if path.suffix.lower() not in READERS:
        near = did_you_mean(path.suffix.lower(), READERS)
        raise TaskError(
            f'task files end in {", ".join(sorted(READERS))}, not "{path.suffix}"{near}', where=where, hint=_HINT
        )
    try:
        text = decode(read_regular(path), where)
    except OSError as error:
        raise TaskError(f"the task file can't be read: {error.strerror}", where=where) from error
    return list(_located(where, path.suffix.lower(), text, tuple((defaults or {}).items())))


@lru_cache(512)
def _located(where: str, suffix: str, text: str, defaults: tuple[tuple[str, str], ...]) -> tuple[Located, ...]:
    """Read once for each text: a command asks for the shipped suites several times, and reading them takes 0.2 s."""
    raws, problems = READERS[suffix](text)
    located = []
    for raw in raws:
        try:
            located.append(Located(build(raw, dict(defaults)), where, raw.line))
        except Broken as broken:
            problems += broken.problems
    problems += _clashes(located)
    if not raws and not problems:
        problems = [Problem(0, "the file holds no task")]
    if problems:
        raise failure(problems, where, _HINT)
    return tuple(located)


def as_path(text: str) -> pathlib.Path | None:
    """The path that a text names, if a file or folder is there."""
    try:
        path = pathlib.Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError):  # too long for a name, or the home of an unknown user
        return None


def load_files(paths: Iterable[pathlib.Path], defaults: Mapping[str, str] | None = None) -> list[Located]:
    """Tasks of several files in order. Raises one TaskError for all files that are broken."""
    located, errors = [], []
    for path in paths:
        try:
            located += load_file(path, defaults)
        except TaskError as error:
            errors.append(error)
    if errors:
        raise combined(errors)
    return located


def combined(errors: Sequence[TaskError]) -> TaskError:
    """One error for several."""
    if len(errors) == 1:
        return errors[0]
    parts = [f"{error.what}\n  at: {error.where}" for error in errors]
    return TaskError("\n".join([f"{len(errors)} files are broken", *parts]), hint=errors[0].hint)


def merge(located: Iterable[Located]) -> tuple[list[Task], int]:
    """Tasks in order without repetitions, and how many there were of those.

    Raises TaskError if two different tasks have one id.
    """
    first: dict[str, Located] = {}
    repeated = 0
    for one in located:
        other = first.get(one.task.id)
        if other is None:
            first[one.task.id] = one
        else:
            repeated += 1
            if other is not one and other.task.digest != one.task.digest:
                raise TaskError(
                    f'two different tasks have the id "{one.task.id}"',
                    where=f"{other.where} and {one.where}",
                    hint="give one of them another id",
                )
    return [one.task for one in first.values()], repeated


def _clashes(located: list[Located]) -> list[Problem]:
    first: dict[str, Located] = {}
    problems = []
    for one in located:
        other = first.setdefault(one.task.id, one)
        if other is not one and other.task.digest != one.task.digest:
            text = f'the id "{one.task.id}" is used for two different tasks, first on line {other.line}'
            problems.append(Problem(one.line, text))
    return problems


# --- formats -------------------------------------------------------------------------------------------------------

Reader = Callable[[str], tuple[list[RawTask], list[Problem]]]


def _text(text: str) -> tuple[list[RawTask], list[Problem]]:
    return read_text(text), []


def _yaml(text: str) -> tuple[list[RawTask], list[Problem]]:
    document = YamlDocument(text)
    raws, problems = _records(document.value, document.lines, exact_text=True)
    return raws, document.problems + problems


def _json(text: str) -> tuple[list[RawTask], list[Problem]]:
    if not text.strip():
        return [], []
    document = JsonDocument(text)
    raws, problems = _records(document.value, document.lines, exact_text=False)
    return raws, document.problems + problems


def _json_lines(text: str) -> tuple[list[RawTask], list[Problem]]:
    raws: list[RawTask] = []
    problems: list[Problem] = []
    for document in json_lines(text):
        problems += document.problems
        if document.value is not None or not document.problems:
            _record(document.value, document.lines, (), False, raws, problems)
    return raws, problems


def _records(value: Any, lines: Mapping[Path, int], exact_text: bool) -> tuple[list[RawTask], list[Problem]]:
    """Tasks of a document: a list of them, a mapping with such a list under ``tasks``, or one task."""
    raws: list[RawTask] = []
    problems: list[Problem] = []
    prefix: Path = ()
    if isinstance(value, Mapping) and "tasks" in value:
        for key in value.keys() - {"tasks"}:
            problems.append(Problem(lines[(key,)], f'unknown field "{key}" beside "tasks"'))
        prefix, value = ("tasks",), value["tasks"]
    if isinstance(value, list):
        for i, item in enumerate(value):
            _record(item, lines, (*prefix, i), exact_text, raws, problems)
    elif value is not None:
        _record(value, lines, prefix, exact_text, raws, problems)
    return raws, problems


def _record(
    value: Any, lines: Mapping[Path, int], at: Path, exact_text: bool, raws: list[RawTask], problems: list[Problem]
) -> None:
    line = lines[at]
    if isinstance(value, str):
        raws.append(RawTask({"description": value}, line))
    elif isinstance(value, Mapping):
        raws.append(RawTask(value, line, lines, at, exact_text))
    else:
        problems.append(Problem(line, f"a task is a mapping of fields or the text of a goal, not {value!r}"))


READERS: Mapping[str, Reader] = {
    ".txt": _text,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".json": _json,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}
"""How to read a file, by its suffix."""
