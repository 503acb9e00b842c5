"""Everything that can be written, as values.

A write carries its own row ids and its time, so applying it twice is the same as once. That is what lets one retry
layer repeat it, a queue hold it, and a file keep it while the database is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, TypeAdapter

from cuarl.store.records import (
    EpisodeStart,
    EvaluationRecord,
    EventRecord,
    HumanVerdict,
    MetricPoint,
    PolicyRecord,
    RunRecord,
    RunStatus,
    SessionRecord,
    StatusChange,
)
from cuarl.tasks.task import Task
from cuarl.trajectory import Group, Trajectory
from cuarl.types import Record


class SaveRun(Record):
    """Insert or replace a run's row."""

    kind: Literal["run"] = "run"
    run: RunRecord
    at: float


class FinishRun(Record):
    """Set a run's status for good (or to ``paused``)."""

    kind: Literal["finish_run"] = "finish_run"
    run_id: str
    status: RunStatus
    message: str = ""
    at: float


class Heartbeat(Record):
    """A run is alive, and how far it has come."""

    kind: Literal["heartbeat"] = "heartbeat"
    run_id: str
    step: NonNegativeInt | None = None
    at: float


class RewindRun(Record):
    """Forget what a run recorded after ``step``, since it is resumed from a checkpoint of that step."""

    kind: Literal["rewind_run"] = "rewind_run"
    run_id: str
    step: NonNegativeInt


class DeleteRun(Record):
    """Forget a run and all that it recorded."""

    kind: Literal["delete_run"] = "delete_run"
    run_id: str


class SavePolicy(Record):
    """Insert or replace a policy version."""

    kind: Literal["policy"] = "policy"
    policy: PolicyRecord


class SaveTasks(Record):
    """Remember definitions of tasks; a known one (same id and content) stays as it is."""

    kind: Literal["tasks"] = "tasks"
    tasks: tuple[Task, ...]
    at: float


class StartEpisode(Record):
    """Make an episode visible as started; one that is stored already stays as it is."""

    kind: Literal["start_episode"] = "start_episode"
    episode: EpisodeStart
    at: float


class SaveTrajectory(Record):
    """Insert or replace one episode, whole."""

    kind: Literal["trajectory"] = "trajectory"
    trajectory: Trajectory
    at: float


class SaveGroup(Record):
    """Insert or replace a group and its episodes, whole."""

    kind: Literal["group"] = "group"
    group: Group
    at: float


class SaveEvaluation(Record):
    """Insert or replace an evaluation and which episodes it counts."""

    kind: Literal["evaluation"] = "evaluation"
    evaluation: EvaluationRecord
    episode_ids: tuple[str, ...] = ()
    at: float


class LogMetrics(Record):
    """Metrics of one step; a name logged again is replaced."""

    kind: Literal["metrics"] = "metrics"
    run_id: str
    step: NonNegativeInt
    values: Mapping[str, float]
    at: float

    @property
    def points(self) -> list[MetricPoint]:
        """One record per metric."""
        return [
            MetricPoint(run_id=self.run_id, step=self.step, name=name, value=value, at=self.at)
            for name, value in self.values.items()
        ]


class LogEvent(Record):
    """One event."""

    kind: Literal["event"] = "event"
    event: EventRecord


class SaveSession(Record):
    """Insert or replace a session."""

    kind: Literal["session"] = "session"
    session: SessionRecord
    at: float


class SaveHumanVerdict(Record):
    """Note what a person says of an episode; one that is known stays as it is."""

    kind: Literal["human_verdict"] = "human_verdict"
    verdict: HumanVerdict


class RestoreHistory(Record):
    """Status changes from another store; those that are known stay as they are."""

    kind: Literal["history"] = "history"
    changes: tuple[StatusChange, ...]


Write = (
    SaveRun
    | FinishRun
    | Heartbeat
    | RewindRun
    | DeleteRun
    | SavePolicy
    | SaveTasks
    | StartEpisode
    | SaveTrajectory
    | SaveGroup
    | SaveEvaluation
    | LogMetrics
    | LogEvent
    | SaveSession
    | SaveHumanVerdict
    | RestoreHistory
)
WRITE: TypeAdapter[Write] = TypeAdapter(Annotated[Write, Field(discriminator="kind")])
