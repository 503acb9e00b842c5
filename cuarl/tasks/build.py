"""From a task as written to a ``Task``.

Field names, texts, categories, ids, placeholders and checks, or what is wrong.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cuarl import strict_json
from cuarl.suggest import did_you_mean
from cuarl.tasks.operators import check_problem
from cuarl.tasks.queries import resolve
from cuarl.tasks.raw import Path, Problem, RawTask
from cuarl.tasks.task import (
    CATEGORIES,
    DEVICES,
    DIFFICULTIES,
    Check,
    Task,
    TaskInstance,
    has_placeholder,
    placeholders,
)

SYNONYMS: Mapping[str, str] = {"goal": "description", "prompt": "description", "instruction": "description"}
"""Other names that task files use for a field."""

TEXT_FIELDS = (
    "id",
    "description",
    "name",
    "difficulty",
    "category",
    "env",
    "validation_type",
    "validation_query",
    "split",
    "suite",
)
TEXT_LISTS = ("allow", "tags", "prerequisites")
CHECK_TEXT_FIELDS = ("path", "op")
FOLDED_FIELDS = ("difficulty", "category", "env", "validation_type", "split", "suite")
"""Case and surrounding space don't count in these."""

_ID = re.compile(r"\w[\w.:@+-]*")
_RESERVED = {*CATEGORIES, *DIFFICULTIES, *DEVICES, "all"}
_TYPED_OPS = ("matches", "ge", "le", "between")


class Broken(Exception):
    """A task can't be built; carries all that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


def build(raw: RawTask, defaults: Mapping[str, Any] | None = None) -> Task:
    """Make a task of what was written; ``defaults`` stand in for fields that were not. Raises Broken."""
    problems: list[Problem] = []
    data = _texts(_renamed(raw, problems), raw, problems)
    data = {**(defaults or {}), **data}
    description = data.get("description")
    if isinstance(description, str):
        data["description"] = description.strip()
        data.setdefault("id", goal_id(data["description"]))
        if not data["description"]:
            problems.append(Problem(raw.line_of(("description",)), "description is empty"))
    if isinstance(data.get("id"), str):
        problems += [Problem(raw.line_of(("id",)), text) for text in _id_problems(data["id"])]
    try:
        text = json.dumps(data, allow_nan=False)
    except ValueError:
        strange = strict_json.not_finite(data) or ()
        where = ".".join(map(str, strange))
        raise Broken([*problems, Problem(raw.line_of(strange), f"{where} is not a finite number")]) from None
    task = None
    try:
        # Through JSON, where strict means: lists are lists, and neither "5" nor true is a number.
        task = Task.model_validate_json(text, strict=True)
    except ValidationError as error:
        problems += [Problem(raw.line_of(e["loc"]), _in_words(e)) for e in error.errors(include_url=False)]
    if task is None or problems:
        raise Broken(problems)
    return _with_checks(task, raw, templated=bool(task.params) or has_placeholder(text))


def goal_id(goal: str) -> str:
    """Id of a task that has none: its first words, and a digest that tells apart goals that start alike."""
    words = re.findall(r"[a-z0-9]+", goal.casefold()) or ["goal"]
    digest = hashlib.sha256(goal.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return "-".join([*words[:5], digest])


def bindings(task: Task, limit: int = 200) -> Iterator[TaskInstance]:
    """Instances of a task, one for each combination of its parameters' values, up to ``limit``."""
    names = sorted(task.params)
    combinations = itertools.product(*(task.params[name] for name in names))
    for values in itertools.islice(combinations, limit):
        yield task.bind(dict(zip(names, values, strict=True)))


def _id_problems(task_id: str) -> Iterator[str]:
    if not _ID.fullmatch(task_id):
        yield f'id "{task_id}" must be letters, digits and any of _ . : @ + -, and begin with a letter, digit or _'
    elif task_id.casefold() in _RESERVED:
        yield f'id "{task_id}" is the name of a selection; choose another'


def _renamed(raw: RawTask, problems: list[Problem]) -> dict[str, Any]:
    data = dict(raw.data)
    for synonym, field in SYNONYMS.items():
        if synonym in data and field in data:
            problems.append(Problem(raw.line_of((synonym,)), f'"{synonym}" and "{field}" mean the same: keep one'))
            del data[synonym]
        elif synonym in data:
            data[field] = data.pop(synonym)
    return data


