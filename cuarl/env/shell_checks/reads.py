"""Readings of a device by its shell.

A task names what it reads, and its checks look at those names::

env: adb
preset:
  setup: ["settings put system screen_brightness 40"]
  reads:
    brightness: settings system screen_brightness
    notes: package org.example.notes
    saved: file /sdcard/Documents/todo.txt
    awake: "dumpsys power mWakefulness=([A-Za-z]+)"
  teardown: ["rm -f /sdcard/Documents/todo.txt"]
checks:
  - {path: brightness, op: ge, value: 200}
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cuarl.errors import EnvError, TaskError

Shell = Callable[[str], Awaitable[tuple[int, str]]]
"""Runs one command on the device: its exit status, and its output as text."""

FIELDS = ("setup", "reads", "teardown")
NAMESPACES = ("system", "secure", "global")
FORMS = "settings NAMESPACE KEY, package NAME, file PATH, or dumpsys SERVICE REGEX"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def check_preset(task_id: str, preset: Mapping[str, Any]) -> None:
    """Raise TaskError unless ``preset`` has only ``setup``, ``reads`` and ``teardown``, each well formed."""
    unknown = sorted(set(preset) - set(FIELDS))
    if unknown:
        raise TaskError(f"task {task_id} presets {', '.join(unknown)}", hint=f"a shell has {', '.join(FIELDS)}")
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
        case ["package" | "file", _]:
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
    """One reading: a setting, whether a package is installed, a file's text, or a group of dumpsys' output."""
    match text.split(maxsplit=2):
        case ["settings", space, key]:
            value = (await _run(f"settings get {space} {shlex.quote(key)}", shell)).strip()
            return None if value == "null" else _value(value)
        case ["package", name]:
            lines = (await _run("pm list packages", shell)).split()
            return f"package:{name}" in lines
        case ["file", path]:
            status, output = await shell(f"cat {shlex.quote(path)}")
            return output if status == 0 else None
        case ["dumpsys", service, pattern]:
            found = re.search(pattern, await _run(f"dumpsys {shlex.quote(service)}", shell))
            return _value(found[1]) if found else None
        case _:
            raise TaskError(f'"{text}" is no reading', hint=f"write {FORMS}")


async def run_all(commands: tuple[str, ...] | list[str], shell: Shell) -> None:
    """Run commands in order. Raises EnvError at the first that fails."""
    for command in commands:
        await _run(command, shell)


async def _run(command: str, shell: Shell) -> str:
    status, output = await shell(command)
    if status:
        raise EnvError(f"{command} ended with status {status} on the device: {output.strip()[:300]}")
    return output


def _value(text: str | None) -> Any:
    if text is None or not _NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)
