"""What the store can be asked. Every query is one short read transaction, or a few over a long result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypedDict, TypeVar, Unpack

from sqlalchemy import Engine, Select, select, tuple_
from sqlalchemy.orm import Session

from cuarl.errors import StoreError
from cuarl.store import tables as t
from cuarl.store import transaction
from cuarl.store.records import (
    Entity,
    EpisodeStatus,
    EpisodeSummary,
    EvaluationRecord,
    EventRecord,
    HumanVerdict,
    LiveRecord,
    MetricPoint,
    PolicyRecord,
    Purpose,
    RunRecord,
    RunStatus,
    SessionRecord,
    SessionStatus,
    StatusChange,
)
from cuarl.store.rows import load_summary, load_trajectory
from cuarl.tasks.task import Task
from cuarl.trajectory import Group, Trajectory
from cuarl.types import Record

_CHUNK = 64
_LAST = chr(sys.maxunicode) * 4
"""Sorts behind whatever an id goes on with."""
R = TypeVar("R", bound=Record)
T = TypeVar("T")


class EpisodeFilter(TypedDict, total=False):
    """Conditions on episodes, all of which must hold."""

    run: str
    purpose: Purpose
    step: int
    task: str
    group: str
    policy: str
    policy_version: int
    evaluation: str
    """Counted by this evaluation."""
    status: EpisodeStatus
    saved_after: float
    """Stored (or started) later than this Unix time, in that order: for those who poll."""


class Reader:
    """Typed queries over one engine. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    # --- runs ------------------------------------------------------------------------------------------------------

    def runs(self, *, status: RunStatus | None = None) -> list[RunRecord]:
        """Runs, all or those of a status, newest first."""
        query = _where(select(t.RunRow), t.RunRow.status, status)
        return self.records(RunRecord, query.order_by(t.RunRow.started_at.desc(), t.RunRow.id))

    def run(self, run_id: str) -> RunRecord:
        """One run. Raises StoreError if there is none."""
        found = self.records(RunRecord, select(t.RunRow).where(t.RunRow.id == run_id))
        if not found:
            raise StoreError(f'there is no run "{run_id}" in the store', hint="cuarl db status")
        return found[0]

    def policies(self, *, run: str | None = None) -> list[PolicyRecord]:
        """Policy versions, by name and version."""
        query = _where(select(t.PolicyRow), t.PolicyRow.run_id, run)
        return self.records(PolicyRecord, query.order_by(t.PolicyRow.name, t.PolicyRow.version))

    def tasks(self) -> list[Task]:
        """Every definition of a task that was ever used, by id."""
        query = select(t.TaskRow.data).order_by(t.TaskRow.id, t.TaskRow.seen_at, t.TaskRow.digest)
        return [Task.model_validate(data) for data in self._read(lambda s: s.scalars(query).all())]

    def metrics(self, run: str, *, name: str | None = None, after_step: int = -1) -> list[MetricPoint]:
        """Metrics of a run, by step and name."""
        query = select(t.MetricRow).where(t.MetricRow.run_id == run, t.MetricRow.step > after_step)
        query = _where(query, t.MetricRow.name, name)
        return self.records(MetricPoint, query.order_by(t.MetricRow.step, t.MetricRow.name))

    def events(self, *, run: str | None = None, kind: str | None = None, after: float = 0.0) -> list[EventRecord]:
        """Events, oldest first."""
        query = _where(select(t.EventRow).where(t.EventRow.at >= after), t.EventRow.run_id, run)
        query = _where(query, t.EventRow.kind, kind)
        return self.records(EventRecord, query.order_by(t.EventRow.at, t.EventRow.id))

    def sessions(self, *, status: SessionStatus | None = None, run: str | None = None) -> list[SessionRecord]:
        """Devices outside this process, oldest first."""
        query = _where(_where(select(t.SessionRow), t.SessionRow.status, status), t.SessionRow.run_id, run)
        return self.records(SessionRecord, query.order_by(t.SessionRow.created_at, t.SessionRow.id))

    def history(self, entity: Entity | None = None, entity_id: str | None = None) -> list[StatusChange]:
        """Status changes, in order, of one entity or of all."""
        query = _where(_where(select(t.StatusRow), t.StatusRow.entity, entity), t.StatusRow.entity_id, entity_id)
        return self.records(StatusChange, query.order_by(t.StatusRow.entity, t.StatusRow.entity_id, t.StatusRow.seq))

    # --- evaluations -----------------------------------------------------------------------------------------------

    def evaluations(self, *, run: str | None = None, suite: str | None = None) -> list[EvaluationRecord]:
        """Evaluations, oldest first; their episodes are ``episodes(evaluation=…)``."""
        query = _where(_where(select(t.EvaluationRow), t.EvaluationRow.run_id, run), t.EvaluationRow.suite, suite)
        return self.records(EvaluationRecord, query.order_by(t.EvaluationRow.started_at, t.EvaluationRow.id))

    def evaluation_episode_ids(self, evaluation_id: str) -> list[str]:
        """Which episodes an evaluation counts, in its order."""
        member = t.EvaluationEpisodeRow
        query = select(member.episode_id).where(member.evaluation_id == evaluation_id).order_by(member.position)
        return list(self._read(lambda s: s.scalars(query).all()))

    # --- what people say, and what runs just now --------------------------------------------------------------------

    def human_verdicts(self, *, episode: str | None = None, run: str | None = None) -> list[HumanVerdict]:
        """What people said of episodes, oldest first: of one, of those of a run, or of all."""
        v, e = t.HumanVerdictRow, t.EpisodeRow
        query = _where(select(v), v.episode_id, episode)
        if run is not None:
            query = query.join(e, e.id == v.episode_id).where(e.run_id == run)
        return self.records(HumanVerdict, query.order_by(v.at, v.id))

    def overruled(self, *, run: str | None = None, before: float | None = None) -> dict[str, bool]:
        """The verdicts of people that hold (at Unix time ``before``), by episode; those taken back are left out."""
        said = {v.episode_id: v.success for v in self.human_verdicts(run=run) if before is None or v.at <= before}
        return {episode: success for episode, success in said.items() if success is not None}

    def live(self, run: str | None = None) -> list[LiveRecord]:
        """How far runs, and then each of their episodes, have come just now; empty for one that nobody works on."""
        query = _where(select(t.LiveRow), t.LiveRow.run_id, run)
        return self.records(LiveRecord, query.order_by(t.LiveRow.run_id, t.LiveRow.episode_id))

    # --- episodes --------------------------------------------------------------------------------------------------

    def episodes(self, *, limit: int | None = None, **where: Unpack[EpisodeFilter]) -> list[EpisodeSummary]:
        """Episodes without their turns, in a fixed order: by step and id. A page takes no longer in a large store."""
        query = (
            _filtered(select(t.EpisodeRow, t.VerdictRow), where)
            .outerjoin(t.VerdictRow, t.VerdictRow.episode_id == t.EpisodeRow.id)
            .limit(limit)
        )
        return self._read(lambda s: [load_summary(episode, verdict) for episode, verdict in s.execute(query)])

    def newest(
        self, limit: int, *, run: str | None = None, before: EpisodeSummary | None = None
    ) -> list[EpisodeSummary]:
        """Finished episodes of all runs or of one, the one stored last first.

        The next page is ``before`` the last one of this.
        """
        e = t.EpisodeRow
        query = select(e, t.VerdictRow).outerjoin(t.VerdictRow, t.VerdictRow.episode_id == e.id)
        query = query.where(e.status != "started")
        if run is not None:
            query = query.where(e.run_id == run)
        query = query.order_by(e.saved_at.desc(), e.id.desc()).limit(limit)
        if before is not None:
            query = query.where(tuple_(e.saved_at, e.id) < (before.saved_at, before.episode_id))
        return self._read(lambda s: [load_summary(episode, verdict) for episode, verdict in s.execute(query)])

    def beginning(self, prefix: str, *, limit: int) -> list[str]:
        """Ids of finished episodes that begin so, in order; an episode of exactly that id is the first."""
        e = t.EpisodeRow
        query = select(e.id).where(e.id >= prefix, e.id < prefix + _LAST, e.status != "started")
        return self._read(lambda s: list(s.scalars(query.order_by(e.id).limit(limit))))

    def episode_ids(self, **where: Unpack[EpisodeFilter]) -> list[str]:
        """Ids of finished episodes, in the order of ``episodes``."""
        query = _filtered(select(t.EpisodeRow.id), where).where(t.EpisodeRow.status != "started")
        return self._read(lambda s: list(s.scalars(query)))

    def trajectories(self, **where: Unpack[EpisodeFilter]) -> Iterator[Trajectory]:
        """Whole episodes, in the order of ``episodes``, read a few at a time; those under way are left out."""
        return self._stream(self.episode_ids(**where))

    def trajectory(self, episode_id: str) -> Trajectory:
        """One episode, exactly as it was saved. Raises StoreError if it isn't there, or is under way."""
        found = self.load([episode_id])
        if episode_id not in found:
            raise StoreError(f'there is no finished episode "{episode_id}" in the store', hint="cuarl db status")
        return found[episode_id]

    def groups(self, *, run: str | None = None, step: int | None = None, purpose: Purpose | None = None) -> list[Group]:
        """Groups with their finished episodes, attempts in order."""
        query = _where(_where(select(t.GroupRow), t.GroupRow.run_id, run), t.GroupRow.step, step)
        return self._groups(_where(query, t.GroupRow.purpose, purpose))

    def group(self, group_id: str) -> Group:
        """One group. Raises StoreError if it isn't there."""
        found = self._groups(select(t.GroupRow).where(t.GroupRow.id == group_id))
        if not found:
            raise StoreError(f'there is no group "{group_id}" in the store', hint="cuarl db status")
        return found[0]

    def _groups(self, query: Select[Any]) -> list[Group]:
        rows = self._read(lambda s: s.scalars(query.order_by(t.GroupRow.step, t.GroupRow.id)).all())
        members: dict[str, list[Trajectory]] = {row.id: [] for row in rows}
        wanted = t.EpisodeRow.group_id.in_(query.with_only_columns(t.GroupRow.id))
        ids = _filtered(select(t.EpisodeRow.id), {}).where(wanted, t.EpisodeRow.status != "started")
        for trajectory in self._stream(self._read(lambda s: list(s.scalars(ids)))):
            # a group that came in between the two reads is for the next call
            members.get(trajectory.group_id, []).append(trajectory)
        return [
            Group(
                group_id=row.id,
                task_id=row.task_id,
                seed=row.seed,
                trajectories=tuple(sorted(members[row.id], key=_attempt)),
            )
            for row in rows
        ]

    def _stream(self, ids: Iterable[str]) -> Iterator[Trajectory]:
        rest = iter(ids)
        while chunk := list(islice(rest, _CHUNK)):
            found = self.load(chunk)
            yield from (found[i] for i in chunk if i in found)

    def load(self, ids: Sequence[str]) -> dict[str, Trajectory]:
        """Finished episodes by id; those that aren't there are left out."""
        return self._read(lambda session: _load(session, ids))

    def records(self, kind: type[R], query: Select[Any]) -> list[R]:
        """The rows of a query on one table, as records of the same fields."""
        fields = tuple(kind.model_fields)
        return [
            kind.model_validate(_present({name: getattr(row, name) for name in fields}))
            for row in self._read(lambda s: s.scalars(query).all())
        ]

    def _read(self, work: Callable[[Session], T]) -> T:
        return transaction.read(self.engine, work)


