"""Tasks made of what a person typed: a goal, and what must hold at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import yaml

from cuarl.errors import ConfigError
from cuarl.suggest import did_you_mean
from cuarl.tasks.task import Check, Task

OPERATORS: tuple[str, ...] = get_args(Check.model_fields["op"].annotation)


def read_check(text: str, *, where: str, hint: str) -> Check:
    """A check as people write it: ``PATH OPERATOR VALUE``, the value as YAML. Raises ConfigError."""
    path, _, rest = text.strip().partition(" ")
    operator, _, value = rest.strip().partition(" ")
    if not path or operator not in OPERATORS:
        near = did_you_mean(operator, OPERATORS) if operator else ""
        raise ConfigError(
            f'"{text}" is not a check: "{operator}" is no operator{near}',
            where=where,
            hint=f"{hint}   # operators: {', '.join(OPERATORS)}",
        )
    return Check.model_validate({"path": path, "op": operator, "value": yaml_value(value)})


def yaml_value(text: str) -> Any:
    """A value as YAML reads it, or the text itself where it is none."""
    try:
        return yaml.safe_load(text) if text.strip() else None
    except yaml.YAMLError:
        return text.strip()


def read_arguments(pairs: Sequence[str], where: str) -> dict[str, Any]:
    """``NAME=VALUE``, the values as YAML. Raises ConfigError."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f'"{pair}" is no argument', where=where, hint="NAME=VALUE")
        found[name.strip()] = yaml_value(value)
    return found


def made_task(
    name: str, env: str, goal: str, checks: Sequence[Check], preset: Mapping[str, Any], *, max_steps: int
) -> Task:
    """A task of ``env`` with exactly this goal and preset: braces in them are no parameters."""
    told = repr((env, goal, tuple(checks), sorted(preset.items(), key=str)))
    params = {"goal": (goal,), **{key: (value,) for key, value in preset.items()}}
    return Task(
        id=f"{name}.{hashlib.sha256(told.encode()).hexdigest()[:8]}",
        description="{goal}",
        env=env,
        category="app",
        max_steps=max_steps,
        preset={key: f"{{{key}}}" for key in preset},
        checks=tuple(checks),
        params=params,
    )
