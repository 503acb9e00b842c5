"""The tables, as typed mappings.

    runs ─┬─< policies            tasks (by id and content digest)
          ├─< groups ──< episodes ─┬─< turns ──< samples
          ├─< episodes             ├── verdicts
          │                        └─< human_verdicts
          ├─< metrics, events, sessions
          └─< evaluations >──< episodes   (evaluation_episodes)

    status_history: every status change of a run, episode, evaluation or session, numbered
    ingested: what other trainers have reported; project_tokens: by what they may
    live: how far what runs just now has come; nothing else depends on it, and it may be emptied at any time

An episode without turns and with status ``started`` is one that is under way, or was when its process died; anything
else is whole. Times are Unix seconds. A change here needs a revision in ``migrations/versions`` (docs/guides/store.md).
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import BigInteger, ForeignKey, ForeignKeyConstraint, Index, MetaData
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from cuarl.store.columns import BigInt, Json, PackedFloats, PackedIds, Real, RealOrNan, Verbatim

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base of all mappings."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {str: Verbatim, float: Real, int: BigInteger, Any: Json}


class RunRow(Base):
    """One training, rollout or evaluation run."""

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(primary_key=True)
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"))
    name: Mapped[str]
    command: Mapped[str]
    status: Mapped[str]
    message: Mapped[str]
    directory: Mapped[str]
    model: Mapped[str]
    seed: Mapped[int | None] = mapped_column(BigInt)
    config: Mapped[Any]
    step: Mapped[int]
    total_steps: Mapped[int | None]
    started_at: Mapped[float]
    finished_at: Mapped[float | None]
    heartbeat_at: Mapped[float | None]
    info: Mapped[Any]


class PolicyRow(Base):
    """One version of a policy: a base model, or a checkpoint of a run."""

    __tablename__ = "policies"

    name: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"), index=True)
    step: Mapped[int]
    base_model: Mapped[str]
    path: Mapped[str]
    digest: Mapped[str]
    created_at: Mapped[float]
    info: Mapped[Any]


class TaskRow(Base):
    """One definition of a task; an edited task is a second row with the same id."""

    __tablename__ = "tasks"

    id: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    suite: Mapped[str]
    category: Mapped[str]
    difficulty: Mapped[str]
    seen_at: Mapped[float]
    data: Mapped[Any]


class GroupRow(Base):
    """Attempts at one task instance."""

    __tablename__ = "groups"
    __table_args__ = (Index(None, "run_id", "purpose", "step"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"))
    task_id: Mapped[str]
    seed: Mapped[int] = mapped_column(BigInt)
    step: Mapped[int]
    purpose: Mapped[str]


class EpisodeRow(Base):
    """One episode, without its turns."""

    __tablename__ = "episodes"
    __table_args__ = (
        *(  # one for each condition that a page may have, in the order of its rows
            Index(None, *condition, "step", "id")
            for condition in (
                (),
                ("run_id",),
                ("run_id", "purpose"),
                ("task_id",),
                ("policy",),
                ("policy", "policy_version"),
                ("status",),
            )
        ),
        # the worst first; and all that its ledger and the other orders read, so that they needn't read the rows
        Index(
            "ix_episodes_ledger",
            *("run_id", "reward", "id", "status", "purpose", "backend", "env", "success", "wall_s"),
            *("prompt_tokens", "sampled_tokens", "turn_count"),
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    schema_version: Mapped[int]
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"))
    group_id: Mapped[str | None] = mapped_column(ForeignKey("groups.id"), index=True)
    attempt: Mapped[int]
    step: Mapped[int]
    purpose: Mapped[str]
    task_id: Mapped[str]
    goal: Mapped[str]
    category: Mapped[str]
    difficulty: Mapped[str]
    env: Mapped[str]
    backend: Mapped[str] = mapped_column(server_default="")
    device: Mapped[str] = mapped_column(server_default="")
    agent: Mapped[str]
    policy: Mapped[str]
    policy_version: Mapped[int]
    seed: Mapped[int] = mapped_column(BigInt)
    status: Mapped[str]
    stop: Mapped[str | None]
    failure: Mapped[Any | None]
    answer: Mapped[str | None]
    success: Mapped[bool | None]
    """Of its verdict: said here, too, for what counts thousands of them."""
    reward: Mapped[float | None]
    reward_parts: Mapped[Any]
    final_digest: Mapped[str | None]
    final_width: Mapped[int | None]
    final_height: Mapped[int | None]
    turn_count: Mapped[int]
    prompt_tokens: Mapped[int]
    sampled_tokens: Mapped[int]
    started_at: Mapped[float]
    ready_s: Mapped[float | None]
    check_at: Mapped[float | None]
    check_s: Mapped[float | None]
    wall_s: Mapped[float]
    saved_at: Mapped[float] = mapped_column(index=True)
    info: Mapped[Any]


class TurnRow(Base):
    """One screenshot, one answer, one effect."""

    __tablename__ = "turns"

    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"), primary_key=True)
    turn: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str]
    width: Mapped[int]
    height: Mapped[int]
    action: Mapped[Any | None]
    parse_error: Mapped[Any | None]
    warnings: Mapped[Any]
    rejected: Mapped[str | None]
    text: Mapped[Any]
    reward: Mapped[float | None]
    started_at: Mapped[float] = mapped_column(server_default="0")
    model_s: Mapped[float]
    env_s: Mapped[float]
    settle_ms: Mapped[float | None]
    settled: Mapped[bool | None]
    changed: Mapped[bool | None]
    seen_width: Mapped[int | None]
    seen_height: Mapped[int | None]


class SampleRow(Base):
    """The model call of a turn, token-exact."""

    __tablename__ = "samples"
    __table_args__ = (
        ForeignKeyConstraint(["episode_id", "turn"], ["turns.episode_id", "turns.turn"], ondelete="CASCADE"),
    )

    episode_id: Mapped[str] = mapped_column(primary_key=True)
    turn: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str]
    stop: Mapped[str]
    temperature: Mapped[float]
    policy: Mapped[str]
    policy_version: Mapped[int]
    exact: Mapped[bool]
    images: Mapped[Any]
    prompt_ids: Mapped[tuple[int, ...]] = mapped_column(PackedIds)
    token_ids: Mapped[tuple[int, ...]] = mapped_column(PackedIds)
    logprobs: Mapped[tuple[float, ...] | None] = mapped_column(PackedFloats)


class VerdictRow(Base):
    """Whether an episode's task was done. No row, no verdict."""

    __tablename__ = "verdicts"

    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"), primary_key=True)
    success: Mapped[bool]
    score: Mapped[float]
    claimed: Mapped[bool | None]
    checks: Mapped[Any]
    side_effects: Mapped[Any]


