"""Which version of the schema a database has, and whether this program may use it.

Opening a store is quick and never migrates: it reads one row. An empty SQLite file is created at the newest version on
the spot; anything else that is not at that version is refused with the command that fixes it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, insert, inspect, select

from cuarl.errors import ConfigError, DatabaseBehind, PrerequisiteError
from cuarl.store import transaction
from cuarl.store.deadline import answered_within
from cuarl.store.engine import writing
from cuarl.store.tables import Base
from cuarl.store.transaction import ServerAway
from cuarl.store.url import EXAMPLE_URL, masked, sqlite_path

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007")
"""All revisions, oldest first, as in ``migrations/versions``."""
HEAD = REVISIONS[-1]
VERSION_TABLE = "cuarl_schema_version"
"""Not alembic's default name, so that a database can be shared with other programs that use alembic."""

_version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32), nullable=False))


class SchemaState(StrEnum):
    """How a database's schema relates to this program."""

    EMPTY = "empty"
    UNVERSIONED = "unversioned"
    BEHIND = "behind"
    CURRENT = "current"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A database's schema version, and what it means."""

    state: SchemaState
    current: str | None
    """The revision it is at; None if it has none."""

    @property
    def pending(self) -> tuple[str, ...]:
        """Revisions that are still to be applied, oldest first."""
        if self.state in (SchemaState.CURRENT, SchemaState.NEWER):
            return ()
        if self.current is None:
            return REVISIONS
        return REVISIONS[REVISIONS.index(self.current) + 1 :]


def read_version(connection: Connection) -> SchemaVersion:
    """Look at a database without touching it."""
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE in names:
        current = connection.scalar(select(_version.c.version_num))
        if current is not None:
            return SchemaVersion(_state(current), current)
    ours = names & set(Base.metadata.tables)
    return SchemaVersion(SchemaState.UNVERSIONED if ours else SchemaState.EMPTY, None)


def _state(current: str) -> SchemaState:
    if current == HEAD:
        return SchemaState.CURRENT
    return SchemaState.BEHIND if current in REVISIONS else SchemaState.NEWER


def create_schema(connection: Connection) -> None:
    """Make all tables at the newest version in an empty database."""
    Base.metadata.create_all(connection)
    _version.create(connection, checkfirst=True)
    connection.execute(insert(_version).values(version_num=HEAD))


def look(engine: Engine) -> SchemaVersion:
    """The schema version of a database. Writes nothing. Raises PrerequisiteError if the server can't be reached."""
    path = sqlite_path(engine.url)
    if path is not None and not path.exists():  # connecting would make the file
        return SchemaVersion(SchemaState.EMPTY, None)
    try:
        with answered_within(transaction.ANSWER_S):
            return transaction.read(engine, lambda session: read_version(session.connection()), retry_s=0)
    except ServerAway as error:
        raise PrerequisiteError(
            error.what, where=error.where, hint="start the server, or: export DATABASE_URL=" + EXAMPLE_URL
        ) from error


def require_current(engine: Engine) -> None:
    """Make sure that the schema is the newest one; create it if the database is an empty SQLite file.

    Raises DatabaseBehind if it is older, PrerequisiteError if it is newer. Neither writes anything.
    """
    version = look(engine)
    if version.state is SchemaState.EMPTY and engine.dialect.name == "sqlite":
        with writing(engine) as connection:
            # another process may have been quicker between the look and the lock
            version = read_version(connection)
            if version.state is SchemaState.EMPTY:
                create_schema(connection)
                return
    if version.state is not SchemaState.CURRENT:
        raise not_current(version, where=masked(engine.url))


def not_current(version: SchemaVersion, *, where: str) -> PrerequisiteError:
    """The error that says how a schema is not the newest one."""
    if version.state is SchemaState.NEWER:
        return PrerequisiteError(
            f"the database is at schema {version.current}, which is newer than this program's {HEAD}",
            where=where,
            hint="pip install --upgrade cuarl",
        )
    count = len(version.pending)
    at = {SchemaState.EMPTY: "is empty", SchemaState.UNVERSIONED: "has tables but no schema version"}.get(
        version.state, f"is {count} revision{'s' if count > 1 else ''} behind"
    )
    return DatabaseBehind(
        f"the database {at} (at {version.current or 'none'}, need {HEAD})", where=where, hint="cuarl db migrate"
    )


def require_revision(revision: str, *, known: Collection[str] = REVISIONS) -> str:
    """Check a revision that a person named; ``head`` and ``base`` are fine. Raises ConfigError."""
    if revision in ("head", "base") or revision in known:
        return HEAD if revision == "head" else revision
    raise ConfigError(
        f'there is no revision "{revision}"', hint=f"cuarl db migrate --to {HEAD}   # known: {', '.join(known)}"
    )
