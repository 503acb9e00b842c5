"""What a person wants to know about a store at a glance. Looks only, whatever the schema's version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, inspect, select
from sqlalchemy.orm import Session

from cuarl.store import transaction
from cuarl.store.engine import make_engine
from cuarl.store.schema import HEAD, SchemaState, look
from cuarl.store.spool import Spool
from cuarl.store.tables import Base
from cuarl.store.url import default_blobs_url, masked, parse_url


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
        counts, wal = ({}, None) if version.state is SchemaState.EMPTY else transaction.read(engine, _inside, retry_s=0)
    finally:
        engine.dispose()
    waiting = tuple(str(path) for path in Spool(runs_dir / "spool", parsed).files())
    blobs = blobs_url or default_blobs_url(parsed, runs_dir)
    return Status(masked(parsed), version.state, version.current, HEAD, version.pending, counts, blobs, wal, waiting)


def _inside(session: Session) -> tuple[dict[str, int], bool | None]:
    connection = session.connection()
    present = set(inspect(connection).get_table_names())
    counts = {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in Base.metadata.sorted_tables
        if table.name in present
    }
    if connection.dialect.name != "sqlite":
        return counts, None
    return counts, connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
