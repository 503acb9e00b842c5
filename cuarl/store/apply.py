"""Carry writes out on a connection, inside the caller's transaction. Each is idempotent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, singledispatch
from importlib import import_module
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from cuarl.errors import StoreError
from cuarl.store import tables as t
from cuarl.store import writes as w
from cuarl.store.records import Entity
from cuarl.store.rows import Row, started_row, task_row, trajectory_rows
from cuarl.trajectory import Trajectory


def apply_all(writes: Sequence[w.Write], connection: Connection) -> None:
    """Carry writes out in order; neighbouring episodes share their statements, which is most of an episode's cost.

    Raises what ``apply`` raises.
    """
    for kind, same in groupby(writes, type):
        if kind is w.SaveTrajectory:
            episodes = [write for write in same if isinstance(write, w.SaveTrajectory)]
            _save_trajectories(connection, [(write.trajectory, write.at) for write in episodes])
        else:
            for write in same:
                apply(write, connection)


@singledispatch
def apply(write: w.Write, connection: Connection) -> None:
    """Carry out one write.

    Raises StoreError if it refers to something that isn't there; SQLAlchemy's errors pass.
    """
    raise TypeError(f"not a write: {type(write).__name__}")


def upsert(connection: Connection, table: type[t.Base], rows: Sequence[Row], *, keep: bool = False) -> None:
    """Insert rows; one whose key exists is replaced, or kept as it is."""
    if rows:
        connection.execute(_insert(connection.dialect.name, table, keep), rows)


@cache
def _insert(dialect: str, table: type[t.Base], keep: bool) -> Any:
    insert = import_module(f"sqlalchemy.dialects.{dialect}").insert
    statement = insert(table)
    keys = [c.name for c in table.__table__.primary_key]
    values = {c.name: statement.excluded[c.name] for c in table.__table__.columns if c.name not in keys}
    if keep or not values:
        return statement.on_conflict_do_nothing()
    return statement.on_conflict_do_update(index_elements=keys, set_=values)


# --- statuses ------------------------------------------------------------------------------------------------------


def _fresh(
    connection: Connection, entity: Entity, statuses: Mapping[str, tuple[str, float]], message: str = ""
) -> set[str]:
    """Add statuses and their times to the history; gives the ids whose known status is not newer.

    A write that was spooled, and comes back after later news, must not turn a status back.
    """
    last = _last_changes(connection, entity, list(statuses))
    rows: list[Row] = []
    fresh = set()
    for entity_id, (new, at) in statuses.items():
        seq, old, since = last.get(entity_id, (-1, None, at))
        if since > at:
            continue
        fresh.add(entity_id)
        if new != old:
            rows.append(
                {
                    "entity": entity,
                    "entity_id": entity_id,
                    "seq": seq + 1,
                    "old": old,
                    "new": new,
                    "message": message,
                    "at": at,
                }
            )
    upsert(connection, t.StatusRow, rows, keep=True)
    return fresh


def _last_changes(connection: Connection, entity: Entity, ids: Sequence[str]) -> dict[str, tuple[int, str, float]]:
    here = (t.StatusRow.entity == entity) & t.StatusRow.entity_id.in_(ids)
    newest = (
        select(t.StatusRow.entity_id, func.max(t.StatusRow.seq).label("seq"))
        .where(here)
        .group_by(t.StatusRow.entity_id)
        .subquery()
    )
    found = connection.execute(
        select(t.StatusRow.entity_id, t.StatusRow.seq, t.StatusRow.new, t.StatusRow.at)
        .join(newest, (t.StatusRow.entity_id == newest.c.entity_id) & (t.StatusRow.seq == newest.c.seq))
        .where(t.StatusRow.entity == entity)
    )
    return {row.entity_id: (row.seq, row.new, row.at) for row in found}


# --- runs ----------------------------------------------------------------------------------------------------------


@apply.register
def _(write: w.SaveRun, connection: Connection) -> None:
    if _fresh(connection, "run", {write.run.id: (write.run.status, write.at)}, write.run.message):
        upsert(connection, t.RunRow, [write.run.model_dump()])


@apply.register
def _(write: w.FinishRun, connection: Connection) -> None:
    _require_run(connection, write.run_id)
    if _fresh(connection, "run", {write.run_id: (write.status, write.at)}, write.message):
        connection.execute(delete(t.LiveRow).where(t.LiveRow.run_id == write.run_id))
        values = {"status": write.status, "message": write.message, "finished_at": write.at}
        connection.execute(update(t.RunRow).where(t.RunRow.id == write.run_id).values(values))


@apply.register
def _(write: w.Heartbeat, connection: Connection) -> None:
    values: Row = {"heartbeat_at": write.at}
    if write.step is not None:
        values["step"] = write.step
    connection.execute(update(t.RunRow).where(t.RunRow.id == write.run_id).values(values))


@apply.register
def _(write: w.RewindRun, connection: Connection) -> None:
    for table in (t.MetricRow, t.EvaluationRow, t.PolicyRow, t.EpisodeRow, t.GroupRow):
        connection.execute(delete(table).where(table.run_id == write.run_id, table.step > write.step))


@apply.register
def _(write: w.DeleteRun, connection: Connection) -> None:
    history, run_id = t.StatusRow, write.run_id
    mine = {
        "episode": select(t.EpisodeRow.id).where(t.EpisodeRow.run_id == run_id),
        "evaluation": select(t.EvaluationRow.id).where(t.EvaluationRow.run_id == run_id),
        "run": select(t.RunRow.id).where(t.RunRow.id == run_id),
    }
    for entity, ids in mine.items():
        connection.execute(delete(history).where(history.entity == entity, history.entity_id.in_(ids)))
    connection.execute(update(t.SessionRow).where(t.SessionRow.run_id == run_id).values(run_id=None))
    connection.execute(update(t.RunRow).where(t.RunRow.parent_id == run_id).values(parent_id=None))
    connection.execute(delete(t.LiveRow).where(t.LiveRow.run_id == run_id))
    for owned in (t.MetricRow, t.EvaluationRow, t.PolicyRow, t.EventRow, t.EpisodeRow, t.GroupRow):
        connection.execute(delete(owned).where(owned.run_id == run_id))
    connection.execute(delete(t.RunRow).where(t.RunRow.id == run_id))


def _require_run(connection: Connection, run_id: str) -> None:
    if connection.scalar(select(t.RunRow.id).where(t.RunRow.id == run_id)) is None:
        raise StoreError(f'there is no run "{run_id}" in the store', hint="cuarl db status")


@apply.register
def _(write: w.RestoreHistory, connection: Connection) -> None:
    upsert(connection, t.StatusRow, [c.model_dump() for c in write.changes], keep=True)


# --- what a run works with -----------------------------------------------------------------------------------------


@apply.register
def _(write: w.SavePolicy, connection: Connection) -> None:
    upsert(connection, t.PolicyRow, [_linked(write.policy.model_dump())])


@apply.register
def _(write: w.SaveTasks, connection: Connection) -> None:
    upsert(connection, t.TaskRow, [task_row(task, write.at) for task in write.tasks], keep=True)


def _linked(row: Row) -> Row:
    """A record that belongs to no run has NULL for it."""
    return {**row, "run_id": row["run_id"] or None}


# --- episodes ------------------------------------------------------------------------------------------------------


@apply.register
def _(write: w.StartEpisode, connection: Connection) -> None:
    start = write.episode
    known = connection.scalar(select(t.EpisodeRow.status).where(t.EpisodeRow.id == start.episode_id))
    if known is None:
        upsert(connection, t.GroupRow, _group_rows([start]), keep=True)
        upsert(connection, t.EpisodeRow, [started_row(start, write.at)], keep=True)
        _fresh(connection, "episode", {start.episode_id: ("started", write.at)})


@apply.register
def _(write: w.SaveTrajectory, connection: Connection) -> None:
    _save_trajectories(connection, [(write.trajectory, write.at)])


@apply.register
def _(write: w.SaveGroup, connection: Connection) -> None:
    group = write.group
    strangers = [e.episode_id for e in group.trajectories if e.group_id != group.group_id]
    if strangers:
        raise StoreError(f'group "{group.group_id}" holds episodes of another group: {", ".join(strangers)}')
    first = group.trajectories[0] if group.trajectories else None
    row = {
        "id": group.group_id,
        "run_id": (first and first.run_id) or None,
        "task_id": group.task_id,
        "seed": group.seed,
        "step": first.step if first else 0,
        "purpose": first.purpose if first else "rollout",
    }
    upsert(connection, t.GroupRow, [row])
    _save_trajectories(connection, [(e, write.at) for e in group.trajectories])


def _group_rows(episodes: Iterable[Trajectory | Any]) -> list[Row]:
    groups = {
        e.group_id: {
            "id": e.group_id,
            "run_id": e.run_id or None,
            "task_id": e.task_id,
            "seed": e.seed,
            "step": e.step,
            "purpose": e.purpose,
        }
        for e in episodes
        if e.group_id
    }
    return [groups[i] for i in sorted(groups)]  # one order for all processes, so that they can't deadlock


def _save_trajectories(connection: Connection, saved: Sequence[tuple[Trajectory, float]]) -> None:
    last = {trajectory.episode_id: (trajectory, at) for trajectory, at in saved}
    parts = [trajectory_rows(trajectory, at) for trajectory, at in last.values()]
    upsert(connection, t.GroupRow, _group_rows(trajectory for trajectory, _ in saved), keep=True)
    _forget_turns(connection, list(last))
    upsert(connection, t.EpisodeRow, [p.episode for p in parts])
    upsert(connection, t.TurnRow, [row for p in parts for row in p.turns])
    upsert(connection, t.SampleRow, [row for p in parts for row in p.samples])
    upsert(connection, t.VerdictRow, [p.verdict for p in parts if p.verdict])
    _fresh(
        connection,
        "episode",
        {i: (p.episode["status"], at) for (i, (_, at)), p in zip(last.items(), parts, strict=True)},
    )


def _forget_turns(connection: Connection, ids: Sequence[str]) -> None:
    """Make room for whole episodes where others of the same ids are stored."""
    stored = connection.scalars(
        select(t.EpisodeRow.id).where(t.EpisodeRow.id.in_(ids), t.EpisodeRow.status != "started")
    ).all()
    if stored:
        connection.execute(delete(t.TurnRow).where(t.TurnRow.episode_id.in_(stored)))
        connection.execute(delete(t.VerdictRow).where(t.VerdictRow.episode_id.in_(stored)))


# --- evaluations, metrics, events, sessions ------------------------------------------------------------------------


@apply.register
def _(write: w.SaveEvaluation, connection: Connection) -> None:
    record = write.evaluation
    if not _fresh(connection, "evaluation", {record.id: (record.status, write.at)}, record.message):
        return
    upsert(connection, t.EvaluationRow, [_linked(record.model_dump())])
    members = t.EvaluationEpisodeRow
    connection.execute(delete(members).where(members.evaluation_id == record.id))
    rows = [{"evaluation_id": record.id, "episode_id": e, "position": i} for i, e in enumerate(write.episode_ids)]
    upsert(connection, members, rows)


@apply.register
def _(write: w.LogMetrics, connection: Connection) -> None:
    upsert(connection, t.MetricRow, [p.model_dump() for p in write.points])


@apply.register
def _(write: w.LogEvent, connection: Connection) -> None:
    upsert(connection, t.EventRow, [_linked(write.event.model_dump())])


@apply.register
def _(write: w.SaveHumanVerdict, connection: Connection) -> None:
    upsert(connection, t.HumanVerdictRow, [write.verdict.model_dump()], keep=True)


@apply.register
def _(write: w.SaveSession, connection: Connection) -> None:
    record = write.session
    if _fresh(connection, "session", {record.id: (record.status, write.at)}, record.message):
        row = _linked(record.model_dump())
        upsert(connection, t.SessionRow, [{**row, "episode_id": record.episode_id or None}])