class HumanVerdictRow(Base):
    """What a person says of an episode; the newest one holds, and the recorded verdict stays as it is."""

    __tablename__ = "human_verdicts"
    __table_args__ = (Index(None, "episode_id", "at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"))
    success: Mapped[bool | None]
    reason: Mapped[str]
    actor: Mapped[str]
    at: Mapped[float]


class EvaluationRow(Base):
    """One evaluation of one policy on one suite."""

    __tablename__ = "evaluations"

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"), index=True)
    suite: Mapped[str]
    step: Mapped[int]
    policy: Mapped[str]
    policy_version: Mapped[int]
    status: Mapped[str]
    message: Mapped[str]
    started_at: Mapped[float]
    finished_at: Mapped[float | None]
    metrics: Mapped[Any]
    baselines: Mapped[Any] = mapped_column(server_default="{}")
    info: Mapped[Any]


class EvaluationEpisodeRow(Base):
    """That an episode counts towards an evaluation."""

    __tablename__ = "evaluation_episodes"

    evaluation_id: Mapped[str] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    episode_id: Mapped[str] = mapped_column(ForeignKey("episodes.id", ondelete="CASCADE"), primary_key=True, index=True)
    position: Mapped[int]


class MetricRow(Base):
    """One metric at one step; a resumed run writes over its own."""

    __tablename__ = "metrics"
    __table_args__ = (Index(None, "run_id", "name", "step"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float | None] = mapped_column(RealOrNan)
    at: Mapped[float]


class EventRow(Base):
    """Something that happened."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "run_id", "at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"))
    at: Mapped[float]
    kind: Mapped[str]
    data: Mapped[Any]


class SessionRow(Base):
    """A device outside this process (box, pod, browser) that must be given back."""

    __tablename__ = "sessions"

    id: Mapped[str] = mapped_column(primary_key=True)
    backend: Mapped[str]
    external_id: Mapped[str]
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"), index=True)
    episode_id: Mapped[str | None]
    owner: Mapped[str]
    status: Mapped[str] = mapped_column(index=True)
    message: Mapped[str]
    created_at: Mapped[float]
    seen_at: Mapped[float]
    closed_at: Mapped[float | None]
    info: Mapped[Any]


class StatusRow(Base):
    """One status change of one entity; ``seq`` counts them from 0."""

    __tablename__ = "status_history"

    entity: Mapped[str] = mapped_column(primary_key=True)
    entity_id: Mapped[str] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    old: Mapped[str | None]
    new: Mapped[str]
    message: Mapped[str]
    at: Mapped[float]


class LiveRow(Base):
    """How far a run has come, or (with an ``episode_id``) one of its episodes.

    Refers to nothing, so that it is never in the way.
    """

    __tablename__ = "live"

    run_id: Mapped[str] = mapped_column(primary_key=True)
    episode_id: Mapped[str] = mapped_column(primary_key=True)
    phase: Mapped[str]
    at: Mapped[float]
    data: Mapped[Any]


class ProjectTokenRow(Base):
    """By what the trainers of a project may report; ``digest`` is the SHA-256 of the secret."""

    __tablename__ = "project_tokens"

    id: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[str]
    digest: Mapped[str] = mapped_column(index=True)
    created_at: Mapped[float]
    revoked_at: Mapped[float | None]


class IngestedRow(Base):
    """What another trainer has reported, as it sent it; runs and episodes are made of it."""

    __tablename__ = "ingested"
    __table_args__ = (Index(None, "project", "kind", "client_id", unique=True), Index(None, "kind", "parent"))

    kind: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project: Mapped[str]
    client_id: Mapped[str]
    parent: Mapped[int | None]
    data: Mapped[Any]
    at: Mapped[float]
