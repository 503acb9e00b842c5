"""A bounded file that keeps writes while the database server is away.

One JSON line a write, in order. Each process has its own file, locked while it lives; a file left by a process that
died is adopted by the next one that opens the same store. Writes are idempotent, so a line that was applied just
before a crash may be applied again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import URL

from cuarl.errors import StoreError
from cuarl.store.codec import dump_line, load_line
from cuarl.store.records import new_id
from cuarl.store.url import masked
from cuarl.store.writes import WRITE, Write

DEFAULT_LIMIT_BYTES = 1 << 30


class Spool:
    """The files of one store under ``folder``. Not thread-safe: the caller holds the store's write lock."""

    def __init__(self, folder: Path, url: URL, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._folder, self._limit = folder, limit_bytes
        self._name = hashlib.sha256(masked(url).encode()).hexdigest()[:12]
        self._path: Path | None = None
        self._lock: FileLock | None = None
        self._bytes = 0

    @property
    def holds(self) -> bool:
        """Whether this process has writes waiting."""
        return self._bytes > 0

    def append(self, writes: Sequence[Write]) -> None:
        """Keep writes, on disk before this returns. Raises StoreError if they don't fit, and keeps none of them."""
        data = "".join(f"{dump_line(write.model_dump())}\n" for write in writes).encode()
        if self._bytes + len(data) > self._limit:
            raise StoreError(
                f"the database is away, and the spool is full ({self._bytes / 2**20:.0f} MiB)",
                where=str(self._folder),
                hint="start the database server, then run the same command with --resume",
            )
        path = self._open()
        with path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self._bytes += len(data)

    def _open(self) -> Path:
        if self._path is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{new_id(self._name)}.jsonl"
            self._lock = _lock(path)
            self._lock.acquire(timeout=0)
            self._path = path
        return self._path

    def read(self) -> Iterator[Write]:
        """The writes waiting, oldest first."""
        if self._path is not None and self._path.exists():
            yield from _lines(self._path)

    def clear(self) -> None:
        """All of them were applied."""
        if self._path is not None and self._lock is not None:
            _remove(self._path, self._lock)
        self._path, self._lock, self._bytes = None, None, 0

    def reject(self, write: Write) -> Path:
        """Put a write aside that the database refuses; gives the file."""
        path = self._folder / f"{self._name}.rejected"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{dump_line(write.model_dump())}\n")
        return path

    def adopt(self) -> bool:
        """Take over a file whose process died. Gives False if there is none; call ``clear`` after applying it."""
        if self.holds:
            return False
        for path in self.files():
            lock = _lock(path)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            if path.exists():
                self._path, self._lock, self._bytes = path, lock, path.stat().st_size
                return True
            lock.release()
        return False

    def close(self) -> None:
        """Leave what is waiting to the next process."""
        if self._lock is not None:
            self._lock.release()
        self._path, self._lock, self._bytes = None, None, 0

    def files(self) -> list[Path]:
        """All spool files of this store, oldest first."""
        return sorted(self._folder.glob(f"{self._name}-*.jsonl")) if self._folder.is_dir() else []


def _lock(path: Path) -> FileLock:
    """Held by the process: one thread may write what another one closes."""
    return FileLock(f"{path}.lock", thread_local=False)


def _lines(path: Path) -> Iterator[Write]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                return  # the process died while writing it: the write was never confirmed
            yield WRITE.validate_python(load_line(line))


def _remove(path: Path, lock: FileLock) -> None:
    path.unlink(missing_ok=True)
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
