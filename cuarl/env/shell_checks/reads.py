"""Readings of a device by its shell.

A task names what it reads, and its checks look at those names::

env: adb
preset:
  setup: ["settings put system screen_brightness 40"]
  reads:
    brightness: settings system screen_brightness
    notes: package org.example.notes
    saved: file /sdcard/Documents/todo.txt
    pictures: files /sdcard/DCIM/Camera
    people: content content://com.android.contacts/contacts display_name
    shown: foreground
    may: permission org.example.notes android.permission.CAMERA
    awake: "dumpsys power mWakefulness=([A-Za-z]+)"
  teardown: ["rm -f /sdcard/Documents/todo.txt"]
checks:
  - {path: brightness, op: ge, value: 200}
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from cuarl.errors import EnvError, TaskError
from cuarl.tasks.task import TaskInstance

Shell = Callable[[str], Awaitable[tuple[int, str]]]
"""Runs one command on the device: its exit status, and its output as text."""

FIELDS = ("setup", "reads", "teardown")
NAMESPACES = ("system", "secure", "global")
FORMS = (
    "settings NAMESPACE KEY, package NAME, permission PACKAGE NAME, file PATH, files FOLDER, content URI COLUMN, "
    "foreground, notifications, property NAME, or dumpsys SERVICE REGEX"
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_FOCUS = re.compile(r"mCurrentFocus=\S+ \S+ ([^\s/}]+)/([^\s}]+)")


def check_task(task: TaskInstance, also: Collection[str] = ()) -> None:
    """Raise TaskError unless the preset is well formed and each check is about the answer or something read."""
    check_preset(task.task_id, task.preset, also)
    names = {"answer", *task.preset.get("reads", {})}
    for check in task.checks:
        if check.path.partition(".")[0] not in names:
            raise TaskError(
                f"task {task.task_id} checks {check.path}, which it does not read",
                hint=f"preset: {{reads: {{{check.path.partition('.')[0]}: …}}}}",
            )


def check_preset(task_id: str, preset: Mapping[str, Any], also: Collection[str] = ()) -> None:
    """Raise TaskError unless ``preset`` has only ``setup``, ``reads``, ``teardown`` (each well formed) and ``also``."""
    known = (*FIELDS, *also)
    unknown = sorted(set(preset) - set(known))
    if unknown:
        raise TaskError(f"task {task_id} presets {', '.join(unknown)}", hint=f"this device has {', '.join(known)}")
    for name in ("setup", "teardown"):
        lines = preset.get(name, ())
        if not isinstance(lines, list | tuple) or not all(isinstance(line, str) for line in lines):
            raise TaskError(f"preset.{name} of task {task_id} is not a list of shell commands")
    reads = preset.get("reads", {})
    if not isinstance(reads, Mapping):
        raise TaskError(f"preset.reads of task {task_id} is not a mapping", hint=f"name: {FORMS}")
    for name, text in reads.items():
        if not _well_formed(text):
            raise TaskError(f'task {task_id} reads {name} by "{text}"', hint=f"write {FORMS}")


def _well_formed(text: object) -> bool:
    match str(text).split(maxsplit=2):
        case ["settings", space, _]:
            return space in NAMESPACES
        case ["foreground" | "notifications"] | ["package" | "file" | "files" | "property", _]:
            return True
        case ["content" | "permission", _, _]:
            return True
        case ["dumpsys", _, pattern]:
            try:
                return re.compile(pattern).groups >= 1
            except re.error:
                return False
        case _:
            return False


async def read_all(reads: Mapping[str, str], shell: Shell) -> dict[str, Any]:
    """Every reading by its name: None for what is not there, numbers as numbers. Raises EnvError if the shell fails."""
    return {name: await read(text, shell) for name, text in reads.items()}


async def read(text: str, shell: Shell) -> Any:
    """One reading; None for what is not there.

    A setting, a property, a file's text and a group of dumpsys' output are text or numbers; ``package`` and
    ``permission`` are true or false; ``files`` and ``content`` are lists, of names in order and of a column's values;
    ``foreground`` is ``{"app", "activity"}``, empty where none has the focus, as with the notifications pulled down;
    ``notifications`` is how many there are.
    """
    match text.split(maxsplit=2):
        case ["settings", space, key]:
            value = (await _run(f"settings get {space} {shlex.quote(key)}", shell)).strip()
            return None if value == "null" else value_of(value)
        case ["property", name]:
            return value_of((await _run(f"getprop {shlex.quote(name)}", shell)).strip()) or None
        case ["package", name]:
            return name in await installed_packages(shell)
        case ["permission", name, permission]:
            return await _permission(name, permission, shell)
        case ["file", path]:
            status, output = await shell(f"cat {shlex.quote(path)}")
            return output if status == 0 else None
        case ["files", folder]:
            status, output = await shell(f"ls -1 {shlex.quote(folder)}")
            return sorted(output.splitlines()) if status == 0 else None
        case ["content", uri, column]:
            query = f"content query --uri {shlex.quote(uri)} --projection {shlex.quote(column)}"
            return _column(await _run(query, shell), column)
        case ["foreground"]:
            found = _FOCUS.search(await _run("dumpsys window", shell))
            return {"app": found[1], "activity": found[2]} if found else {"app": "", "activity": ""}
        case ["notifications"]:
            return (await _run("dumpsys notification", shell)).count("NotificationRecord(")
        case ["dumpsys", service, pattern]:
            found = re.search(pattern, await _run(f"dumpsys {shlex.quote(service)}", shell))
            return value_of(found[1]) if found else None
        case _:
            raise TaskError(f'"{text}" is no reading', hint=f"write {FORMS}")


async def installed_packages(shell: Shell) -> list[str]:
    """Names of the packages that are installed."""
    lines = (await _run("pm list packages", shell)).split()
    return [line.removeprefix("package:") for line in lines if line.startswith("package:")]


async def _permission(package: str, permission: str, shell: Shell) -> bool | None:
    found = re.search(
        rf"\b{re.escape(permission)}: granted=(true|false)",
        await _run(f"dumpsys package {shlex.quote(package)}", shell),
    )
    return found[1] == "true" if found else None


def _column(output: str, column: str) -> list[Any]:
    """The values of a column, row by row; a text may go over several lines."""
    rows = re.split(r"^Row: \d+ ", output, flags=re.MULTILINE)[1:]
    values = (row.partition(f"{column}=")[2].rstrip("\n") for row in rows)
    return [None if value == "NULL" else value_of(value) for value in values]


async def run_all(commands: Iterable[str], shell: Shell) -> None:
    """Run commands in order. Raises EnvError at the first that fails."""
    for command in commands:
        await _run(command, shell)


async def _run(command: str, shell: Shell) -> str:
    status, output = await shell(command)
    if status:
        raise EnvError(f"{command} ended with status {status} on the device: {output.strip()[:300]}")
    return output


def value_of(text: str | None) -> Any:
    """A number where the text is one, else the text."""
    if text is None or not _NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)
