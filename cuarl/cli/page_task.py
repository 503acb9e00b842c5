"""A task made of options: a page by its address, a goal, and what must hold at the end."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import yaml

from cuarl.config.load import did_you_mean
from cuarl.errors import ConfigError
from cuarl.tasks.task import Check, Task

OPERATORS: tuple[str, ...] = get_args(Check.model_fields["op"].annotation)
SCRIPT = "js:"
EXAMPLE = "--check 'text icontains Thank you'"
MAX_STEPS = 30


def page_task(url: str, goal: str | None, checks: Sequence[str]) -> Task:
    """The task of ``--url``, ``--task`` and ``--check``. Raises ConfigError."""
    if not goal:
        raise ConfigError("--url needs a goal for the agent", hint="--task 'Put a lamp into the cart'")
    if not checks:
        raise ConfigError("--url needs a condition by which the episode is judged", hint=EXAMPLE)
    made, read = [], {}
    for number, text in enumerate(checks):
        if text.startswith(SCRIPT):
            read[f"check{number}"] = text.removeprefix(SCRIPT).strip()
            made.append(Check(path=f"read.check{number}", value=True))
        else:
            made.append(_check(text))
    name = hashlib.sha256(repr((url, goal, tuple(checks))).encode()).hexdigest()[:8]
    preset = {"url": _address(url), **({"read": read} if read else {})}
    # braces would be taken for parameters of the task
    return Task(
        id=f"page.{name}", description="{goal}", env="browser", category="app", max_steps=MAX_STEPS,
        preset={key: f"{{{key}}}" for key in preset}, checks=tuple(made), params={"goal": (goal,), **{k: (v,) for k, v in preset.items()}},
    )  # fmt: skip


def _check(text: str) -> Check:
    """``PATH VALUE-IS-TRUE``, ``PATH OPERATOR`` or ``PATH OPERATOR VALUE``; the value is read as YAML."""
    path, _, rest = text.strip().partition(" ")
    operator, _, value = rest.strip().partition(" ")
    if not path or operator not in OPERATORS:
        near = did_you_mean(operator, OPERATORS) if operator else ""
        raise ConfigError(
            f'"{text}" is not a check: "{operator}" is no operator{near}',
            where="--check", hint=f"{EXAMPLE}   # or js: and an expression; operators: {', '.join(OPERATORS)}",
        )  # fmt: skip
    return Check.model_validate({"path": path, "op": operator, "value": _value(value)})


def _value(text: str) -> Any:
    try:
        return yaml.safe_load(text) if text.strip() else None
    except yaml.YAMLError:
        return text.strip()


def _address(url: str) -> str:
    """A path of a file is taken for its address."""
    if not urlsplit(url).scheme and Path(url).is_file():
        return Path(url).resolve().as_uri()
    return url
