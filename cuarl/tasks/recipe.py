"""The recipe's ``TaskSourceConfig``: task selections as JSON objects, with the same fields and defaults.

They differ from the recipe where that lost or hid something: an unknown id is an error and not a warning, a field that
the source does not use is an error, tasks that several sources name count once, and tasks without an id get one from
their text and not from their position, so that inserting a line renames nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, ValidationError

from cuarl import strict_json
from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean
from cuarl.tasks.build import Broken, build
from cuarl.tasks.files import Located, as_path, load_file, load_files, merge
from cuarl.tasks.library import Library
from cuarl.tasks.raw import RawTask
from cuarl.tasks.select import Filters, apply, require_some
from cuarl.tasks.suites import task_files
from cuarl.types import Record

SourceType = Literal[
    "demo_training", "demo_eval", "demo_all", "ids", "file", "custom", "task_adapter", "genv_umetrip", "gym"
]


class TaskSource(Record):
    """One selection of tasks."""

    source_type: SourceType
    task_ids: tuple[str, ...] = ()
    category: str | None = None
    difficulty: str | None = None
    file_path: str | None = None
    custom_tasks: tuple[str, ...] = ()
    tasks_dir: str | None = None
    task_names: str | None = None
    """Comma-separated."""
    train_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.8
    split_type: Literal["train", "eval", "none"] = "none"
    limit: PositiveInt | None = None
    seed: int = 42


_COMMON = {"source_type", "category", "difficulty", "limit", "seed"}
_OWN_FIELDS: Mapping[str, set[str]] = {
    "demo_training": set(),
    "demo_eval": set(),
    "demo_all": set(),
    "ids": {"task_ids"},
    "file": {"file_path"},
    "custom": {"custom_tasks"},
    "task_adapter": {"tasks_dir", "task_names", "train_ratio", "split_type"},
    "gym": {"task_names", "train_ratio", "split_type"},
    "genv_umetrip": {"task_names", "train_ratio", "split_type"},
}
_DEMO = {"demo_training": ("demo_training",), "demo_eval": ("demo_eval",), "demo_all": ("demo_training", "demo_eval")}


def read_sources(text: str) -> list[TaskSource]:
    """The sources in a JSON text of the command line. Raises TaskError."""
    try:
        return parse_sources(strict_json.loads(text))
    except strict_json.NotJson as error:
        raise TaskError(f"not a JSON task source: {error}", where=f"--tasks {text[:200]}") from error


def parse_sources(data: Any, where: str = "--tasks") -> list[TaskSource]:
    """Read one source object or a list of them. Raises TaskError."""
    objects = data if isinstance(data, list) else [data]
    if not objects:
        raise TaskError("the list of task sources is empty", where=where)
    return [_parse(one, f"{where}, source {i}" if len(objects) > 1 else where) for i, one in enumerate(objects, 1)]


def load_source(source: TaskSource, library: Library, where: str = "--tasks") -> list[Located]:
    """Tasks of one source, filtered, split and limited as it says. Raises TaskError, also if none is left."""
    found = _split(_pool(source, library, where), source)
    filters = Filters(
        categories=(source.category,) if source.category else (),
        difficulties=(source.difficulty,) if source.difficulty else (),
        limit=source.limit,
        seed=source.seed,
    )
    tasks, repeated = merge(found)
    kept, counts = apply(tasks, filters)
    try:
        require_some(kept, counts, len(found) - repeated)
    except TaskError as error:
        raise TaskError(error.what, where=f"{where}, {source.source_type}: {error.where}", hint=error.hint) from None
    ids = {task.id for task in kept}
    return [one for one in found if one.task.id in ids]


def _pool(source: TaskSource, library: Library, where: str) -> list[Located]:
    match source.source_type:
        case "ids":
            return library.by_id(source.task_ids)
        case "file":
            path = source.file_path or ""
            return load_file(as_path(path) or Path(path))
        case "custom":
            return _custom(source, where)
        case "task_adapter":
            return _of_folder(source)
        case "gym" | "genv_umetrip":
            raise TaskError(
                f'source_type "{source.source_type}" names tasks of a gym server, which need its devices',
                where=where,
                hint="--env gym",
            )
    named = [library.pick(name) for name in _DEMO[source.source_type]]
    missing = [name for name, found in zip(_DEMO[source.source_type], named, strict=True) if found is None]
    if missing:
        raise library.unknown(missing)
    return [one for found in named for one in found or ()]


def _custom(source: TaskSource, where: str) -> list[Located]:
    found = []
    for i, goal in enumerate(source.custom_tasks):
        try:
            found.append(Located(build(RawTask({"description": goal}, i + 1)), where, i + 1))
        except Broken as broken:
            raise TaskError(broken.problems[0].text, where=f"{where}, custom_tasks[{i}]") from broken
    return found


def _of_folder(source: TaskSource) -> list[Located]:
    folder = as_path(source.tasks_dir or "")
    if folder is None or not folder.is_dir():
        raise TaskError("the folder of task files does not exist", where=source.tasks_dir)
    found = load_files(task_files(folder))
    names = [name.strip() for name in (source.task_names or "").split(",") if name.strip()]
    known = {name for one in found for name in (one.task.id, one.task.name)}
    for name in names:
        if name not in known:
            raise TaskError(f'no task is called "{name}"{did_you_mean(name, known)}', where=str(folder))
    return [one for one in found if not names or one.task.id in names or one.task.name in names]


def _split(found: list[Located], source: TaskSource) -> list[Located]:
    """The share of the tasks that trains, or the rest, drawn by the seed."""
    if source.split_type == "none":
        return found
    ids = sorted({one.task.id for one in found})
    random.Random(source.seed).shuffle(ids)
    training = set(ids[: round(len(ids) * source.train_ratio)])
    return [one for one in found if (one.task.id in training) == (source.split_type == "train")]


def _parse(data: Any, where: str) -> TaskSource:
    try:
        source = TaskSource.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        what = f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}" if field else "a task source is a JSON object"
        if first["type"] == "extra_forbidden":
            what = f'unknown field "{field}"{did_you_mean(field, TaskSource.model_fields)}'
        elif first["type"] == "literal_error":
            what = f'unknown {field} "{first["input"]}"{did_you_mean(str(first["input"]), _OWN_FIELDS)}'
        elif first["type"] == "missing":
            what = f"{field} is missing"
        raise TaskError(what, where=where, hint="docs/guides/tasks.md lists the fields of a source") from error
    own = _OWN_FIELDS[source.source_type]
    for field in sorted(source.model_fields_set - _COMMON - own):
        raise TaskError(f'{field} has no effect with source_type "{source.source_type}"', where=where)
    for field in sorted(own & {"task_ids", "file_path", "custom_tasks", "tasks_dir"}):
        if not getattr(source, field):
            raise TaskError(f'source_type "{source.source_type}" needs {field}', where=where)
    return source
