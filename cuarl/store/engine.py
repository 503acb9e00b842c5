"""Engines: how the two databases are connected to, and what each needs to behave.

SQLite: write-ahead logging, so that readers and one writer don't block each other; writers take the write lock when
they begin (``BEGIN IMMEDIATE``), since a reader that turns into a writer can't wait for the lock; foreign keys on.
PostgreSQL: links are tried before use and kept alive, so that a server restart or a silent firewall costs one retry; a
server that accepts and doesn't answer is given up (``deadline``).
"""

from __future__ import annotations

import importlib.util
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import stamina
from sqlalchemy import URL, Connection, Engine, create_engine, event

from cuarl.errors import MissingExtra, StoreError
from cuarl.store import deadline
from cuarl.store.url import masked, sqlite_path

log = logging.getLogger(__name__)

LOCK_WAIT_S = 60.0
"""How long a SQLite writer waits for another process's transaction."""


class FileDamaged(StoreError):
    """The SQLite file can't be read as one."""


def damaged(error: BaseException, where: str) -> FileDamaged | None:
    """The error that says so, if SQLite says so. It comes from the driver, or from SQLAlchemy around that."""
    origin = getattr(error, "orig", None) or error
    if not str(getattr(origin, "sqlite_errorname", "")).startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return None
    return FileDamaged(f"the database file is damaged: {origin}", where=where, hint="cuarl db salvage sound.db")


def make_engine(url: URL) -> Engine:
    """An engine for a URL of ``parse_url``. Connects lazily. Raises MissingExtra without the PostgreSQL driver."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    return _postgresql_engine(url)


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": LOCK_WAIT_S})
    path = sqlite_path(url)

    @event.listens_for(engine, "do_connect")
    def make_folder(_dialect: Any, _record: Any, _arguments: Any, _options: Any) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions on its own
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _postgresql_engine(url: URL) -> Engine:
    if importlib.util.find_spec("psycopg") is None:
        raise MissingExtra(
            "PostgreSQL needs an optional dependency", where=masked(url), hint='pip install "cuarl[postgres]"'
        )
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_pre_ping=True,
        pool_recycle=1800,
        pool_size=4,
        connect_args={
            "application_name": "cuarl",
            "keepalives": 1,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 60_000,
        },
    )

    @event.listens_for(engine, "do_connect")
    def bounded(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
        return deadline.connect(*arguments, **options)

    @event.listens_for(engine, "invalidate")
    def lost(_connection: Any, _record: Any, _error: BaseException | None) -> None:
        log.warning("lost the link to %s; opening a new one", masked(url))

    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in a write transaction: committed at the end, rolled back after an error."""
    with engine.connect().execution_options(sqlite_begin="IMMEDIATE") as connection, connection.begin():
        yield connection


def use_wal(engine: Engine) -> bool:
    """Switch a SQLite file to write-ahead logging, for good. Warns, and gives False, where that isn't in force.

    Several processes may do so at once: SQLite refuses the switch at once while another holds the file, and does not
    wait. Raises FileDamaged if the file can't be read as a database.
    """
    answer = ""
    for trial in stamina.retry_context(
        on=_is_locked, attempts=None, timeout=LOCK_WAIT_S, wait_initial=0.02, wait_max=0.5
    ):
        with trial:
            try:
                answer = str(_pragma(engine, "journal_mode = WAL")).lower()
            except sqlite3.DatabaseError as error:
                raise damaged(error, masked(engine.url)) or error from error
    if answer != "wal":
        log.warning(
            "write-ahead logging is not in force for %s (journal mode: %s): processes will wait for each other, and a "
            "network file system may lose writes. Put the file on a local disk, or use PostgreSQL",
            masked(engine.url),
            answer,
        )
    return answer == "wal"


def _is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def shrink_wal(engine: Engine) -> None:
    """Write the side log back into a SQLite file and cut it to nothing, unless a reader of another process is at it."""
    with suppress(sqlite3.DatabaseError):
        _pragma(engine, "wal_checkpoint(TRUNCATE)")


def _pragma(engine: Engine, text: str) -> Any:
    """The first value of a pragma's answer, outside any transaction."""
    with closing(engine.raw_connection()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"PRAGMA {text}")
        return cursor.fetchall()[0][0]
