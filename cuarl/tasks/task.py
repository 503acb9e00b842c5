"""A task: what to do, how to set the device up, and how to tell that it is done.

A ``Task`` is a template; ``instantiate(seed)`` fills its parameters and gives a ``TaskInstance``, the thing an
environment is reset to. Field names follow the recipe's task format, so that its files load unchanged.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, PositiveInt

from cuarl import strict_json
from cuarl.types import Record

Category = Literal["system", "navigation", "settings", "app", "input"]
Difficulty = Literal["easy", "medium", "hard"]
Split = Literal["train", "wording", "object", "kind", "app"]
CATEGORIES: tuple[Category, ...] = ("system", "navigation", "settings", "app", "input")
DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard")
SPLITS: tuple[Split, ...] = ("train", "wording", "object", "kind", "app")

DEVICES: tuple[str, ...] = ("phone", "desktop")
"""Kinds of devices, whose names select their tasks."""

JUDGES: tuple[str, ...] = ("gym", "openenv", "program")
"""Environments that give the verdict themselves, so that their tasks need no checks."""

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)(?:\.([a-z_][a-z0-9_]*))?\}")


class Check(Record):
    """One condition on the device's state, or on the answer (``path: answer``)."""

    path: str
    """Dotted path into the state mapping, e.g. ``network.wifi.enabled``; ``answer`` is the agent's reported text."""
    op: Literal[
        "equals",
        "not_equals",
        "contains",
        "not_contains",
        "icontains",
        "matches",
        "ge",
        "le",
        "between",
        "empty",
        "not_empty",
        "has",
        "lacks",
    ] = "equals"
    """``has``/``lacks``: a list at ``path`` has (lacks) an item whose fields include those of the mapping ``value``."""
    value: Any = None


class TaskInstance(Record):
    """A task with its parameters filled in: what an environment is reset to and a verdict is given on."""

    task_id: str
    goal: str
    env: str = "phone"
    category: Category = "system"
    difficulty: Difficulty = "medium"
    max_steps: PositiveInt = 10
    preset: Mapping[str, Any] = Field(default_factory=dict)
    """State paths and the values they start with."""
    checks: tuple[Check, ...] = ()
    allow: tuple[str, ...] = ()
    """Globs of state paths that may change without being a side effect."""
    plan: tuple[Mapping[str, Any], ...] = ()
    """Sub-goals for the oracle where a plan can't be derived from the checks."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    split: Split | None = None

    @classmethod
    def read(cls, text: str) -> TaskInstance:
        """The one that ``model_dump_json`` wrote.

        Raises ValueError for anything else, numbers that are not finite included.
        """
        return cls.model_validate_json(strict_json.dumps(strict_json.loads(text)))

    @property
    def digest(self) -> str:
        """Stable digest of everything above, hexadecimal."""
        return _digest(self)


class Task(Record):
    """A task as a suite declares it. ``{name}`` (or ``{name.field}``) in any text stands for a parameter."""

    id: str
    description: str
    """The goal as the agent is told it."""
    name: str = ""
    difficulty: Difficulty = "medium"
    category: Category = "system"
    max_steps: PositiveInt = 10
    env: str = "phone"
    """Kind of environment it needs: ``phone``, ``desktop``, or a backend's name."""
    validation_type: Literal["state", "screenshot", "api"] = "state"
    validation_query: str | None = None
    """The recipe's name of a validator, with ``expected_result``; ``checks`` say the same in full."""
    expected_result: Any = None
    checks: tuple[Check, ...] = ()
    preset: Mapping[str, Any] = Field(default_factory=dict)
    allow: tuple[str, ...] = ()
    plan: tuple[Mapping[str, Any], ...] = ()
    params: Mapping[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Values to draw from, by parameter name: scalars, or mappings whose fields belong together."""
    tags: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()
    split: Split | None = None
    """``train``, or what is new in a task that is held out: a wording, an object, a kind of goal, an app. Training
    takes the first, evaluation the others, unless a filter says otherwise."""
    suite: str = ""
    """Filled in by the loader."""

    @property
    def scorable(self) -> bool:
        """Whether a verdict can be given at all."""
        return bool(self.checks or self.validation_query) or self.env in JUDGES

    @property
    def digest(self) -> str:
        """Stable digest of the content, hexadecimal: the same whatever file or suite the task was read from."""
        return _digest(self)

    def instantiate(self, seed: int) -> TaskInstance:
        """Draw the parameters from ``seed`` (stable across processes and machines) and fill them in."""
        rng = random.Random(f"{self.id}/{seed}")
        return self.bind({name: rng.choice(list(values)) for name, values in sorted(self.params.items())})

    def bind(self, params: Mapping[str, Any]) -> TaskInstance:
        """Fill in the given parameters. Raises KeyError if one that a text names is missing."""
        return TaskInstance(
            task_id=self.id,
            goal=fill(self.description, params),
            env=self.env,
            category=self.category,
            difficulty=self.difficulty,
            max_steps=self.max_steps,
            preset={fill(k, params): fill(v, params) for k, v in self.preset.items()},
            checks=tuple(Check(path=fill(c.path, params), op=c.op, value=fill(c.value, params)) for c in self.checks),
            allow=tuple(fill(a, params) for a in self.allow),
            plan=tuple(fill(p, params) for p in self.plan),
            params=params,
            tags=self.tags,
            split=self.split,
        )


def _digest(task: Task | TaskInstance) -> str:
    """Digest of the content; a task without a split has the one that it had before there were any."""
    data = task.model_dump(mode="json", exclude={"suite"} if task.split else {"suite", "split"})
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def fill(value: Any, params: Mapping[str, Any]) -> Any:
    """Replace ``{name}`` and ``{name.field}`` in strings, at any depth; a lone placeholder keeps the value's type.

    Raises KeyError for an unknown parameter.
    """
    if isinstance(value, str):
        if "{" not in value:
            return value
        whole = _FIELD.fullmatch(value)
        if whole:
            return _lookup(whole, params)
        return _FIELD.sub(lambda m: str(_lookup(m, params)), value)
    if isinstance(value, Mapping):
        return {fill(k, params): fill(v, params) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [fill(v, params) for v in value]
    return value


def has_placeholder(text: str) -> bool:
    """Whether a text, that of plain data written as JSON too, has a placeholder in it."""
    return _FIELD.search(text) is not None


def placeholders(value: Any) -> set[tuple[str, str | None]]:
    """Every ``{name}`` and ``{name.field}`` in strings, at any depth, as (name, field or None)."""
    if isinstance(value, str):
        return {(m[1], m[2]) for m in _FIELD.finditer(value)}
    if isinstance(value, Mapping):
        return placeholders([*value.keys(), *value.values()])
    if isinstance(value, list | tuple):
        return {found for item in value for found in placeholders(item)}
    return set()


def _lookup(match: re.Match[str], params: Mapping[str, Any]) -> Any:
    found = params[match[1]]
    return found[match[2]] if match[2] else found
