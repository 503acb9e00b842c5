"""What a task may say about the page that it starts on, checked before any browser starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean
from cuarl.tasks.task import TaskInstance

FIELDS = ("url", "reset", "set_url", "set", "state_url", "read", "uploads")
"""Of the preset of a page by its address."""
MINIWOB_FIELDS = ("page",)
STATE = ("url", "title", "text", "tabs", "downloads", "dialogs", "blocked")
"""What every page's state has; a task's ``read`` and ``state_url`` add ``read.NAME`` and ``app``."""


def check_preset(task: TaskInstance) -> None:
    """Raise TaskError for a preset of which no page can be made, or a check of something that a page's state lacks."""
    known = MINIWOB_FIELDS if "page" in task.preset else FIELDS
    for name in sorted(set(task.preset) - set(known)):
        raise TaskError(
            f"task {task.task_id} presets {name}, which a browser does not have{did_you_mean(name, known)}",
            hint=f"it has page, or {', '.join(FIELDS)}",
        )
    if "page" not in task.preset:
        _check_page(task)


def readable(address: SplitResult) -> bool:
    """Whether an address has the parts that a browser needs."""
    try:
        return address.scheme == "file" or (bool(address.hostname) and (address.port or 1) > 0)
    except ValueError:  # the port is no number
        return False


def _check_page(task: TaskInstance) -> None:
    preset, where = task.preset, f"task {task.task_id}"
    address = urlsplit(str(preset.get("url", "")))
    if address.scheme not in ("http", "https", "file") or not readable(address):
        raise TaskError(
            f'{where} has no address of a page: preset.url is "{preset.get("url", "")}"',
            hint="url: http://127.0.0.1:8000/, or file:///FOLDER/page.html",
        )
    for name in ("reset", "set_url", "state_url"):
        address = urlsplit(str(preset.get(name, "http://localhost")))
        if address.scheme not in ("http", "https") or not readable(address):
            raise TaskError(f'{where} has no address of a server: preset.{name} is "{preset[name]}"')
    if "set" in preset and "set_url" not in preset:
        raise TaskError(f"{where} presets set, and no set_url that takes it", hint="set_url: http://127.0.0.1:8000/set")
    read = preset.get("read", {})
    if not isinstance(read, Mapping) or not all(isinstance(script, str) and script.strip() for script in read.values()):
        raise TaskError(f"{where}: preset.read maps no names to JavaScript", hint="read: {total: document.title}")
    if "uploads" in preset and not Path(str(preset["uploads"])).is_dir():
        raise TaskError(
            f'{where} lets files of "{preset["uploads"]}" be uploaded, which is no folder', hint="uploads: FOLDER"
        )
    for check in task.checks:
        _check_path(check.path, read, where, app="state_url" in preset)


def _check_path(path: str, read: Mapping[str, Any], where: str, *, app: bool) -> None:
    first, _, rest = path.partition(".")
    if first == "app" and not app:
        raise TaskError(f"{where} checks {path}, and no state_url says what it is", hint="state_url: http://…/state")
    names = (*STATE, "answer", *(f"read.{name}" for name in read), *(("app",) if app else ()))
    if (first == "read" and rest.partition(".")[0] in read) or first in names:
        return
    raise TaskError(
        f"{where} checks {path}, which a page's state does not have{did_you_mean(path, names)}",
        hint=f"it has {', '.join(names)}",
    )
