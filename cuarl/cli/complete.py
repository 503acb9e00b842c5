"""Completion of names in the shell. It must answer at once, so it imports little and reads task files line by line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cuarl.run.manifest import MANIFEST

NO_RUNS = ("base", "oracle", "random", "nothing")
"""What can be evaluated besides runs, folders and URLs."""
MOST_EPISODES = 40
_TASK = re.compile(r"""^[\s\[{-]*["']?id["']?\s*:\s*["']?([\w.-]+)""", re.MULTILINE)
_ALIASES = re.compile(r"^aliases:\s*\[(.*)\]", re.MULTILINE)


def run_names(incomplete: str) -> list[str]:
    """Runs in the folder of the runs that begin like this, and ``latest``."""
    folder = Path(os.environ.get("CUARL_RUNS_DIR", "runs"))
    names = [path.name for path in folder.iterdir() if (path / MANIFEST).is_file()] if folder.is_dir() else []
    return _beginning([*sorted(names), "latest"], incomplete)


def target_names(incomplete: str) -> list[str]:
    """What can be evaluated by a name that begins like this: runs, and what needs none."""
    return [*run_names(incomplete), *_beginning(NO_RUNS, incomplete)]


def preset_names(incomplete: str) -> list[str]:
    """Shipped presets that begin like this."""
    from cuarl.config.load import presets

    return _beginning(presets(), incomplete)


def task_names(incomplete: str) -> list[str]:
    """Categories, difficulties, suites, their aliases and ids of tasks that begin like what follows the last comma."""
    from cuarl.tasks.suites import SUITE_FILE, suite_folders
    from cuarl.tasks.task import CATEGORIES, DIFFICULTIES

    before, comma, last = incomplete.rpartition(",")
    names = ["all", *CATEGORIES, *DIFFICULTIES]
    for folder in suite_folders():
        aliases = _ALIASES.search((folder / SUITE_FILE).read_text(encoding="utf-8"))
        names += [folder.name, *(aliases[1].replace(" ", "").split(",") if aliases else [])]
        for file in sorted(folder.glob("*.yaml")):
            names += _TASK.findall(file.read_text(encoding="utf-8"))
    return [f"{before}{comma}{name}" for name in dict.fromkeys(_beginning(names, last))]


def episode_ids(incomplete: str) -> list[str]:
    """Episodes in the store whose ids begin like this, and ``latest``; none where no store can be read."""
    from cuarl.errors import CuarlError
    from cuarl.store import Store
    from cuarl.terminal.state import load_settings

    latest = _beginning(["latest"], incomplete)
    try:
        settings = load_settings()
        file = settings.db_url.removeprefix("sqlite:///")
        if file != settings.db_url and not Path(file).is_file():  # opening would make it
            return latest
        with Store.open(settings.db_url, settings.blobs_url, runs_dir=settings.runs_dir) as store:
            return [*store.beginning(incomplete, limit=MOST_EPISODES), *latest]
    except CuarlError:  # a store that is away or broken is told by the command itself
        return latest


def assignments(incomplete: str) -> list[str]:
    """Keys for ``-s`` that begin like this, with their ``=``; after it, the values that can be listed."""
    from cuarl.config.keys import at, keys
    from cuarl.config.kinds import kind_of
    from cuarl.config.unions import UNIONS

    path, equals, value = incomplete.partition("=")
    if equals and path in UNIONS:
        return [f"{path}={one}" for one in types_of(path)(value)]
    if not equals:
        return [f"{one}=" for one in _beginning(dict.fromkeys(key.path for key in keys().values()), incomplete)]
    kinds = [kind_of(key.field) for key in at(path)]
    values = [one for kind in kinds for one in (("true", "false") if kind.base is bool else kind.choices)]
    return [f"{path}={one}" for one in _beginning(dict.fromkeys(values), value)]


def environment_names(incomplete: str) -> list[str]:
    """Environments that are installed and begin like this."""
    from cuarl.config.backends import names

    return _beginning(names(), incomplete)


def types_of(union: str) -> Callable[[str], list[str]]:
    """Completes the types of a record that come with cuarl."""
    from cuarl.config.unions import UNIONS

    return lambda incomplete: _beginning(UNIONS[union].types(), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


COMPLETIONS: Mapping[str, Callable[[str], Any]] = {
    "tasks": task_names,
    "eval_tasks": task_names,
    "env": environment_names,
    "sft_runs": run_names,
}
"""What is completed in the flags of fields."""
