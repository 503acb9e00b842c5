"""A folder that is there whole or not at all: what is written into it stands aside until it is complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuarl.errors import ConfigError

LAST = "manifest.json"
"""The file that says a folder is complete."""
_UNFINISHED = "unfinished"


@contextmanager
def whole_or_not_at_all(folder: Path) -> Iterator[Path]:
    """Give a folder to write into that becomes ``folder`` in the end, and is gone after an error or an interrupt.

    Raises ConfigError if ``folder`` holds something, or if an earlier attempt was killed and its rest is still there.
    """
    aside = place_for(folder)
    try:
        aside.mkdir(parents=True)
    except FileExistsError:
        raise ConfigError(
            "another export to this folder is under way, or was killed", where=str(aside), hint=f"rm -r {aside}"
        ) from None
    try:
        yield aside
        _move(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def place_for(folder: Path) -> Path:
    """Where a folder is written before it is moved: on the same file system.

    Within the folder if that is there, as it may be a mount.

    Raises ConfigError unless it is new or empty.
    """
    if not folder.exists():
        return folder.with_name(f".{folder.name}.{_UNFINISHED}")
    if not folder.is_dir():
        raise ConfigError("this is a file, and the export needs a folder", where=str(folder))
    if any(entry.name != f".{_UNFINISHED}" for entry in folder.iterdir()):
        raise ConfigError("the export needs an empty folder", where=str(folder), hint=f"cuarl db export {folder}-2")
    return folder / f".{_UNFINISHED}"


def _move(aside: Path, folder: Path) -> None:
    if not folder.exists():
        aside.rename(folder)
        return
    for entry in sorted(aside.iterdir(), key=lambda entry: entry.name == LAST):
        entry.rename(folder / entry.name)
