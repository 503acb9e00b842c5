"""Is a store sound? Its schema against the mappings, its rows against each other, its rows against the screenshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, func, select
from sqlalchemy.orm import Session

from cuarl.errors import StoreError
from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store.schema import VERSION_TABLE
from cuarl.store.store import Store
from cuarl.store.tables import Base

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found."""

    counts: dict[str, int]
    """Rows of each table."""
    screenshots: int
    """Screenshots that rows refer to."""
    unused_screenshots: int
    """Stored screenshots that no row refers to: left by an episode that was never completed. Harmless."""
    problems: tuple[str, ...]
    """One line each, most telling first; at most twenty of a kind."""


def check(store: Store, *, deep: bool = False) -> Report:
    """Look for damage. ``deep`` also decodes every screenshot and loads every episode."""
    with store.engine.connect() as connection:
        problems = [*_schema(connection), *_integrity(connection)]
        counts = row_counts(connection)
    problems += transaction.read(store.engine, lambda session: list(_turn_counts(session)))
    referenced = transaction.read(store.engine, referenced_digests)
    stored = set(store.blobs.digests())
    missing = [f"screenshot {digest} is missing" for digest in sorted(referenced - stored)]
    problems += _bounded(missing, "screenshots are missing")
    if deep:
        problems += _bounded(_broken_screenshots(store, referenced & stored), "screenshots are broken")
        problems += _bounded(_broken_episodes(store), "episodes can't be read")
    return Report(counts, len(referenced), len(stored - referenced), tuple(problems))


def row_counts(connection: Connection) -> dict[str, int]:
    """Rows of each table."""
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in Base.metadata.sorted_tables
    }


def referenced_digests(session: Session) -> set[str]:
    """Digests of all screenshots that rows refer to."""
    found = set(session.scalars(select(t.TurnRow.digest).distinct()))
    found |= set(session.scalars(select(t.EpisodeRow.final_digest).where(t.EpisodeRow.final_digest.is_not(None))))
    for images in session.scalars(select(t.SampleRow.images)):
        found.update(digest for digest, _, _ in images)
    return {digest for digest in found if digest}


def schema_differences(connection: Connection) -> list[str]:
    """How the tables differ from the mappings, one line a difference."""

    def ours(name: str | None, kind: str, _parents: object) -> bool:
        return kind != "table" or name in Base.metadata.tables

    options = {"compare_type": True, "version_table": VERSION_TABLE, "include_name": ours}
    context = MigrationContext.configure(connection, opts=options)
    return [_difference(d) for d in compare_metadata(context, Base.metadata)]


def _difference(found: object) -> str:
    while isinstance(found, list):  # changes of one column come as a list
        found = found[0]
    parts = [str(part) for part in found if part is not None] if isinstance(found, tuple) else [str(found)]
    return " ".join(parts)[:200]


def _schema(connection: Connection) -> list[str]:
    return [f"schema: {line}" for line in schema_differences(connection)]


def _integrity(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return  # PostgreSQL never commits a dangling row
    for (answer,) in connection.exec_driver_sql("PRAGMA quick_check(20)"):
        if answer != "ok":
            yield f"file: {answer}"
    broken = Counter(row[0] for row in connection.exec_driver_sql("PRAGMA foreign_key_check"))
    for table, count in sorted(broken.items()):
        yield f"{count} rows of {table} refer to nothing"


def _turn_counts(session: Session) -> Iterator[str]:
    """An episode is stored whole or not at all."""
    turns = func.count(t.TurnRow.turn)
    wrong = session.execute(
        select(t.EpisodeRow.id, t.EpisodeRow.turn_count, turns)
        .outerjoin(t.TurnRow, t.TurnRow.episode_id == t.EpisodeRow.id)
        .group_by(t.EpisodeRow.id, t.EpisodeRow.turn_count)
        .having(turns != t.EpisodeRow.turn_count)
    )
    yield from _bounded(
        (f"episode {i} has {found} of {expected} turns" for i, expected, found in wrong), "episodes are not whole"
    )


def _broken_screenshots(store: Store, digests: Iterable[str]) -> Iterator[str]:
    for digest in sorted(digests):
        try:
            store.blobs.check(digest)
        except StoreError as error:
            yield error.what


def _broken_episodes(store: Store) -> Iterator[str]:
    for episode_id in store.episode_ids():
        try:
            store.trajectory(episode_id)
        except StoreError as error:
            yield f"episode {episode_id}: {error.what}"


def _bounded(lines: Iterable[str], summary: str) -> list[str]:
    found = list(lines)
    more = len(found) - _SHOWN
    return [*found[:_SHOWN], f"… {more} more {summary}"] if more > 0 else found
