"""Find runs: by name, path, unique prefix, or ``latest``; and make names for new ones."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from cuarl.errors import ConfigError, CuarlError
from cuarl.run.manifest import MANIFEST, Manifest, read_manifest
from cuarl.suggest import did_you_mean

logger = logging.getLogger(__name__)

MOST_CANDIDATES = 10


def list_runs(runs_dir: Path) -> list[tuple[Path, Manifest]]:
    """All run directories with their manifests, newest start last.

    One whose manifest is broken is left out with a warning.
    """
    found = []
    for path in run_folders(runs_dir):
        try:
            found.append((path, read_manifest(path)))
        except CuarlError as broken:
            logger.warning("a run is left out: %s", broken)
    return sorted(found, key=lambda item: (item[1].last_started_at, item[1].name))


def run_folders(runs_dir: Path) -> list[Path]:
    """Every run's directory, in no order."""
    return [path for path in runs_dir.iterdir() if (path / MANIFEST).is_file()] if runs_dir.is_dir() else []


def find_run(runs_dir: Path, reference: str = "latest") -> Path:
    """The run directory that ``reference`` means. Raises ConfigError that lists what it could mean."""
    if reference == "latest":
        runs = list_runs(runs_dir)
        if not runs:
            raise ConfigError("there are no runs yet", where=str(runs_dir), hint="cuarl train")
        return runs[-1][0]
    for path in (Path(reference), runs_dir / reference):
        with suppress(OSError):  # a name that is too long for one
            if (path / MANIFEST).is_file():
                return path
    names = sorted(path.name for path in run_folders(runs_dir))
    matching = [name for name in names if name.startswith(reference)]
    if len(matching) == 1:
        return runs_dir / matching[0]
    if matching:
        raise ConfigError(f'"{reference}" means {len(matching)} runs: {_listing(matching)}', where=str(runs_dir))
    what = f'there is no run "{reference}"{did_you_mean(reference, names)}'
    raise ConfigError(what, where=str(runs_dir), hint="cuarl monitor tail")


def new_name(suite: str, model: str, now: datetime) -> str:
    """``<suite>--<model>--<yyyymmdd-hhmm>-<4 hex>``, unique for all practical purposes."""
    return f"{slug(suite) or 'all'}--{slug(model)}--{now:%Y%m%d-%H%M}-{secrets.token_hex(2)}"


def slug(text: str) -> str:
    """The last path component without the suffix of a file, lower case, dashes for anything unusual; 40 characters."""
    last = re.sub(r"\.(ya?ml|jsonl?|txt)$", "", text.rstrip("/").rsplit("/", 1)[-1].lower())
    return re.sub(r"[^a-z0-9.+_]+", "-", last).strip("-.")[:40]


def _listing(names: Sequence[str]) -> str:
    more = ", …" if len(names) > MOST_CANDIDATES else ""
    return ", ".join(names[:MOST_CANDIDATES]) + more
