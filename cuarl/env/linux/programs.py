"""What must be installed for a desktop, and the applications that are known by name."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cuarl.errors import MissingExtra, PrerequisiteError

SERVER, WINDOW_MANAGER, BUS = "Xvfb", "openbox", "dbus-daemon"
PACKAGES = {SERVER: "xvfb", WINDOW_MANAGER: "openbox", BUS: "dbus"}
"""Debian's package of each program, where it has another name."""
MODULES = ("Xlib", "mss")
"""What the extra ``desktop`` brings."""


@dataclass(frozen=True, slots=True)
class App:
    """An application that tasks and ``open_app`` may name."""

    title: str
    """What people call it; the entry of the desktop's menu."""
    command: tuple[str, ...]


APPS = {
    "xterm": App("Terminal", ("xterm", "-u8", "-fa", "DejaVu Sans Mono", "-fs", "9", "-geometry", "72x20")),
    "mousepad": App("Text Editor", ("mousepad",)),
    "galculator": App("Calculator", ("galculator",)),
    "pcmanfm": App("Files", ("pcmanfm",)),
}
"""By program, which is also the class that its windows bear."""


def app_named(name: str) -> str | None:
    """The program that a person's name for it (or its own) stands for."""
    folded = name.strip().casefold()
    return next((key for key, app in APPS.items() if folded in (key, app.title.casefold())), None)


def missing(programs: Iterable[str] = ()) -> list[str]:
    """Programs that are needed and not installed."""
    return [name for name in dict.fromkeys((SERVER, WINDOW_MANAGER, BUS, *programs)) if shutil.which(name) is None]


def require(programs: Iterable[str] = ()) -> None:
    """Raise PrerequisiteError unless this machine can run desktops with these applications."""
    if not sys.platform.startswith("linux"):
        raise PrerequisiteError("a Linux desktop needs Linux", hint="use --env sim, or a container")
    absent = [name for name in MODULES if importlib.util.find_spec(name) is None]
    if absent:
        raise MissingExtra(f"{', '.join(absent)} not installed", hint="pip install 'cuarl[desktop]'")
    lacking = missing(programs)
    if lacking:
        raise PrerequisiteError(f"not installed: {', '.join(lacking)}", hint=install(lacking))


def install(programs: Iterable[str]) -> str:
    """The command that installs programs on Debian."""
    return f"apt-get install {' '.join(PACKAGES.get(name, name) for name in programs)}"


def apps_of(preset: Mapping[str, Any]) -> list[str]:
    """Commands of the applications that a preset starts, in order."""
    found: list[str] = []
    for path in ("ui.app", "ui.apps"):
        value = preset.get(path, [])
        found += [value] if isinstance(value, str) else [str(item) for item in value]
    return found


def programs_of(preset: Mapping[str, Any]) -> set[str]:
    """Programs that a preset needs."""
    return {shlex.split(command)[0] for command in apps_of(preset) if command.strip()}
