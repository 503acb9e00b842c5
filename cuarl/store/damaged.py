"""Reads the rows of a SQLite file of which some pages are damaged: around them, a stretch of rows at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from cuarl.errors import StoreError

_STRETCH = 1024
_EMPTY = -2
_KINDS = ("table", "index")
_BEYOND = 100_000
"""How many rows may follow the last readable one where the end of a table can't be read."""

RowValues = tuple[Any, ...]


class DamagedFile:
    """A SQLite file, opened to be read only. As a context manager it is closed in the end."""

    def __init__(self, path: Path) -> None:
        """Raises StoreError if there is no file, or its schema, which says where all else is, can't be read."""
        if not path.is_file():
            raise StoreError("there is no database file here", where=str(path), hint="cuarl db status")
        self.unreadable: dict[str, int] = {}
        """By table that was read to its end: at most so many rows are lost."""
        # without a side log nothing else is looked for, and so no file is left beside it either
        log = path.with_name(f"{path.name}-wal")
        mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
        try:
            # not to write, but to be given the tables whose definitions are sound when others aren't
            self._connection.execute("PRAGMA writable_schema = ON")
            self._connection.execute("BEGIN")
            self.tables = self._tables()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise StoreError(
                "the schema, on the first page of the file and some others, is damaged, so nothing can be found: "
                f"{error}",
                where=str(path),
                hint=f"ls {path}.*.bak   # copies that db migrate and db rebuild have made",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _tables(self) -> dict[str, list[str]]:
        """The columns of each table."""
        rows = self._connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
        names = [name for kind, name, _ in rows if kind == "table" and name and "\0" not in name]
        found = {name: [row[1] for row in self._connection.execute(f'PRAGMA table_info("{name}")')] for name in names}
        # zeros read as a row of nothing, and a definition that makes no sense is one of no columns
        self.schema_is_whole = all(kind in _KINDS and name and root for kind, name, root in rows) and all(
            found.values()
        )
        return found

    def rows(self, table: str, columns: list[str]) -> Iterator[RowValues]:
        """All rows that can be read, in the order they were written; values may be damaged still."""
        names = ", ".join(f'"{name}"' for name in columns)
        # the table itself, since an index may be damaged elsewhere
        query = f'SELECT {names} FROM "{table}" NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid'
        low, last, high = self._ends(table)
        count = 0
        for start in range(low, high + 1, _STRETCH):
            for row in self._stretch(query, start, min(start + _STRETCH - 1, high)):
                if not any(
                    isinstance(value, str) and "\0" in value for value in row
                ):  # never written so: see ``codec``
                    count += 1
                    yield row
        # a damaged page may also give no rows without a word; numbers are given without gaps, but rows may be deleted
        self.unreadable[table] = max(0, last - low + 1 - count)

    def _stretch(self, query: str, low: int, high: int) -> Iterator[RowValues]:
        """Rows of a range, halved until what can't be read is alone."""
        try:
            yield from self._connection.execute(query, (low, high)).fetchall()
        except sqlite3.DatabaseError:
            if low < high:
                middle = (low + high) // 2
                yield from self._stretch(query, low, middle)
                yield from self._stretch(query, middle + 1, high)

    def _ends(self, table: str) -> tuple[int, int, int]:
        """The first row number, the last one that can be read, and how far to look."""
        low = self._number(f'SELECT min(rowid) FROM "{table}" NOT INDEXED', 1)
        high = self._number(f'SELECT max(rowid) FROM "{table}" NOT INDEXED', -1)
        if high >= 0:
            return low, high, high
        if high == _EMPTY:
            return 1, 0, 0
        last = low
        with suppress(sqlite3.DatabaseError):
            for (number,) in self._connection.execute(f'SELECT rowid FROM "{table}" NOT INDEXED ORDER BY rowid'):
                last = number
        return low, last + 1, last + _BEYOND

    def _number(self, query: str, unknown: int) -> int:
        try:
            found = self._connection.execute(query).fetchone()[0]
        except sqlite3.DatabaseError:
            return unknown
        return _EMPTY if found is None else int(found)
