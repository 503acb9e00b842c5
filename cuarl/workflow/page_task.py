"""A task made of options: a page by its address, a goal, and what must hold at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from cuarl.config.load import in_url
from cuarl.errors import ConfigError
from cuarl.safe_text import has_credentials, masked
from cuarl.tasks.asked import made_task, read_check
from cuarl.tasks.task import Check, Task

SCRIPT = "js:"
EXAMPLE = "--check 'text icontains Thank you'"
MAX_STEPS = 30


def page_task(url: str, goal: str | None, checks: Sequence[str]) -> Task:
    """The task of ``--url``, ``--task`` and ``--check``. Raises ConfigError."""
    address = page_address(url)
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
            made.append(read_check(text, where="--check", hint=f"{EXAMPLE}, or js: and an expression"))
    preset = {"url": address, **({"read": read} if read else {})}
    return made_task("page", "browser", goal, made, preset, max_steps=MAX_STEPS)


def page_address(url: str) -> str:
    """A path of a file is taken for its address. Raises ConfigError for one with a password."""
    if has_credentials(url):
        raise in_url("--url", where=masked(url))
    if not urlsplit(url).scheme and Path(url).is_file():
        return Path(url).resolve().as_uri()
    return url
