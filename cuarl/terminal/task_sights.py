"""How a task begins, as ``cuarl tasks show --screenshot`` shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cuarl.errors import ConfigError
from cuarl.safe_text import escaped
from cuarl.tasks.task import Task
from cuarl.terminal.state import load_settings


def begun_here(tasks: Sequence[Task], seed: int, folder: Path, sets: Sequence[str]) -> list[dict[str, Any]]:
    """Begin each task, write its first screen into ``folder``, and tell what a policy is shown. Raises ConfigError."""
    from cuarl.workflow.first_sight import first_sights

    found = []
    for task, sight in zip(tasks, first_sights(tasks, seed, sets, load_settings()), strict=True):
        path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', task.id)}-seed{seed}.png"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            sight.screenshot.image.save(path)
        except OSError as error:
            raise ConfigError(f"can't write the picture: {error.strerror}", where=str(path)) from error
        size = f"{sight.screenshot.width}x{sight.screenshot.height}"
        found.append(
            {"goal": sight.goal, "screen": str(path), "size": size, "prompt": sight.prompt, "tokens": sight.tokens}
        )
    return found


def in_sight(more: Mapping[str, Any]) -> str:
    """The same as lines below a task; nothing where it was not begun."""
    if not more:
        return ""
    prompt = "\n".join(f"    {line}".rstrip() for line in escaped(more["prompt"]).splitlines())
    rows = [("told", more["goal"]), ("screen", f"{more['screen']} ({more['size']})")]
    lines = [f"  {name:<12}{text}" for name, text in rows]
    return "\n" + "\n".join([*lines, f"  prompt      {more['tokens']} tokens", prompt])
