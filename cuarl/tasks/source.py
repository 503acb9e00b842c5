"""From what a person typed after ``--tasks`` to tasks.

A selector is ``all``, a category, a difficulty, a device, a suite, ``suite/glob``, an id, an id glob, a file, a suite's
folder, ``-`` for ids on standard input, or the recipe's JSON source objects. Several are united, each task once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TextIO

from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean
from cuarl.tasks.files import READERS, Located, as_path, load_file, merge
from cuarl.tasks.library import ALL, Library
from cuarl.tasks.recipe import load_source, read_sources
from cuarl.tasks.select import Count, Filters, apply, require_some, some
from cuarl.tasks.suites import SUITE_FILE, Role, load_suite
from cuarl.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Selection:
    """The tasks that were selected, and what a person should know about the selection."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()
    counts: tuple[Count, ...] = ()
    """How many tasks each filter left."""

    @property
    def digest(self) -> str:
        """Digest of the tasks' contents, whatever their order and files, hexadecimal."""
        return hashlib.sha256("".join(sorted(task.digest for task in self.tasks)).encode()).hexdigest()


class _Selector(NamedTuple):
    text: str
    is_json: bool


def load(
    selectors: Sequence[str] = (),
    filters: Filters | None = None,
    *,
    stdin: TextIO | None = None,
    role: Role | None = "train",
    folders: Sequence[Path] | None = None,
    allow_empty: bool = False,
) -> Selection:
    """Select tasks; without selectors, ``all``.

    ``role`` limits what categories, difficulties, devices, globs and ``all`` pick to suites of that role (None: any),
    and to tasks of the phone unless the device or ``filters.envs`` names another; what is named by suite or id is
    picked anyway, with a note. Of tasks that have a split, training takes those to train on and evaluation the others,
    unless ``filters.splits`` says which. ``folders`` are where suites lie: None means the shipped ones,
    ``[shipped_folder(), mine]`` adds others.

    Raises TaskError: broken files, unknown names with did-you-mean, two tasks of one id, and unless ``allow_empty`` an
    empty selection, with the filter that emptied it.
    """
    filters = filters or Filters()
    library = Library.open(folders, role, filters.envs)
    filters = replace(filters, suites=library.suite_names(filters.suites))
    located, barren = locate(selectors, library, stdin)
    if not located and not allow_empty:
        raise TaskError(barren[0], where="--tasks", hint="cuarl tasks list")
    found, repeated = merge(located)
    tasks = [task for task in found if filters.splits or _is_for(task, role)]
    kept, counts = apply(tasks, filters)
    if not allow_empty:
        require_some(kept, counts, len(tasks))
    left_out = [f"left out, not for {role}: {len(found) - len(tasks)} (--split)"] if len(tasks) < len(found) else []
    notes = [*barren, *left_out, *_notes(kept, located, repeated, filters, library)]
    return Selection(tuple(kept), tuple(notes), tuple(counts))


def _is_for(task: Task, role: Role | None) -> bool:
    """Whether a task may be taken for a role by its split."""
    return task.split is None or role not in ("train", "eval") or (task.split == "train") == (role == "train")


class Picked(NamedTuple):
    """What selectors pick."""

    located: list[Located]
    """In their order, repetitions included."""
    barren: list[str]
    """Which selectors picked nothing, in words."""


def locate(selectors: Sequence[str], library: Library, stdin: TextIO | None = None) -> Picked:
    """Everything that selectors pick. Raises TaskError."""
    picked = Picked([], [])
    unknown: list[str] = []
    for selector in split(selectors) or [_Selector(ALL, False)]:
        found = _resolve(selector, library, stdin)
        if found is None:
            unknown.append(selector.text)
        elif found:
            picked.located.extend(found)
        else:
            whose = f"{library.role} suite" if library.role else "suite"
            picked.barren.append(f'no {whose} has a task of "{selector.text}"')
    if unknown:
        raise library.unknown(unknown)
    return picked


def split(selectors: Sequence[str]) -> list[_Selector]:
    """Single selectors of comma-separated ones; JSON objects and names of existing files stay whole."""
    found: list[_Selector] = []
    for text in selectors:
        rest = text.strip()
        path = as_path(rest)
        if path and path.is_file():
            found.append(_Selector(rest, False))
            continue
        while rest:
            if rest[0] in "{[":
                one, rest = _split_json(rest)
                found.append(_Selector(one, True))
            else:
                one, _, rest = rest.partition(",")
                found += [_Selector(one.strip(), False)] if one.strip() else []
            rest = rest.lstrip(", ")
    return found


def _split_json(text: str) -> tuple[str, str]:
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        hint = """--tasks '{"source_type": "demo_training", "category": "settings"}'"""
        raise TaskError(f"not a JSON task source: {error}", where=f"--tasks {text}", hint=hint) from error
    return text[:end], text[end:]


def _resolve(selector: _Selector, library: Library, stdin: TextIO | None) -> list[Located] | None:
    text, is_json = selector
    if is_json:
        return [one for source in read_sources(text) for one in load_source(source, library)]
    if text == "-":
        return _from_stdin(stdin, library)
    path = as_path(text)
    if Path(text).suffix.lower() in READERS or (path and "/" in text and path.is_file()):
        return load_file(path or Path(text))
    if path and "/" in text and (path / SUITE_FILE).is_file():
        return list(load_suite(path).located)
    return library.pick(text)


def _from_stdin(stdin: TextIO | None, library: Library) -> list[Located]:
    if stdin is None or stdin.closed or stdin.isatty():
        raise TaskError(
            "no ids came on standard input", where="--tasks -", hint="cuarl tasks filter --ids | cuarl … --tasks -"
        )
    names = [line.strip() for line in stdin if line.strip() and not line.lstrip().startswith("#")]
    if not names:
        raise TaskError("standard input held no ids", where="--tasks -", hint="cuarl tasks filter --ids")
    return library.by_id(names)


def _notes(
    kept: Sequence[Task], located: Sequence[Located], repeated: int, filters: Filters, library: Library
) -> list[str]:
    notes = []
    ids = {task.id for task in kept}
    roles = {one.task.id: library.role_of(one) for one in located if one.task.id in ids}
    strangers = [task_id for task_id, role in roles.items() if library.role and role not in (None, library.role)]
    if repeated:
        notes.append(f"selected more than once, counted once: {repeated}")
    if strangers:
        notes.append(f"from suites that are not for {library.role}: {some(strangers)}")
    if filters.limit and len(kept) < filters.limit:
        notes.append(f"fewer tasks than the limit of {filters.limit}: {len(kept)}")
    unscorable = [task.id for task in kept if not task.scorable]
    if unscorable:
        notes.append(f"without checks, so only a judge model could score them: {some(unscorable)}")
    return notes


def named(word: str, library: Library) -> list[Located]:
    """The task of an id, those of a file, or one of a file. Raises TaskError."""
    name, _, task_id = word.partition("#")
    path = as_path(name)
    if path is None or path.is_dir():
        return library.by_id([word])
    there = load_file(path)
    found = [one for one in there if task_id in ("", one.task.id)]
    if not found:
        near = did_you_mean(task_id, [one.task.id for one in there])
        raise TaskError(f'no task of the file is called "{task_id}"{near}', where=name, hint=f"cuarl tasks show {name}")
    return found
