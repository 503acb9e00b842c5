"""Room on the disk that a run sets aside, so that it can say how it ended where the disk is full."""

from __future__ import annotations

import os
from pathlib import Path

RESERVE = ".reserve"
_BYTES = 64 * 1024


def set_aside(folder: Path) -> None:
    """Take the room. Raises OSError if there is none, since a run could not even begin."""
    with (folder / RESERVE).open("wb", buffering=0) as file:
        # a file system that compresses would keep nothing for zeros
        file.write(os.urandom(_BYTES))


def give_back(folder: Path) -> None:
    """Let the room be used."""
    (folder / RESERVE).unlink(missing_ok=True)
