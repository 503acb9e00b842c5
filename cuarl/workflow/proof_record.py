"""Which tasks were proven on this machine: ``cuarl tasks validate --prove`` notes it by their content.

A task that is changed is another one, which was not proven. Tasks that come with cuarl are proven by its tests.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from cuarl.env.sim.devices import SIMULATED
from cuarl.settings import Settings
from cuarl.tasks.gym import ENV as GYM
from cuarl.tasks.suites import shipped_folder
from cuarl.tasks.task import Task

FILE = "proofs.jsonl"
LIVE = ("browser", "linux", "adb", "gbox", "gym", "pods")
"""Environments that are started to prove tasks in, besides the simulator."""


def remember(settings: Settings, proofs: Iterable[tuple[Task, int]]) -> None:
    """Note at how many seeds each task was proven; 0 that a proof failed."""
    path = _file(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"digest": task.digest, "id": task.id, "seeds": seeds}) for task, seeds in proofs]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def unproven(settings: Settings, tasks: Sequence[Task]) -> list[Task]:
    """Those that could be proven here and never were, the shipped ones left out, and what only a server lists."""
    shipped = {path.name for path in shipped_folder().iterdir()}
    known = [task for task in tasks if task.suite not in shipped and task.suite != GYM]
    mine = [task for task in known if task.env in (*SIMULATED, *LIVE)]
    if not mine:
        return []
    proven = _proven(_file(settings))
    return [task for task in mine if task.digest not in proven]


def said_of(settings: Settings, tasks: Sequence[Task], selectors: Sequence[str]) -> str:
    """What is to be said of tasks that are unproven, with the command that proves them; empty if none is.

    ``selectors`` is how they were picked.
    """
    found = unproven(settings, tasks)
    if not found:
        return ""
    words = [word for word in selectors if not word.startswith(("{", "-"))] or [task.id for task in found[:3]]
    command = f"cuarl tasks validate {shlex.join(words)} --prove"
    return f"{len(found)} of {len(tasks)} tasks were never proven, such as {found[0].id}: {command}"


def _proven(path: Path) -> set[str]:
    """Digests; the last line about a task counts, and one that a crash cut off does not."""
    found: set[str] = set()
    if not path.is_file():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            told = json.loads(line)
            (found.add if told["seeds"] else found.discard)(str(told["digest"]))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _file(settings: Settings) -> Path:
    return settings.sessions_folder.parent / FILE if settings.sessions_dir is None else settings.sessions_dir / FILE
