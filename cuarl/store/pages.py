"""What pages of the monitor ask for: a page of rows at a time, along an index, and only the columns that it shows.

A run may have a million turns, and a store a thousand runs: no question here reads all of either. One that ranges over
a run's episodes is bounded (``MANY``), and says so by leaving its answer out; but for the ledger of a large run, which
is added up when somebody asks for it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict

from sqlalchemy import (
    ColumnElement,
    Double,
    Integer,
    Select,
    Text,
    case,
    cast,
    func,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.orm import Session

from cuarl.store import codec
from cuarl.store import tables as t
from cuarl.store.columns import Json
from cuarl.store.reader import Reader
from cuarl.store.records import EpisodeStatus, EvaluationRecord, LiveRecord, Purpose, RunRecord, RunStatus
from cuarl.types import Record

MANY = 20_000
"""A question that reads all episodes of a run is asked of runs with at most so many."""
PAGE = 50
SORTS = ("step", "newest", "reward", "-reward", "turns", "-turns", "seconds", "-seconds")
Sort = Literal["step", "newest", "reward", "-reward", "turns", "-turns", "seconds", "-seconds"]
RESULTS = ("success", "failure", "unjudged", "overruled")


class RunLine(Record):
    """A run in a list."""

    id: str
    name: str
    command: str
    status: RunStatus
    message: str
    model: str
    step: int
    total_steps: int | None
    started_at: float
    finished_at: float | None
    success: float | None = None
    """Share of successes of the newest training step."""
    reward: float | None = None
    evaluated: float | None = None
    """Share of successes of the newest evaluation."""
    live: LiveRecord | None = None


class EpisodeLine(Record):
    """An episode in a list."""

    id: str
    run_id: str | None
    group_id: str | None
    attempt: int
    step: int
    purpose: Purpose
    task_id: str
    goal: str
    category: str
    difficulty: str
    backend: str
    device: str
    policy: str
    policy_version: int
    seed: int
    status: EpisodeStatus
    stop: str | None
    failure: Mapping[str, Any] | None
    reward: float | None
    turn_count: int
    wall_s: float
    saved_at: float
    recorded: bool | None
    """The verdict as it was recorded."""
    human: bool | None
    """That of a person, which wins."""

    @property
    def success(self) -> bool | None:
        """What holds."""
        return self.recorded if self.human is None else self.human


class EpisodeWhere(TypedDict, total=False):
    """Conditions of a list of episodes, all of which must hold."""

    run: str
    evaluation: str
    group: str
    purpose: str
    step: int
    task: str
    suite: str
    category: str
    difficulty: str
    result: str
    stop: str
    failure: str
    policy: str
    device: str
    seed: int
    min_reward: float
    max_reward: float


class TaskShare(NamedTuple):
    """Of one task at one step: how many verdicts, and how many of them successes."""

    step: int
    task_id: str
    n: int
    successes: int


class Judged(NamedTuple):
    """An evaluated episode with the verdict that holds."""

    task_id: str
    success: bool
    claimed: bool
    """Whether the agent said that it had done it."""


class CostLine(Record):
    """All that a run's episodes of one purpose took on one kind of device."""

    purpose: str
    device: str
    """The backend, or the environment where there is none."""
    episodes: int
    successes: int
    device_s: float
    """Seconds for which they held a device, from making it to the end of checking."""
    tokens_in: int
    """Of prompts, pictures included, counted anew at each turn."""
    tokens_out: int


