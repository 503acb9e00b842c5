"""Task suites: folders of task files with a ``suite.yaml`` that says what they are for.

The shipped suites lie beside this module in an installed package, and in the ``tasks`` folder of a checkout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from cuarl.errors import TaskError
from cuarl.regular_file import read_regular
from cuarl.suggest import did_you_mean
from cuarl.tasks.files import READERS, Located, combined, load_files, merge
from cuarl.tasks.raw import Problem, decode, failure
from cuarl.tasks.task import Task
from cuarl.tasks.yaml_format import YamlDocument
from cuarl.types import Record

Role = Literal["train", "eval", "other"]

SUITE_FILE = "suite.yaml"


class Suite(Record):
    """What ``suite.yaml`` says."""

    name: str
    """The same as the folder's."""
    description: str = ""
    env: str = "phone"
    """Environment of its tasks, where they don't say."""
    role: Role = "other"
    """What its tasks are for. Train and eval suites share no goal; others are taken only by name."""
    aliases: tuple[str, ...] = ()
    """Other names that select it, e.g. ``demo_training``; several suites may share one."""


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite and its tasks, in the order of its files' names and then of the files."""

    suite: Suite
    folder: Path
    located: tuple[Located, ...]

    @property
    def name(self) -> str:
        """Name of the suite."""
        return self.suite.name

    @property
    def tasks(self) -> list[Task]:
        """Its tasks, each id once."""
        return merge(self.located)[0]


def shipped_folder() -> Path:
    """Where the suites lie that come with cuarl."""
    installed = Path(__file__).parent / "suites"
    checkout = Path(__file__).parents[2]
    return checkout / "tasks" if (checkout / "pyproject.toml").is_file() and not installed.is_dir() else installed


def load_suites(folders: Sequence[Path] | None = None) -> list[LoadedSuite]:
    """The suites in some folders (None: the shipped ones), sorted by name.

    Raises TaskError if a suite is broken, two have one name, or one id stands for different tasks.
    """
    loaded: dict[str, LoadedSuite] = {}
    errors = []
    for folder in suite_folders(folders):
        try:
            suite = load_suite(folder)
        except TaskError as error:
            errors.append(error)
            continue
        other = loaded.setdefault(suite.name, suite)
        if other is not suite:
            raise TaskError(f'two suites are named "{suite.name}"', where=f"{other.folder} and {folder}")
    if errors:
        raise combined(errors)
    suites = sorted(loaded.values(), key=lambda suite: suite.name)
    merge(one for suite in suites for one in suite.located)
    return suites


def suite_folders(folders: Sequence[Path] | None = None) -> Iterator[Path]:
    """Every suite's folder: the given ones, or those in them (None: those in the shipped one). Raises TaskError."""
    for parent in (shipped_folder(),) if folders is None else folders:
        if not parent.is_dir():
            raise TaskError("the folder of task suites does not exist", where=str(parent))
        if (parent / SUITE_FILE).is_file():
            yield parent
        yield from sorted(path.parent for path in parent.glob(f"*/{SUITE_FILE}"))


def load_suite(folder: Path) -> LoadedSuite:
    """One suite. Raises TaskError listing the problems of all its files."""
    suite = _read_suite(folder / SUITE_FILE)
    defaults = {"suite": suite.name, "env": suite.env}
    located = load_files(task_files(folder), defaults)
    for one in located:
        if one.task.suite != suite.name:
            raise TaskError(f'the task says it is of suite "{one.task.suite}", not "{suite.name}"', where=one.where)
    if not located:
        raise TaskError(f'suite "{suite.name}" has no task files', where=str(folder), hint="cuarl tasks schema")
    merge(located)
    return LoadedSuite(suite, folder, tuple(located))


def task_files(folder: Path) -> list[Path]:
    """Task files of a folder, by name."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in READERS and p.name != SUITE_FILE and p.is_file())


def _read_suite(path: Path) -> Suite:
    try:
        text = decode(read_regular(path), str(path))
    except OSError as error:
        raise TaskError(f"the suite can't be read: {error.strerror}", where=str(path)) from error
    document = YamlDocument(text)
    problems = document.problems
    data = document.value if isinstance(document.value, dict) else {}
    try:
        suite = Suite.model_validate({"name": path.parent.name, **data})
    except ValidationError as error:
        for e in error.errors(include_url=False):
            field = str(e["loc"][0])
            text = f"{field}: {e['msg'][:1].lower()}{e['msg'][1:]}"
            if e["type"] == "extra_forbidden":
                text = f'unknown field "{field}"{did_you_mean(field, Suite.model_fields)}'
            problems = [*problems, Problem(document.lines.get((field,), 1), text)]
    if problems:
        raise failure(problems, str(path), "cuarl tasks schema --suite")
    if suite.name != path.parent.name:
        raise TaskError(f'the suite is named "{suite.name}", but its folder "{path.parent.name}"', where=str(path))
    return suite
