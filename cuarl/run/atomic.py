"""Files that are there whole or not at all, whenever the power goes."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_text(path: Path, text: str | Iterable[str]) -> None:
    """Replace ``path`` by ``text``, or by texts one after the other, atomically and durably.

    Raises OSError, which names ``path``.
    """
    try:
        _replace(path, text)
    except OSError as error:  # a write that fails names no file, and what is written aside is nobody's business
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, text: str | Iterable[str]) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines((text,) if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    _sync_folder(path.parent)


def point(link: Path, target: str) -> None:
    """Make ``link`` a symbolic link to ``target``, replacing an older one atomically.

    A folder in its place, which a link becomes where it is copied as what it points to, is kept under another name.
    """
    if link.is_dir() and not link.is_symlink():
        link.rename(_free(link.with_name(f"{link.name}.copy")))
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def _free(path: Path) -> Path:
    """``path``, or the first of its numbered neighbours that does not exist."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([path], numbered) if not candidate.exists())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
