"""What is readable of a damaged SQLite file, as a new one that is sound: whole episodes only, and nothing dangling.

Rows are copied around what can't be read. Then episodes that miss turns, rows that refer to nothing, and records whose
values are damaged are left out. A run or group whose own row is lost gets one that says so, so that its episodes stay
together. A damaged number that is still a number can't be told from a sound one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuarl.errors import ConfigError, StoreError
from cuarl.store import transaction
from cuarl.store.check import row_counts
from cuarl.store.damaged import DamagedFile
from cuarl.store.migrate import migrate
from cuarl.store.repair import drop_dangling, make_sound
from cuarl.store.schema import HEAD, REVISIONS, VERSION_TABLE
from cuarl.store.schema_pages import lay_schema
from cuarl.store.store import Store
from cuarl.store.tables import Base
from cuarl.store.url import masked, parse_url, sqlite_path


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What came of it."""

    path: Path
    """The new file."""
    copied: dict[str, int]
    """Rows of each table in the new file."""
    left_out: dict[str, int]
    """By table: rows that could be read, but not used."""
    unreadable: dict[str, int]
    """By table: at most so many rows could not be read."""


def salvage(url: str, path: Path) -> Salvaged:
    """Copy what is readable of the SQLite file at ``url`` into a new one at ``path``; the old one is not touched.

    Raises ConfigError if it is no SQLite file or ``path`` is taken, StoreError if nothing of it can be read.
    """
    parsed = parse_url(url)
    source = sqlite_path(parsed)
    if source is None:
        raise ConfigError("only a SQLite file can be salvaged", where=masked(parsed), hint="cuarl db export FOLDER")
    if path.exists():
        raise ConfigError(
            "this file exists", where=str(path), hint=f"cuarl db salvage {path.with_stem(path.stem + '-2')}"
        )
    aside = path.with_name(f".{path.name}.unfinished")
    _remove(aside)
    try:
        with _readable(source, aside) as damaged:
            _copy(damaged, aside)
        with Store.open(f"sqlite:///{aside}") as store:
            left_out = make_sound(store, verdicts_lost=damaged.unreadable.get("verdicts", 1) > 0)
            copied = transaction.read(store.engine, lambda session: row_counts(session.connection()))
        _settle(aside).rename(path)
    finally:
        _remove(aside)
    unreadable = {table: count for table, count in damaged.unreadable.items() if count}
    return Salvaged(path, copied, left_out, unreadable)


def _settle(aside: Path) -> Path:
    """As one file without a side log, and without the room of what was left out."""
    compact = aside.with_name(f"{aside.name}.compact")
    with closing(sqlite3.connect(aside)) as connection:
        connection.execute("VACUUM INTO ?", (str(compact),))
    return compact


def _remove(aside: Path) -> None:
    """With its side log, lock and copies."""
    for path in aside.parent.glob(f"{aside.name}*"):
        path.unlink()


def _readable(source: Path, aside: Path) -> DamagedFile:
    """The file, or where its schema is damaged, a copy beside ``aside`` that has a sound one, if there can be one."""
    try:
        damaged = DamagedFile(source)
    except StoreError:
        found = _with_sound_schema(source, aside)
        if found is None:
            raise
        return found
    whole = damaged.schema_is_whole and set(Base.metadata.tables) <= set(damaged.tables)  # or of an older revision
    found = None if whole else _with_sound_schema(source, aside)
    if found is None:
        return damaged
    damaged.close()
    return found


def _with_sound_schema(source: Path, aside: Path) -> DamagedFile | None:
    """A copy with the schema of the revision that the file itself names."""
    if not source.is_file():
        return None
    for revision, empty in _empty_files(aside):
        copy = empty.with_name(f"{empty.name}.whole")
        if lay_schema(source, empty, copy):
            found = DamagedFile(copy)
            if _revision(found) == revision:
                return found
            found.close()
    return None


def _empty_files(aside: Path) -> Iterator[tuple[str, Path]]:
    """By revision: as a store makes itself, which is always the newest one, and as migrations do."""
    made = aside.with_name(f"{aside.name}.made")
    Store.open(f"sqlite:///{made}").close()
    yield HEAD, made
    for revision in reversed(REVISIONS):
        migrated = aside.with_name(f"{aside.name}.{revision}")
        migrate(f"sqlite:///{migrated}", revision)
        yield revision, migrated


# --- copying -------------------------------------------------------------------------------------------------------


def _copy(damaged: DamagedFile, path: Path) -> None:
    """Into a new file of the same revision, which is then brought up to date."""
    revision = _revision(damaged)
    migrate(f"sqlite:///{path}", revision)
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        target.execute("PRAGMA foreign_keys = OFF")
        for table in Base.metadata.sorted_tables:
            known = [row[1] for row in target.execute(f'PRAGMA table_info("{table.name}")')]
            columns = [name for name in damaged.tables.get(table.name, []) if name in known]
            if columns:
                _insert(target, table.name, columns, damaged.rows(table.name, columns))
        if revision != HEAD:  # a migration leaves nothing dangling, so here nothing stands in for a run that is lost
            drop_dangling(lambda statement: target.execute(statement).fetchall())
    if revision != HEAD:
        migrate(f"sqlite:///{path}")


def _revision(damaged: DamagedFile) -> str:
    found = [row[0] for row in damaged.rows(VERSION_TABLE, ["version_num"])] if VERSION_TABLE in damaged.tables else []
    return found[0] if found and found[0] in REVISIONS else HEAD


def _insert(target: sqlite3.Connection, table: str, columns: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Rows that break a rule of their table, or have the key of an earlier one, are left out."""
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    statement = f'INSERT OR IGNORE INTO "{table}" ({names}) VALUES ({marks})'
    target.execute("BEGIN")
    target.executemany(statement, rows)
    target.execute("COMMIT")
