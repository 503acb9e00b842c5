"""Follow a growing file of JSON lines by polling, since notifications fail on network disks.

A line counts once it has its end. A file that was rotated is read to its end before the new one is begun; one that was
cut is begun anew; one that is not there yet is waited for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from cuarl.monitor.jsonl import parse_lines

LONGEST_LINE = 1 << 20
"""A line without an end that grows beyond this many bytes is dropped rather than kept in memory."""


class Follower:
    """Reads what a file has gained since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def poll(self) -> list[dict[str, Any]]:
        """The objects on the lines that were finished since the last call."""
        lines = self._read()
        if self._replaced():
            self.close()
            lines += self._read()
        return parse_lines(lines)

    def close(self) -> None:
        """Let go of the file; the next poll begins it anew."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _read(self) -> list[bytes]:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
            except FileNotFoundError:
                return []
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            self._file.seek(0)
            self._rest = b""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            self._rest = b""
        return lines

    def _replaced(self) -> bool:
        if self._file is None:
            return False
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        here = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)
