"""Opens files that somebody names.

Regular ones only, so that a pipe, a device or a socket can't keep a command waiting.

What is wrong is an OSError with a reason in words, as for a file that isn't there.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST = 64 << 20
"""Bytes of the largest file that is read whole."""

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
}


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file to be read, without waiting for anybody; with ``follow`` also what a link leads to.

    Raises OSError, for anything else than a regular file as well.
    """
    if not follow and path.is_symlink():
        raise _refused(path, stat.S_IFLNK)
    try:
        # without O_NONBLOCK, a pipe that nobody writes to is waited for
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        raise _refused(path, stat.S_IFSOCK) if error.errno == errno.ENXIO else error from None
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise _refused(path, kind)
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, *, limit: int = LARGEST, follow: bool = True) -> bytes:
    """Read a regular file whole. Raises OSError for another kind of file, and for one of more than ``limit`` bytes."""
    with open_regular(path, follow=follow) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit >> 20} MiB", str(path))
    return data


def _refused(path: Path, kind: int) -> OSError:
    return OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'a special file')}, not a regular file", str(path))