class Pages(Reader):
    """The monitor's questions, beside those of every reader."""

    # --- runs ------------------------------------------------------------------------------------------------------

    def run_lines(
        self,
        *,
        limit: int = PAGE,
        offset: int = 0,
        status: str | None = None,
        text: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[RunLine]:
        """Runs, newest first; ``text`` stands in the name."""
        r = t.RunRow
        columns = [
            r.id,
            r.name,
            r.command,
            r.status,
            r.message,
            r.model,
            r.step,
            r.total_steps,
            r.started_at,
            r.finished_at,
        ]
        query = select(
            *columns,
            _latest("episode/success_rate").label("success"),
            _latest("reward/mean").label("reward"),
            _newest_evaluation(t.EvaluationRow.id).label("evaluation"),
            type_coerce(_newest_evaluation(t.EvaluationRow.metrics), Json).label("measured"),
        )
        if ids is not None:
            query = query.where(r.id.in_(ids))
        if status:
            query = query.where(r.status == status)
        if text:
            query = query.where(r.name.contains(text, autoescape=True))
        query = query.order_by(r.started_at.desc(), r.id).limit(limit).offset(offset)
        rows = self._read(lambda s: s.execute(query).mappings().all())
        live = {one.run_id: one for one in self.live_runs()}
        said = self.overruled_outcomes([row["evaluation"] for row in rows if row["evaluation"]])
        return [
            RunLine(
                **{k: _known(v) for k, v in row.items() if k not in ("evaluation", "measured")},
                evaluated=_evaluated(row["measured"], said.get(row["evaluation"])),
                live=live.get(row["id"]),
            )
            for row in rows
        ]

    def runs_by_id(self, ids: Sequence[str]) -> list[RunRecord]:
        """These runs, as far as they are there."""
        return self.records(RunRecord, select(t.RunRow).where(t.RunRow.id.in_(ids)))

    def runs_called(self, reference: str, limit: int = 20) -> list[RunLine]:
        """The run of this name or id; else those whose names or ids begin so."""
        r = t.RunRow
        exact = self._read(lambda s: list(s.scalars(select(r.id).where((r.id == reference) | (r.name == reference)))))
        begin = r.name.startswith(reference, autoescape=True) | r.id.startswith(reference, autoescape=True)
        ids = exact[:1] or self._read(lambda s: list(s.scalars(select(r.id).where(begin).order_by(r.id).limit(limit))))
        return self.run_lines(limit=limit, ids=ids) if ids else []

    def live_runs(self) -> list[LiveRecord]:
        """How far runs have come just now, without their episodes."""
        return self.records(LiveRecord, select(t.LiveRow).where(t.LiveRow.episode_id == ""))

    def live_episode(self, episode_id: str) -> LiveRecord | None:
        """An episode that is under way just now."""
        found = self.records(LiveRecord, select(t.LiveRow).where(t.LiveRow.episode_id == episode_id))
        return found[0] if found else None

    def series(self, run: str, names: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
        """Metrics of a run by name, in order of their steps; those that it has none of are left out."""
        m = t.MetricRow
        # thousands of rows: the text of a name is undone once for all of its rows
        columns = (type_coerce(m.name, Text), m.step, type_coerce(m.value, Double))
        query = select(*columns).where(m.run_id == run, m.name.in_(names), m.value.is_not(None))
        found: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for name, step, value in self._read(lambda s: s.execute(query.order_by(m.name, m.step)).all()):
            found[name].append((step, value))
        return {codec.decode_text(name): points for name, points in found.items()}

    def metric_names(self, run: str) -> list[str]:
        """All that a run has metrics of: each found by a step along the index, in one question."""
        m = t.MetricRow
        first = select(func.min(m.name).label("name")).where(m.run_id == run).cte("names", recursive=True)
        following = select(func.min(m.name)).where(m.run_id == run, m.name > first.c.name).scalar_subquery()
        names = first.union_all(select(following).where(first.c.name.is_not(None)))
        query = select(type_coerce(names.c.name, m.name.type)).where(names.c.name.is_not(None))
        return self._read(lambda s: list(s.scalars(query)))

    def at_steps(
        self, run: str, names: Sequence[str], *, before: int | None, limit: int
    ) -> dict[int, dict[str, float]]:
        """The newest steps with metrics (below ``before``), newest first, and ``names`` of each."""
        m = t.MetricRow
        steps = select(m.step).where(m.run_id == run).distinct().order_by(m.step.desc()).limit(limit)
        if before is not None:
            steps = steps.where(m.step < before)

        def work(session: Session) -> dict[int, dict[str, float]]:
            found: dict[int, dict[str, float]] = {step: {} for step in session.scalars(steps)}
            query = select(m.step, m.name, m.value).where(m.run_id == run, m.step.in_(found), m.name.in_(names))
            for step, name, value in session.execute(query):
                found[step][name] = math.nan if value is None else value
            return found

        return self._read(work)

    def values(self, run: str, step: int) -> dict[str, float]:
        """All metrics of one step."""
        m = t.MetricRow
        query = select(m.name, m.value).where(m.run_id == run, m.step == step).order_by(m.name)
        found = self._read(lambda s: s.execute(query).all())
        return {name: value for name, value in found if value is not None and math.isfinite(value)}

    def shares(self, run: str, purpose: Purpose = "train") -> list[TaskShare] | None:
        """Verdicts by step and task, for intervals; None for a run with more than ``MANY`` episodes."""
        e = t.EpisodeRow
        mine: Select[Any] = select(literal_column("1")).where(e.run_id == run, e.purpose == purpose).limit(MANY + 1)

        def work(session: Session) -> list[TaskShare] | None:
            if (session.scalar(select(func.count()).select_from(mine.subquery())) or 0) > MANY:
                return None
            holds = _holds_in(session, run)
            query = (
                select(e.step, e.task_id, func.count(holds), func.sum(cast(holds, Integer)))
                .where(e.run_id == run, e.purpose == purpose, holds.is_not(None))
                .group_by(e.step, e.task_id)
                .order_by(e.step, e.task_id)
            )
            return [TaskShare(step, task, n, int(ones or 0)) for step, task, n, ones in session.execute(query)]

        return self._read(work)

    def cost_lines(self, run: str, most: int | None = MANY) -> list[CostLine] | None:
        """What its episodes took, by purpose and kind of device; None for a run with more than ``most`` episodes."""
        e = t.EpisodeRow
        mine: Select[Any] = select(literal_column("1")).where(e.run_id == run)

        def work(session: Session) -> list[CostLine] | None:
            if most is not None:
                there = session.scalar(select(func.count()).select_from(mine.limit(most + 1).subquery())) or 0
                if there > most:
                    return None
            # in full each time, as "device" is a column, too; and PostgreSQL takes equal parameters for different ones
            device = case((e.backend == literal_column("''"), e.env), else_=e.backend)
            # as it stands SQLite would take the index that is sorted by purpose, and read every row for the rest
            purpose = e.purpose.op("||")(literal_column("''"))
            sums: dict[str, ColumnElement[Any]] = {
                "episodes": func.count(),
                "successes": func.coalesce(func.sum(cast(_holds_in(session, run), Integer)), 0),
                "device_s": func.sum(e.wall_s),
                "tokens_in": func.sum(e.prompt_tokens),
                "tokens_out": func.sum(e.sampled_tokens),
            }
            query = (
                select(purpose.label("purpose"), device.label("device"), *(v.label(name) for name, v in sums.items()))
                .where(e.run_id == run, e.status != "started")
                .group_by(purpose, device)
                .order_by(purpose, device)
            )
            return [CostLine.model_validate(dict(row)) for row in session.execute(query).mappings()]

        return self._read(work)

    # --- evaluations -----------------------------------------------------------------------------------------------

    def evaluation_by_id(self, evaluation_id: str) -> EvaluationRecord | None:
        """One evaluation."""
        found = self.records(EvaluationRecord, select(t.EvaluationRow).where(t.EvaluationRow.id == evaluation_id))
        return found[0] if found else None

    def newest_evaluations(self, limit: int) -> list[EvaluationRecord]:
        """Evaluations of all runs, the newest first."""
        query = select(t.EvaluationRow).order_by(t.EvaluationRow.started_at.desc(), t.EvaluationRow.id).limit(limit)
        return self.records(EvaluationRecord, query)

    def overruled_outcomes(self, ids: Sequence[str]) -> dict[str, list[Judged]]:
        """Of these evaluations, those with an episode of which a person said something: what holds of each episode."""
        e, v, h, member = t.EpisodeRow, t.VerdictRow, t.HumanVerdictRow, t.EvaluationEpisodeRow
        touched = select(member.evaluation_id).join(h, h.episode_id == member.episode_id).distinct()
        holds = _holds()
        query = (
            select(member.evaluation_id, e.task_id, holds, v.claimed)
            .join(e, e.id == member.episode_id)
            .outerjoin(v, v.episode_id == e.id)
            .where(holds.is_not(None))
        )

        def work(session: Session) -> dict[str, list[Judged]]:
            said = session.scalar(select(h.id).limit(1)) is not None
            mine = session.scalars(touched.where(member.evaluation_id.in_(ids))).all() if said and ids else ()
            found: dict[str, list[Judged]] = {i: [] for i in mine}
            for i, task, success, claimed in session.execute(query.where(member.evaluation_id.in_(mine))):
                found[i].append(Judged(task, bool(success), bool(claimed)))
            return found

        return self._read(work)

    # --- episodes --------------------------------------------------------------------------------------------------

    def episode_lines(
        self, where: EpisodeWhere, *, sort: str = "step", limit: int = PAGE, offset: int = 0
    ) -> list[EpisodeLine]:
        """Episodes that are over.

        Without a run, task, group or evaluation they come in the order of the index alone.
        """
        e = t.EpisodeRow
        order = sort if {"run", "task", "group", "evaluation"} & set(where) else "newest"
        # which ones they are is found first: to sort all of a large run's rows takes several times as long
        found = _conditions(select(e.id), where).where(e.status != "started")
        page = _sorted(found, order).limit(limit).offset(offset).subquery()
        query = _sorted(_line_query().where(e.id.in_(select(page.c.id))), order)
        return self._read(lambda s: [_line(row) for row in s.execute(query).mappings()])

    def episode_line(self, episode_id: str) -> EpisodeLine | None:
        """One episode, if it is over."""
        e = t.EpisodeRow
        query = _line_query().where(e.id == episode_id, e.status != "started")
        rows = self._read(lambda s: [_line(row) for row in s.execute(query).mappings()])
        return rows[0] if rows else None

    def suites(self) -> dict[str, str]:
        """The suite of each task that was ever used."""
        query = select(t.TaskRow.id, t.TaskRow.suite)
        return {task: suite for task, suite in self._read(lambda s: list(s.execute(query)))}  # noqa: C416

    def stamp(self) -> dict[str, float]:
        """When something was last written of each run under way, and of the run that wrote or ended last."""
        e, live, r = t.EpisodeRow, t.LiveRow, t.RunRow
        moving = select(live.run_id, func.max(live.at)).group_by(live.run_id)
        saved = select(e.run_id, e.saved_at).order_by(e.saved_at.desc()).limit(1)
        ended = select(r.id, r.finished_at).where(r.finished_at.is_not(None)).order_by(r.finished_at.desc()).limit(1)

        def work(session: Session) -> dict[str, float]:
            found: dict[str, float] = {}
            for query in (moving, saved, ended):
                for run, at in session.execute(query):
                    found[run or ""] = max(found.get(run or "", 0.0), at)
            return found

        return self._read(work)


# --- parts of queries ----------------------------------------------------------------------------------------------


def _known(value: Any) -> Any:
    """A metric that is not there comes as not-a-number."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _latest(name: str) -> Any:
    m = t.MetricRow
    return (
        select(m.value)
        .where(m.run_id == t.RunRow.id, m.name == name)
        .order_by(m.step.desc())
        .limit(1)
        .scalar_subquery()
    )


def _newest_evaluation(column: Any) -> Any:
    e = t.EvaluationRow
    mine = select(column).where(e.run_id == t.RunRow.id).order_by(e.step.desc(), e.started_at.desc(), e.id)
    return mine.limit(1).correlate(t.RunRow).scalar_subquery()


def _evaluated(metrics: Mapping[str, float] | None, said: Sequence[Judged] | None) -> float | None:
    """Share of successes of an evaluation; with what people ``said``, if they said something of it."""
    return sum(one.success for one in said) / len(said) if said else (metrics or {}).get("success_rate")


def _human() -> Any:
    h = t.HumanVerdictRow
    mine = select(h.success).where(h.episode_id == t.EpisodeRow.id)
    return mine.order_by(h.at.desc(), h.id.desc()).limit(1).correlate(t.EpisodeRow).scalar_subquery()


def _holds_in(session: Session, run: str) -> Any:
    """The verdicts that hold in a run; those of people are only looked for, one by one, where it has some."""
    e, h = t.EpisodeRow, t.HumanVerdictRow
    said = session.scalar(select(h.id).join(e, e.id == h.episode_id).where(e.run_id == run).limit(1))
    return t.EpisodeRow.success if said is None else _holds()


def _holds() -> Any:
    return func.coalesce(_human(), t.EpisodeRow.success)


_COLUMNS = tuple(name for name in EpisodeLine.model_fields if name not in ("recorded", "human"))


def _line_query() -> Select[Any]:
    e = t.EpisodeRow
    columns = [getattr(e, name) for name in _COLUMNS]
    return select(*columns, e.success.label("recorded"), _human().label("human"))


def _line(row: Mapping[Any, Any]) -> EpisodeLine:
    return EpisodeLine.model_validate(dict(row))


def _conditions(query: Select[Any], where: EpisodeWhere) -> Select[Any]:
    e, member, task = t.EpisodeRow, t.EvaluationEpisodeRow, t.TaskRow
    columns: dict[str, Any] = {
        "run": e.run_id,
        "group": e.group_id,
        "purpose": e.purpose,
        "step": e.step,
        "task": e.task_id,
        "category": e.category,
        "difficulty": e.difficulty,
        "stop": e.stop,
        "policy": e.policy,
        "device": e.device,
        "seed": e.seed,
    }
    given: Mapping[str, Any] = where
    for name, column in columns.items():
        if name in given:
            query = query.where(column == given[name])
    if "failure" in where:
        query = query.where(e.failure["boundary"].as_string() == where["failure"])
    if "suite" in where:
        query = query.where(e.task_id.in_(select(task.id).where(task.suite == where["suite"])))
    if "evaluation" in where:
        query = query.where(e.id.in_(select(member.episode_id).where(member.evaluation_id == where["evaluation"])))
    if "min_reward" in where:
        query = query.where(e.reward >= where["min_reward"])
    if "max_reward" in where:
        query = query.where(e.reward <= where["max_reward"])
    return _with_result(query, where.get("result"))


def _with_result(query: Select[Any], result: str | None) -> Select[Any]:
    if result == "overruled":
        return query.where(_human().is_not(None))
    if result == "unjudged":
        return query.where(_holds().is_(None))
    return query if result is None else query.where(_holds().is_(result == "success"))


def _sorted(query: Select[Any], sort: str) -> Select[Any]:
    e = t.EpisodeRow
    columns: dict[str, Any] = {"reward": e.reward, "turns": e.turn_count, "seconds": e.wall_s}
    column = columns.get(sort.removeprefix("-"))
    if column is not None:
        return query.order_by((column.desc() if sort.startswith("-") else column.asc()).nulls_last(), e.id)
    if sort == "newest":
        return query.order_by(e.saved_at.desc(), e.id.desc())
    return query.order_by(e.step, e.id)
