"""What a person wants to know about a store at a glance. Looks only, whatever the schema's version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Table, func, inspect, literal_column, select, text
from sqlalchemy.orm import Session

from cuarl.store import transaction
from cuarl.store.engine import make_engine
from cuarl.store.schema import HEAD, SchemaState, look
from cuarl.store.spool import Spool
from cuarl.store.tables import Base
from cuarl.store.url import default_blobs_url, masked, parse_url

_COUNTED = 100_000
"""Up to so many rows are counted: a glance must not read the whole of a large store."""


@dataclass(frozen=True, slots=True)
class Status:
    """A store at a glance."""

    url: str
    """Masked."""
    schema: SchemaState
    revision: str | None
    newest: str
    """The revision that this program needs."""
    pending: tuple[str, ...]
    counts: dict[str, int]
    """Rows of each table that is there."""
    estimated: tuple[str, ...]
    """Tables with more than a hundred thousand rows, which are not counted one by one."""
    blobs: str
    wal: bool | None
    """Whether write-ahead logging is in force; None for a server, or an empty file."""
    spooled: tuple[str, ...]
    """Files of writes that still wait for the server."""


def status(url: str, blobs_url: str | None, runs_dir: Path) -> Status:
    """Look at a store. Raises PrerequisiteError if the server can't be reached, StoreError if the file is broken."""
    parsed = parse_url(url)
    engine = make_engine(parsed)
    try:
        version = look(engine)
        empty = version.state is SchemaState.EMPTY
        counts, estimated, wal = ({}, (), None) if empty else transaction.read(engine, _inside, retry_s=0)
    finally:
        engine.dispose()
    waiting = tuple(str(path) for path in Spool(runs_dir / "spool", parsed).files())
    blobs = blobs_url or default_blobs_url(parsed, runs_dir)
    return Status(
        masked(parsed), version.state, version.current, HEAD, version.pending, counts, estimated, blobs, wal, waiting
    )


def _inside(session: Session) -> tuple[dict[str, int], tuple[str, ...], bool | None]:
    connection = session.connection()
    present = set(inspect(connection).get_table_names())
    tables = [table for table in Base.metadata.sorted_tables if table.name in present]
    counts = {table.name: _count(connection, table) for table in tables}
    large = tuple(table.name for table in tables if counts[table.name] > _COUNTED)
    counts |= {table.name: _estimate(connection, table) for table in tables if table.name in large}
    if connection.dialect.name != "sqlite":
        return counts, large, None
    return counts, large, connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def _count(connection: Connection, table: Table) -> int:
    """The rows of a table, or one more than are counted."""
    some = select(literal_column("1")).select_from(table).limit(_COUNTED + 1).subquery()
    return connection.scalar(select(func.count()).select_from(some)) or 0


def _estimate(connection: Connection, table: Table) -> int:
    """About how many rows: SQLite numbers them as they come, and PostgreSQL's planner knows."""
    if connection.dialect.name == "sqlite":
        found = connection.scalar(select(func.max(literal_column("rowid"))).select_from(table))
    else:
        found = connection.scalar(
            text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(:name)"), {"name": table.name}
        )
    return max(int(found or 0), _COUNTED + 1)
