"""A disk of a few megabytes, which only root can make: a file system in memory."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """``folder``, which is made, as a disk of ``size`` (``600k``); the test is skipped where none can be made."""
    if not shutil.which("mount"):
        pytest.skip("there is no mount here")
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all the room that is left."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1024)):
                pass
        except OSError:
            return path
    raise AssertionError("a write of nothing")
