"""In what two selections of tasks differ: goals, presets, checks and all else that decides what an episode is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.safe_text import printable
from cuarl.tasks.task import Task

MOST_SHOWN = 80
"""Most characters of a value that are shown."""

Content = Mapping[str, Any]
"""A task as plain data: its fields that are not at their defaults, so that a later version's new fields change
nothing."""


def content(task: Task) -> Content:
    """What ``task`` is, whatever file or suite it was read from."""
    data: dict[str, Any] = task.model_dump(mode="json", exclude_defaults=True, exclude={"suite"})
    return data


def digest(selections: Mapping[str, Sequence[Content]]) -> str:
    """SHA-256 of selections by name, their order included, hexadecimal."""
    return hashlib.sha256(json.dumps(selections, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def differences(old: Sequence[Content], new: Sequence[Content]) -> list[str]:
    """One line for each task that is gone, new or another, and for each field of those; empty if all is the same."""
    before, after = ({str(task["id"]): task for task in tasks} for tasks in (old, new))
    gone = [f"{printable(name)} is gone" for name in before if name not in after]
    found = [f"{printable(name)} is new" for name in after if name not in before]
    shared = [(name, before[name], after[name]) for name in before if name in after]
    changed = [f"{printable(name)}: {line}" for name, was, now in shared for line in _fields(was, now)]
    if not (gone or found or changed) and list(before) != list(after):
        return ["the tasks are the same in another order"]
    return [*changed, *gone, *found]


def _fields(was: Content, now: Content) -> list[str]:
    names = sorted(was.keys() | now.keys())
    return [
        f"{name} was {_shown(was, name)}, is {_shown(now, name)}" for name in names if was.get(name) != now.get(name)
    ]


def _shown(task: Content, name: str) -> str:
    if name not in task:
        return "the default"
    text = printable(json.dumps(task[name], ensure_ascii=False))
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
