"""What a task for a device says about it: how it is reset, set up, read and torn down (docs/guides/android.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from cuarl.env.shell_checks.reads import check_task
from cuarl.errors import TaskError
from cuarl.tasks.task import TaskInstance

Reset = Literal["none", "home", "force-stop", "clear", "snapshot"]
"""How a device comes back to a known state: not at all; its home screen; and the task's apps stopped, or their data
deleted; or a snapshot of an emulator loaded. Each but the first ends at the home screen."""
RESETS: tuple[Reset, ...] = get_args(Reset)
ALSO = ("apps", "open", "reset", "snapshot")


@dataclass(frozen=True, slots=True)
class Preset:
    """A task's own words, read."""

    setup: tuple[str, ...] = ()
    reads: Mapping[str, str] = field(default_factory=dict)
    teardown: tuple[str, ...] = ()
    apps: Mapping[str, str] = field(default_factory=dict)
    """Packages by the names that the policy knows their apps by."""
    open: str = ""
    """The app that an episode starts in."""
    reset: Reset | None = None
    snapshot: str = ""


def preset_of(task: TaskInstance, default: Reset = "home", snapshot: str = "") -> Preset:
    """The task's preset over what the run says of resets. Raises TaskError for one that is not well formed."""
    given = task.preset
    check_task(task, ALSO)
    apps = given.get("apps", {})
    if not isinstance(apps, Mapping) or not all(isinstance(one, str) for one in apps.values()):
        raise TaskError(f"preset.apps of task {task.task_id} is not a mapping", hint="apps: {Notes: org.example.notes}")
    for name in ("open", "reset", "snapshot"):
        if not isinstance(given.get(name, ""), str):
            raise TaskError(f"preset.{name} of task {task.task_id} is not a text")
    read = Preset(
        tuple(given.get("setup", ())),
        dict(given.get("reads", {})),
        tuple(given.get("teardown", ())),
        dict(apps),
        str(given.get("open", "")),
        given.get("reset", default),
        str(given.get("snapshot", snapshot)),
    )
    _check_reset(task.task_id, read)
    return read


def _check_reset(task_id: str, preset: Preset) -> None:
    if preset.reset not in RESETS:
        raise TaskError(f'task {task_id} is reset by "{preset.reset}"', hint=f"reset: {' | '.join(RESETS)}")
    if preset.reset in ("force-stop", "clear") and not preset.apps:
        raise TaskError(
            f"task {task_id} is reset by {preset.reset} and names no apps", hint="apps: {Notes: org.example.notes}"
        )
    if preset.reset == "snapshot" and not preset.snapshot:
        raise TaskError(f"task {task_id} is reset by a snapshot and names none", hint="--adb-snapshot NAME")
