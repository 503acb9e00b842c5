"""What guards a change of the schema: one at a time, all or nothing, and a copy of the file before it."""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from sqlalchemy import Connection, Engine, text

from cuarl.errors import StoreError
from cuarl.store.deadline import answered_within
from cuarl.store.engine import writing

log = logging.getLogger(__name__)


@contextmanager
def one_at_a_time(path: Path | None) -> Iterator[None]:
    """One change of a SQLite file's schema at a time; the next one finds nothing left to do."""
    if path is None:
        yield
        return
    with FileLock(f"{path}.migrate.lock"):
        yield


@contextmanager
def exclusive(engine: Engine) -> Iterator[Connection]:
    """A write transaction in which the schema may be changed; on PostgreSQL one at a time."""
    if engine.dialect.name == "sqlite":
        with _sqlite_transaction(engine) as connection:
            yield connection
        return
    # another one may be waited for, and large tables take their time
    with answered_within(math.inf), writing(engine) as connection:
        key = connection.scalar(text("SELECT 'cuarl schema of ' || current_database() || '.' || current_schema()"))
        number = int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:8], signed=True)
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
        yield connection


@contextmanager
def _sqlite_transaction(engine: Engine) -> Iterator[Connection]:
    """With foreign keys off, since copying a table drops the old one and would cascade; checked before the commit."""
    with engine.connect().execution_options(sqlite_begin="IMMEDIATE") as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute("PRAGMA foreign_keys = OFF")
        with connection.begin():
            yield connection
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            if broken:
                tables = sorted({str(row[0]) for row in broken})
                raise StoreError(f"the migration would leave {len(broken)} dangling rows in {', '.join(tables)}")


def copy_file(path: Path, label: str) -> Path:
    """Copy a SQLite file, side log included, as it is now; ``label`` says at which revision."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    target = path.with_name(f"{path.name}.{label}-{stamp}-{secrets.token_hex(2)}.bak")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    log.info("copied %s to %s", path, target)
    return target