def _texts(data: dict[str, Any], raw: RawTask, problems: list[Problem]) -> dict[str, Any]:
    """Give text fields text: what was written, where the format keeps that (see ``RawTask.exact_text``)."""

    def text(value: Any, *path: str | int) -> Any:
        if isinstance(value, int) and (raw.exact_text or not isinstance(value, bool)):
            return json.dumps(value)
        if isinstance(value, float) and raw.exact_text:
            return str(value)
        if isinstance(value, bool | float):
            where = ".".join(map(str, path))
            problems.append(Problem(raw.line_of(path), f"{where} is a text: write {json.dumps(value)} in quotes"))
            return str(value)
        return value

    for field in TEXT_FIELDS:
        if field in data:
            data[field] = text(data[field], field)
            if field in FOLDED_FIELDS and isinstance(data[field], str):
                data[field] = data[field].strip().casefold()
    for field in TEXT_LISTS:
        if isinstance(data.get(field), list):
            data[field] = [text(item, field, i) for i, item in enumerate(data[field])]
    if isinstance(data.get("checks"), list):
        data["checks"] = [
            {k: text(v, "checks", i, k) if k in CHECK_TEXT_FIELDS else v for k, v in check.items()}
            if isinstance(check, Mapping)
            else check
            for i, check in enumerate(data["checks"])
        ]
    return data


def _in_words(error: ErrorDetails) -> str:
    if error["type"] == "json_invalid":
        return f"a text is not Unicode: {error['msg'].split(' at line')[0]}"
    *holder, last = error["loc"]
    where, value = ".".join(map(str, error["loc"])), error["input"]
    if error["type"] == "extra_forbidden":
        known = Check.model_fields if holder else Task.model_fields
        return f'unknown field "{last}"{did_you_mean(str(last), known)}'
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] == "literal_error":
        kind = {"category": CATEGORIES, "difficulty": DIFFICULTIES}.get(where, ())
        known = error.get("ctx", {}).get("expected", "")
        near = did_you_mean(str(value), kind)
        return f'unknown {where} "{value}"{near or f": use {known}"}'
    return f"{where}: {error['msg'][:1].lower()}{error['msg'][1:]}, not {json.dumps(value, ensure_ascii=False)}"


def _with_checks(task: Task, raw: RawTask, *, templated: bool) -> Task:
    """The task with its checks resolved and its placeholders, if it is ``templated``, proven to have values."""
    found = _placeholder_problems(task) if templated else ()
    problems = [Problem(raw.line_of(path), text) for path, text in found]
    try:
        task = task.model_copy(update={"checks": resolve(task)})
    except ValueError as error:
        problems.append(Problem(raw.line_of(("validation_query",)), str(error)))
    if not problems:
        problems = [Problem(raw.line_of(("checks", i)), text) for i, text in _check_problems(task, templated=templated)]
    if problems:
        raise Broken(problems)
    return task


def _check_problems(task: Task, *, templated: bool) -> Iterator[tuple[int, str]]:
    for i, check in enumerate(task.checks):
        filled = [check]
        if templated and placeholders(check.value):
            filled = [instance.checks[i] for instance in bindings(task)] if check.op in _TYPED_OPS else []
        found = next(filter(None, map(check_problem, filled)), None)
        if found:
            yield i, f'check "{check.path}": {found}'


def _placeholder_problems(task: Task) -> Iterator[tuple[Path, str]]:
    for name, values in task.params.items():
        if not values:
            yield ("params",), f'parameter "{name}" has no values'
    used = {field: placeholders(getattr(task, field)) for field in ("description", "preset", "allow", "plan")}
    used["expected_result"] = placeholders(task.expected_result)
    used["checks"] = {p for c in task.checks for p in placeholders([c.path, c.value])}
    for field, found in used.items():
        for name, part in sorted(found, key=str):
            if name not in task.params:
                yield (
                    (field,),
                    f'{field} names a parameter "{{{name}}}" that is not given{did_you_mean(name, task.params)}',
                )
            elif part and not all(isinstance(v, Mapping) and part in v for v in task.params[name]):
                yield (field,), f'{field} names "{{{name}.{part}}}", which not every value of "{name}" has'
    unused = task.params.keys() - {name for found in used.values() for name, _ in found}
    for name in sorted(unused):
        yield ("params", name), f'parameter "{name}" is used nowhere'
