"""A damaged schema put back: where SQLite keeps the list of a file's tables, the pages of a sound, empty file are laid.

A file that was made at one revision, as nearly all are, has its tables at the same pages as an empty file made at that
revision, since the migrations make them in the same order. So the list of tables can be had from there when its own
pages can't be read, which would otherwise cost all that is in the file. That the two files agree is checked first, by
the kinds of the pages where tables and indexes begin.

Layout of the pages: https://sqlite.org/fileformat2.html (sections 1.3, the header, and 1.6, pages of B-trees).
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path

_HEADER = 100
_TABLE_INTERIOR, _INDEX_INTERIOR, _TABLE_LEAF, _INDEX_LEAF = 5, 2, 13, 10
_KINDS = {"table": (_TABLE_INTERIOR, _TABLE_LEAF), "index": (_INDEX_INTERIOR, _INDEX_LEAF)}
_AGREEING = 0.75
"""Share of the roots that must be of the right kind: some may be damaged themselves."""


def lay_schema(source: Path, empty: Path, copy: Path) -> bool:
    """Write ``source`` to ``copy`` with the schema of ``empty``; False if the two are not laid out alike.

    ``copy`` takes as much room as ``source``, which is not touched.
    """
    size = _page_size(empty)
    if not _laid_out_alike(source, empty, size):
        return False
    _copy_with_log(source, copy)
    with copy.open("r+b") as file:
        header = file.read(_HEADER)
        for number in _schema_pages(empty.read_bytes(), size):
            page = _page(empty, size, number)
            file.seek((number - 1) * size)
            file.write(_first_page(page, header, copy.stat().st_size // size) if number == 1 else page)
    return True


def _page_size(path: Path) -> int:
    with path.open("rb") as file:
        (size,) = struct.unpack(">H", file.read(18)[16:18])
    return 65536 if size == 1 else int(size)


def _page(path: Path, size: int, number: int) -> bytes:
    with path.open("rb") as file:
        file.seek((number - 1) * size)
        return file.read(size)


def _laid_out_alike(source: Path, empty: Path, size: int) -> bool:
    with closing(sqlite3.connect(empty)) as connection:
        roots = connection.execute("SELECT type, rootpage FROM sqlite_master WHERE rootpage > 0").fetchall()
    right = sum(_page(source, size, number)[:1] in [bytes([k]) for k in _KINDS[kind]] for kind, number in roots)
    return right >= _AGREEING * len(roots)


def _schema_pages(data: bytes, size: int) -> list[int]:
    """The numbers of the pages of the B-tree that begins at page 1."""
    found, todo = [], [1]
    while todo:
        number = todo.pop()
        found.append(number)
        start = (number - 1) * size
        at = start + (_HEADER if number == 1 else 0)
        if data[at] == _TABLE_INTERIOR:
            (cells,) = struct.unpack_from(">H", data, at + 3)
            places = struct.unpack_from(f">{cells}H", data, at + 12)
            todo += [struct.unpack_from(">I", data, start + place)[0] for place in places]
            todo.append(struct.unpack_from(">I", data, at + 8)[0])
    return found


def _first_page(page: bytes, header: bytes, pages: int) -> bytes:
    """The empty file's first page under the file's own header, or, where that is damaged, one of the file's size."""
    if header[:18] == page[:18]:
        return header + page[_HEADER:]
    # no page is known to be free; of the change counter only that it agrees with "version valid for" matters
    known = bytearray(page)
    struct.pack_into(">III", known, 28, pages, 0, 0)
    known[92:96] = known[24:28]
    return bytes(known)


def _copy_with_log(source: Path, copy: Path) -> None:
    """As one file: what a side log holds is part of it."""
    shutil.copyfile(source, copy)
    log = source.with_name(f"{source.name}-wal")
    if log.exists() and log.stat().st_size:
        shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
