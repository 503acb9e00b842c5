"""Short transactions: retried where that may help, and with errors that a person can act on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import stamina
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from cuarl.errors import StoreError
from cuarl.store.deadline import answered_within
from cuarl.store.engine import damaged, writing
from cuarl.store.url import masked

T = TypeVar("T")

RETRY_S = 3.0
"""How long a transaction is tried again. SQLite's own wait for a lock comes on top of each attempt."""


ANSWER_S = 15.0
"""How long a PostgreSQL server may take to answer all of one write."""


class ServerAway(StoreError):
    """The database server can't be reached."""


def write(
    engine: Engine, work: Callable[[Connection], T], *, retry_s: float = RETRY_S, answer_s: float = ANSWER_S
) -> T:
    """Run ``work`` in a write transaction; it must be idempotent, since it is tried again after a lost link or lock.

    Raises ServerAway once ``retry_s`` seconds of trying are over (0: one attempt) or a PostgreSQL server has kept an
    attempt waiting for ``answer_s`` seconds, StoreError for what a retry can't fix. Either way nothing was stored.
    """

    def attempt() -> T:
        with answered_within(answer_s), writing(engine) as connection:
            return work(connection)

    return _retried(engine, attempt, retry_s, "a value can't be stored")


def read(engine: Engine, work: Callable[[Session], T], *, retry_s: float = RETRY_S) -> T:
    """Run ``work`` in a read transaction, which must be short: a long one makes SQLite's side log grow."""

    def attempt() -> T:
        with Session(engine) as session:
            return work(session)

    return _retried(engine, attempt, retry_s, "a row can't be read")


def _retried(engine: Engine, attempt: Callable[[], T], retry_s: float, refusal: str) -> T:
    try:
        for trial in stamina.retry_context(
            on=_may_pass, attempts=None if retry_s else 1, timeout=retry_s or None, wait_initial=0.1, wait_max=2.0
        ):
            with trial:
                return attempt()
    except SQLAlchemyError as error:
        raise _explained(error, masked(engine.url)) from error
    except (OverflowError, TypeError, ValueError, RecursionError) as error:
        cause = " ".join(str(error).split())[:300]
        raise StoreError(f"{refusal}: {cause}", where=masked(engine.url)) from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def _may_pass(error: Exception) -> bool:
    """Whether trying again may help: a lost link, a lock held for too long, a deadlock."""
    return isinstance(error, DBAPIError) and (_is_away(error) or _is_busy(error))


def _is_away(error: DBAPIError) -> bool:
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error):
        return False
    state = getattr(error.orig, "sqlstate", None)
    # 08: connection exception; 57P: shutting down or starting up. A link that couldn't be made has no state at all.
    return state.startswith(("08", "57P")) if state else isinstance(error, OperationalError)


def _is_busy(error: DBAPIError) -> bool:
    name = getattr(error.orig, "sqlite_errorname", None) or ""
    state = getattr(error.orig, "sqlstate", None)
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or state in ("40001", "40P01", "55P03")


def _explained(error: SQLAlchemyError, where: str) -> StoreError:
    origin = getattr(error, "orig", None) or error
    cause = (str(origin).strip().splitlines() or [type(origin).__name__])[0]
    broken = damaged(error, where)
    if broken is not None:
        return broken
    if isinstance(error, DBAPIError) and _is_away(error):
        return ServerAway(f"the database can't be reached ({cause})", where=where, hint="cuarl db status")
    if isinstance(error, IntegrityError) and "foreign key" in cause.lower():
        return StoreError(f"a row refers to a run or episode that isn't in the store ({cause})", where=where)
    if getattr(origin, "sqlite_errorname", "") == "SQLITE_FULL":
        return StoreError("the disk is full; what was stored before is whole", where=where, hint="df -h")
    return StoreError(f"the database refused: {cause}", where=where, hint="cuarl db check")
