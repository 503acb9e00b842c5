"""Is a store sound? Its schema against the mappings, its rows against each other, its rows against the screenshots.

A file that is damaged answers some questions and not others: each is asked by itself, and what can't be read is a
finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Table, func, select
from sqlalchemy.orm import Session

from cuarl.errors import StoreError
from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store.engine import FileDamaged
from cuarl.store.schema import VERSION_TABLE
from cuarl.store.store import Store
from cuarl.store.tables import Base
from cuarl.trajectory import Trajectory

_SHOWN = 20
_FILE = "file: "


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found."""

    counts: dict[str, int]
    """Rows of each table that can be counted."""
    screenshots: int
    """Screenshots that rows refer to."""
    unused_screenshots: int
    """Stored screenshots that no row refers to: left by an episode that was never completed. Harmless."""
    problems: tuple[str, ...]
    """One line each, most telling first; at most twenty of a kind."""
    damaged: bool = False
    """Whether the SQLite file itself is damaged: what is readable can be salvaged."""


def check(store: Store, *, deep: bool = False) -> Report:
    """Look for damage. ``deep`` also decodes every screenshot and loads every episode."""
    asked = _Asked(store)
    asked.lines("the schema", lambda session: _schema(session.connection()))
    asked.lines("the file", lambda session: _pages(session.connection(), deep))
    asked.lines("references", lambda session: _dangling(session.connection()))
    counts = {table.name: asked.count(table) for table in Base.metadata.sorted_tables}
    asked.lines("turns", _turn_counts)
    asked.lines("verdicts", _verdicts)
    referenced = asked.digests()
    stored = set(store.blobs.digests())
    missing = [f"screenshot {digest} is missing" for digest in sorted(referenced - stored)]
    problems = [*asked.problems, *_bounded(missing, "screenshots are missing")]
    if deep:
        problems += _bounded(_broken_screenshots(store, referenced & stored), "screenshots are broken")
        problems += _bounded(_broken_episodes(store), "episodes can't be read")
    known = {table: count for table, count in counts.items() if count is not None}
    return Report(known, len(referenced), len(stored - referenced), tuple(problems), asked.damaged)


class _Asked:
    """Questions to a store that may not be able to answer."""

    def __init__(self, store: Store) -> None:
        self._engine = store.engine
        self.problems: list[str] = []
        self.damaged = False

    def lines(self, what: str, question: Callable[[Session], Iterable[str]]) -> None:
        """Note each line of the answer as a problem, and what came before an error."""
        found: list[str] = []
        try:
            transaction.read(self._engine, lambda session: found.extend(question(session)))
        except StoreError as error:
            found.append(self._unreadable(what, error))
        self.damaged = self.damaged or any(line.startswith(_FILE) for line in found)
        self.problems += found

    def count(self, table: Table) -> int | None:
        """Rows of a table."""
        try:
            return transaction.read(
                self._engine, lambda session: session.scalar(select(func.count()).select_from(table))
            )
        except StoreError as error:
            self.problems.append(self._unreadable(table.name, error))
            return None

    def digests(self) -> set[str]:
        """Digests of all screenshots that rows refer to."""
        found: set[str] = set()
        for table, question in DIGESTS.items():
            try:
                read = transaction.read(self._engine, lambda session: set(question(session)))  # noqa: B023
                found.update(digest for digest in read if digest)  # a damaged row may have lost what it must have
            except StoreError as error:
                self.problems.append(self._unreadable(f"screenshots of {table}", error))
        return found

    def _unreadable(self, what: str, error: StoreError) -> str:
        self.damaged = self.damaged or isinstance(error, FileDamaged)
        return f"{what} can't be read: {error.what}"


def row_counts(connection: Connection) -> dict[str, int]:
    """Rows of each table."""
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in Base.metadata.sorted_tables
    }


def _sampled_digests(session: Session) -> Iterator[str]:
    for images in session.scalars(select(t.SampleRow.images).execution_options(yield_per=1000)):
        yield from (digest for digest, _, _ in images)


