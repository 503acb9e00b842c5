"""Makes a store sound whose rows come from a damaged file: what is not whole, or refers to nothing, is taken out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, insert, literal_column, select, union
from sqlalchemy.orm import Session

from cuarl.errors import StoreError
from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store.check import incomplete, misjudged, token_counts, tokens_of
from cuarl.store.records import (
    EvaluationRecord,
    EventRecord,
    HumanVerdict,
    LiveRecord,
    MetricPoint,
    PolicyRecord,
    RunRecord,
    SessionRecord,
    StatusChange,
)
from cuarl.store.rows import load_summary
from cuarl.store.store import Store
from cuarl.tasks.task import Task
from cuarl.types import Record

_LOST = "its own row could not be salvaged"
_BATCH = 256
_RECORDS: dict[type[t.Base], type[Record]] = {
    t.RunRow: RunRecord, t.PolicyRow: PolicyRecord, t.EvaluationRow: EvaluationRecord, t.MetricRow: MetricPoint,
    t.EventRow: EventRecord, t.SessionRow: SessionRecord, t.StatusRow: StatusChange, t.HumanVerdictRow: HumanVerdict,
    t.LiveRow: LiveRecord,
}  # fmt: skip
T = TypeVar("T")


def make_sound(store: Store, *, verdicts_lost: bool) -> dict[str, int]:
    """Take out what can't be used; gives how many rows of which table.

    ``verdicts_lost`` says that verdicts could not be read: then a scored episode without one has lost it.
    """
    out: Counter[str] = Counter()
    for table, kind in _RECORDS.items():
        out[table.__tablename__] += _drop_unreadable(store, table, partial(store.records, kind))
    out["tasks"] += _drop_unreadable(store, t.TaskRow, lambda query: _read_each(store, query, _task))
    out["episodes"] += _drop_unreadable(store, t.EpisodeRow, lambda query: _read_each(store, query, _summary))
    transaction.write(store.engine, _add_stand_ins)
    out["episodes"] += _drop_episodes(store, _not_whole(store, verdicts_lost))
    out.update(transaction.write(store.engine, _drop_dangling))
    return {table: count for table, count in out.items() if count}


# --- what can't be read --------------------------------------------------------------------------------------------


def _drop_unreadable(store: Store, table: type[t.Base], read: Callable[[Any], object]) -> int:
    number: Any = literal_column("rowid")
    numbers = transaction.read(store.engine, lambda s: list(s.scalars(select(number).select_from(table))))
    bad = list(_failing(numbers, lambda some: read(select(table).where(number.in_(some)))))
    _delete(store, table, number, bad)
    return len(bad)


def _delete(store: Store, table: type[t.Base], column: Any, values: Sequence[Any]) -> None:
    for some in _slices(values):
        transaction.write(store.engine, methodcaller("execute", delete(table).where(column.in_(some))))


def _read_each(store: Store, query: Any, read: Callable[[Any], object]) -> None:
    def work(session: Session) -> None:
        for row in session.scalars(query).all():  # a result that is left half-way would keep the file busy
            read(row)

    transaction.read(store.engine, work)


def _task(row: t.TaskRow) -> Task:
    return Task.model_validate(row.data)


def _summary(row: t.EpisodeRow) -> object:
    return load_summary(row, None)


def _failing(items: Sequence[T], work: Callable[[Sequence[T]], object]) -> Iterator[T]:
    """Those for which ``work`` raises StoreError, alone or among others."""
    for some in _slices(items):
        try:
            work(some)
        except StoreError:
            if len(some) == 1:
                yield some[0]
                continue
            middle = len(some) // 2
            for half in (some[:middle], some[middle:]):
                yield from _failing(half, work)


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[i : i + _BATCH] for i in range(0, len(items), _BATCH))


# --- what is not whole ---------------------------------------------------------------------------------------------


def _not_whole(store: Store, verdicts_lost: bool) -> set[str]:
    """Episodes of which turns, samples or the verdict are missing or damaged."""
    bad = set(_failing(store.episode_ids(), store.load))
    _drop_episodes(store, bad)
    bad.update(i for i, _, _ in transaction.read(store.engine, lambda session: list(incomplete(session))))
    bad.update(transaction.read(store.engine, lambda session: list(misjudged(session))))
    counted = transaction.read(store.engine, token_counts)
    verdicts_lost = verdicts_lost or transaction.read(store.engine, _verdicts_vanished)
    for trajectory in store.trajectories():
        judged = trajectory.check_at is not None and trajectory.failure is None
        lost = trajectory.verdict is None and (judged or (verdicts_lost and trajectory.scored))
        if lost or tokens_of(trajectory) != counted[trajectory.episode_id]:
            bad.add(trajectory.episode_id)
    return bad


def _verdicts_vanished(session: Session) -> bool:
    """Whether there are none at all, and episodes that were checked.

    A page may be damaged so that its table looks empty.
    """
    checked = select(t.EpisodeRow.id).where(t.EpisodeRow.check_at.is_not(None)).limit(1)
    any_verdict = select(t.VerdictRow.episode_id).limit(1)
    return session.scalar(checked) is not None and session.scalar(any_verdict) is None


def _drop_episodes(store: Store, ids: set[str]) -> int:
    _delete(store, t.EpisodeRow, t.EpisodeRow.id, sorted(ids))
    return len(ids)


# --- what refers to nothing ----------------------------------------------------------------------------------------


def _add_stand_ins(connection: Connection) -> None:
    """Rows for runs and groups that others belong to, and whose own are lost."""
    belong: list[Any] = [t.PolicyRow, t.GroupRow, t.EpisodeRow, t.EvaluationRow, t.MetricRow, t.EventRow, t.SessionRow]
    named = union(*(select(table.run_id) for table in belong), select(t.RunRow.parent_id)).subquery()
    runs = connection.scalars(select(named.c[0]).where(named.c[0].is_not(None), named.c[0].not_in(select(t.RunRow.id))))
    for run_id in runs.all():
        record = RunRecord(id=run_id, name=run_id, status="failed", message=_LOST)
        connection.execute(insert(t.RunRow).values(record.model_dump()))
    e = t.EpisodeRow
    lost = select(e).where(e.group_id.is_not(None), e.group_id.not_in(select(t.GroupRow.id)))
    for group in {row.group_id: row for row in connection.execute(lost)}.values():
        connection.execute(
            insert(t.GroupRow).values(
                id=group.group_id,
                run_id=group.run_id,
                task_id=group.task_id,
                seed=group.seed,
                step=group.step,
                purpose=group.purpose,
            )
        )


def drop_dangling(ask: Callable[[str], Sequence[Any]]) -> Counter[str]:
    """Delete rows that refer to nothing, and those that refer to them. ``ask`` runs a statement, and gives its rows."""
    out: Counter[str] = Counter()
    while dangling := {(row[0], int(row[1])) for row in ask("PRAGMA foreign_key_check")}:
        for table, rowid in dangling:
            ask(f'DELETE FROM "{table}" WHERE rowid = {rowid}')
            out[table] += 1
    return out


def _drop_dangling(connection: Connection) -> Counter[str]:
    def ask(statement: str) -> Sequence[Any]:
        result = connection.exec_driver_sql(statement)
        return result.all() if result.returns_rows else ()

    return drop_dangling(ask)
