"""What other trainers report to the monitor, row by row as they sent it, and the tokens by which they may.

A row has a number, which its sender refers to, and a ``client_id`` of its sender's, by which it is known when it comes
again: it is changed then and keeps its number. Of a token only a digest is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, func, insert, select, text, update
from sqlalchemy.orm import Session

from cuarl.errors import ConfigError
from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store.records import ProjectToken, new_id

_PREFIX = "cuarl_"
Data = Mapping[str, Any]


class Sent(NamedTuple):
    """One row as it is to be kept."""

    kind: str
    client_id: str
    data: Data
    parent: int | None = None
    """Number of the row that it belongs to."""


class Kept(NamedTuple):
    """One row as it is kept."""

    id: int
    client_id: str
    data: Data
    parent: int | None


class Ingest:
    """Rows and tokens of all projects. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- tokens ----------------------------------------------------------------------------------------------------

    def create_token(self, project: str, *, at: float) -> tuple[ProjectToken, str]:
        """A new token for a project, and its secret, which is nowhere kept. Raises StoreError."""
        secret = _PREFIX + secrets.token_urlsafe(32)
        record = ProjectToken(id=new_id("token"), project=project, created_at=at)
        row = record.model_dump() | {"digest": _digest(secret)}
        transaction.write(self._engine, lambda connection: connection.execute(insert(t.ProjectTokenRow), [row]))
        return record, secret

    def tokens(self) -> list[ProjectToken]:
        """All tokens, revoked ones included, oldest first. Raises StoreError."""
        query = select(t.ProjectTokenRow).order_by(t.ProjectTokenRow.created_at, t.ProjectTokenRow.id)
        return transaction.read(self._engine, lambda session: [_token(row) for row in session.scalars(query)])

    def revoke(self, token_id: str, *, at: float) -> ProjectToken:
        """Let nobody in by a token any more. Raises ConfigError if there is none of that id, StoreError."""
        row = t.ProjectTokenRow
        found = [token for token in self.tokens() if token.id == token_id]
        if not found:
            raise ConfigError(f'there is no token "{token_id}"', hint="cuarl monitor tokens list")
        if found[0].revoked_at is None:
            change = update(row).where(row.id == token_id).values(revoked_at=at)
            transaction.write(self._engine, lambda connection: connection.execute(change))
        return found[0].model_copy(update={"revoked_at": found[0].revoked_at or at})

    def project_of(self, secret: str) -> str | None:
        """The project that a token is for; None for one that is unknown or revoked. Raises StoreError."""
        row = t.ProjectTokenRow
        query = select(row.project).where(row.digest == _digest(secret), row.revoked_at.is_(None))
        return transaction.read(self._engine, lambda session: session.scalar(query))

    # --- rows ------------------------------------------------------------------------------------------------------

    def keep(self, project: str, rows: Sequence[Sent], *, at: float) -> list[int]:
        """Keep rows, all or none; gives their numbers. Raises StoreError.

        Fields of a known row that are not sent again stay.
        """

        def work(connection: Connection) -> list[int]:
            if connection.dialect.name == "postgresql":  # numbers are counted on; SQLite has one writer in any case
                connection.execute(text("LOCK TABLE ingested IN SHARE ROW EXCLUSIVE MODE"))
            return [_keep(connection, project, row, at) for row in rows]

        return transaction.write(self._engine, work)

    def known(self, project: str, kind: str, ids: Sequence[int]) -> set[int]:
        """Which of these numbers a project has. Raises StoreError."""
        row = t.IngestedRow
        query = select(row.id).where(row.project == project, row.kind == kind, row.id.in_(list(ids)))
        return transaction.read(self._engine, lambda session: set(session.scalars(query)))

    def rows(self, kind: str, *, ids: Sequence[int] | None = None, parents: Sequence[int] | None = None) -> list[Kept]:
        """Rows of a kind by their numbers, or by those of what they belong to, in their order. Raises StoreError."""
        row = t.IngestedRow
        query = select(row).where(row.kind == kind).order_by(row.id)
        query = query.where(row.id.in_(list(ids))) if ids is not None else query
        query = query.where(row.parent.in_(list(parents))) if parents is not None else query

        def work(session: Session) -> list[Kept]:
            return [Kept(one.id, one.client_id, one.data, one.parent) for one in session.scalars(query)]

        return transaction.read(self._engine, work)


def _keep(connection: Connection, project: str, sent: Sent, at: float) -> int:
    row = t.IngestedRow
    mine = (row.project == project) & (row.kind == sent.kind) & (row.client_id == sent.client_id)
    found = connection.execute(select(row.id, row.data, row.parent).where(mine)).first()
    if found is not None:
        values = {"data": {**found.data, **sent.data}, "parent": sent.parent or found.parent, "at": at}
        connection.execute(update(row).where(mine).values(values))
        return int(found.id)
    number = (connection.scalar(select(func.max(row.id)).where(row.kind == sent.kind)) or 0) + 1
    values = {"kind": sent.kind, "id": number, "project": project, "client_id": sent.client_id, "parent": sent.parent}
    connection.execute(insert(row), [values | {"data": dict(sent.data), "at": at}])
    return int(number)


def _token(row: t.ProjectTokenRow) -> ProjectToken:
    return ProjectToken(id=row.id, project=row.project, created_at=row.created_at, revoked_at=row.revoked_at)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