def _attempt(trajectory: Trajectory) -> tuple[int, str]:
    return trajectory.attempt, trajectory.episode_id


def _where(query: Select[Any], column: Any, value: Any) -> Select[Any]:
    return query if value is None else query.where(column == value)


def _filtered(query: Any, where: EpisodeFilter) -> Any:
    e = t.EpisodeRow
    columns: dict[str, Any] = {
        "run": e.run_id,
        "purpose": e.purpose,
        "step": e.step,
        "task": e.task_id,
        "group": e.group_id,
        "policy": e.policy,
        "policy_version": e.policy_version,
        "status": e.status,
    }
    for name, column in columns.items():
        query = _where(query, column, where.get(name))
    if "saved_after" in where:
        query = query.where(e.saved_at > where["saved_after"]).order_by(e.saved_at)
    if "evaluation" in where:
        member = t.EvaluationEpisodeRow
        query = query.where(e.id.in_(select(member.episode_id).where(member.evaluation_id == where["evaluation"])))
    return query.order_by(e.step, e.id)


def _load(session: Session, ids: Sequence[str]) -> dict[str, Trajectory]:
    episodes = session.scalars(select(t.EpisodeRow).where(t.EpisodeRow.id.in_(ids), t.EpisodeRow.status != "started"))
    turns: dict[str, list[t.TurnRow]] = {}
    for turn in session.scalars(select(t.TurnRow).where(t.TurnRow.episode_id.in_(ids)).order_by(t.TurnRow.turn)):
        turns.setdefault(turn.episode_id, []).append(turn)
    samples: dict[str, dict[int, t.SampleRow]] = {}
    for sample in session.scalars(select(t.SampleRow).where(t.SampleRow.episode_id.in_(ids))):
        samples.setdefault(sample.episode_id, {})[sample.turn] = sample
    verdicts = {v.episode_id: v for v in session.scalars(select(t.VerdictRow).where(t.VerdictRow.episode_id.in_(ids)))}
    return {e.id: load_trajectory(e, turns.get(e.id, []), samples.get(e.id, {}), verdicts.get(e.id)) for e in episodes}


def _present(values: dict[str, Any]) -> dict[str, Any]:
    """A row that belongs to no run or episode has NULL there; the records say ""."""
    return {name: "" if value is None and name in ("run_id", "episode_id") else value for name, value in values.items()}