DIGESTS: Mapping[str, Callable[[Session], Iterable[str]]] = {
    "turns": lambda session: session.scalars(select(t.TurnRow.digest).distinct()),
    "episodes": lambda session: session.scalars(
        select(t.EpisodeRow.final_digest).where(t.EpisodeRow.final_digest.is_not(None)).distinct()
    ),
    "samples": _sampled_digests,
}
"""Where rows refer to screenshots, by table."""


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


def _pages(connection: Connection, deep: bool) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    # the thorough one also compares each index with its table
    for (answer,) in connection.exec_driver_sql(f"PRAGMA {'integrity' if deep else 'quick'}_check(20)"):
        lines = [line for line in str(answer).splitlines() if line != "ok" and not line.startswith("***")]
        yield from (f"{_FILE}{line}" for line in lines)


def _dangling(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return  # PostgreSQL never commits a dangling row
    broken = Counter(row[0] for row in connection.exec_driver_sql("PRAGMA foreign_key_check"))
    for table, count in sorted(broken.items()):
        yield f"{count} rows of {table} refer to nothing"


def incomplete(session: Session) -> Iterator[tuple[str, int, int]]:
    """Episodes of which turns are missing: id, how many there should be, and are. One is stored whole or not at all."""
    turns = func.count(t.TurnRow.turn)
    wrong = session.execute(
        select(t.EpisodeRow.id, t.EpisodeRow.turn_count, turns)
        .outerjoin(t.TurnRow, t.TurnRow.episode_id == t.EpisodeRow.id)
        .group_by(t.EpisodeRow.id, t.EpisodeRow.turn_count)
        .having(turns != t.EpisodeRow.turn_count)
    )
    yield from ((i, expected, found) for i, expected, found in wrong)


def misjudged(session: Session) -> Iterator[str]:
    """Episodes that say another success than their verdict: where one has none, the verdict was lost."""
    e, v = t.EpisodeRow, t.VerdictRow
    query = select(e.id).outerjoin(v, v.episode_id == e.id).where(e.success.is_distinct_from(v.success))
    yield from session.scalars(query.order_by(e.id))


def token_counts(session: Session) -> dict[str, int]:
    """Tokens of each episode, as counted when it was stored: what tells a model's turn without its sample."""
    e = t.EpisodeRow
    return dict(session.execute(select(e.id, e.prompt_tokens + e.sampled_tokens)).all())


def tokens_of(trajectory: Trajectory) -> int:
    """Tokens that an episode has."""
    return trajectory.usage.prompt_tokens + trajectory.usage.sampled_tokens


def _turn_counts(session: Session) -> Iterator[str]:
    wrong = (f"episode {i} has {found} of {expected} turns" for i, expected, found in incomplete(session))
    yield from _bounded(wrong, "episodes are not whole")


def _verdicts(session: Session) -> Iterator[str]:
    wrong = (f"episode {i} and its verdict don't agree" for i in misjudged(session))
    yield from _bounded(wrong, "episodes don't agree with their verdicts")


def _broken_screenshots(store: Store, digests: Iterable[str]) -> Iterator[str]:
    for digest in sorted(digests):
        try:
            store.blobs.check(digest)
        except StoreError as error:
            yield error.what


def _broken_episodes(store: Store) -> Iterator[str]:
    try:
        ids, counted = store.episode_ids(), transaction.read(store.engine, token_counts)
    except StoreError as error:
        yield f"episodes can't be listed: {error.what}"
        return
    for episode_id in ids:
        try:
            here, expected = tokens_of(store.trajectory(episode_id)), counted.get(episode_id, 0)
        except StoreError as error:
            yield f"episode {episode_id}: {error.what}"
            continue
        if here != expected:
            yield f"episode {episode_id}: {here} of {expected} tokens are there"


def _bounded(lines: Iterable[str], summary: str) -> list[str]:
    found = list(lines)
    more = len(found) - _SHOWN
    return [*found[:_SHOWN], f"… {more} more {summary}"] if more > 0 else found
