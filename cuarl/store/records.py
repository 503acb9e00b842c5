"""What the store takes and gives besides trajectories. Times are Unix seconds."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, NonNegativeInt

from cuarl.trajectory import SCHEMA_VERSION
from cuarl.types import Record, StopReason

RunStatus = Literal["pending", "running", "completed", "failed", "paused", "cancelled"]
EpisodeStatus = Literal["started", "completed", "failed", "cancelled"]
EvaluationStatus = Literal["running", "completed", "failed", "cancelled"]
SessionStatus = Literal["creating", "running", "closed", "lost", "error"]
Entity = Literal["run", "episode", "evaluation", "session"]
Purpose = Literal["train", "eval", "rollout"]


def new_id(prefix: str) -> str:
    """A fresh id that sorts by time: ``<prefix>-<milliseconds, hex>-<random>``."""
    return f"{prefix}-{int(time.time() * 1000):012x}-{secrets.token_hex(4)}"


class RunRecord(Record):
    """One training, rollout or evaluation run."""

    id: str
    name: str
    command: str = "train"
    """The subcommand that was run."""
    status: RunStatus = "running"
    message: str = ""
    directory: str = ""
    model: str = ""
    seed: int | None = None
    config: Mapping[str, Any] = Field(default_factory=dict)
    """The resolved configuration, secrets masked."""
    parent_id: str | None = None
    """The run whose checkpoint this one started from."""
    step: NonNegativeInt = 0
    total_steps: NonNegativeInt | None = None
    started_at: float = 0.0
    finished_at: float | None = None
    heartbeat_at: float | None = None
    info: Mapping[str, Any] = Field(default_factory=dict)


class PolicyRecord(Record):
    """One version of a policy: a base model, or a checkpoint of a run."""

    name: str
    version: NonNegativeInt = 0
    run_id: str = ""
    step: NonNegativeInt = 0
    base_model: str = ""
    path: str = ""
    digest: str = ""
    created_at: float = 0.0
    info: Mapping[str, Any] = Field(default_factory=dict)


class EpisodeStart(Record):
    """What is known of an episode while it is under way; the fields are those of ``Trajectory``."""

    schema_version: int = SCHEMA_VERSION
    episode_id: str
    run_id: str = ""
    group_id: str = ""
    attempt: NonNegativeInt = 0
    step: NonNegativeInt = 0
    purpose: Purpose = "rollout"
    task_id: str
    goal: str = ""
    category: str = ""
    difficulty: str = ""
    env: str = ""
    agent: str = ""
    policy: str = ""
    policy_version: int = 0
    seed: int = 0
    started_at: float = 0.0


class EpisodeSummary(EpisodeStart):
    """One line of a listing: an episode without its turns."""

    status: EpisodeStatus
    stop: StopReason | None = None
    """None while the episode is under way."""
    success: bool | None = None
    score: float | None = None
    reward: float | None = None
    turn_count: int = 0
    prompt_tokens: int = 0
    sampled_tokens: int = 0
    wall_s: float = 0.0
    saved_at: float = 0.0


class BaselineRecord(Record):
    """How an agent did that an evaluation is compared with. Its episodes are not stored."""

    metrics: Mapping[str, float] = Field(default_factory=dict)
    outcomes: tuple[tuple[str, str, bool | None], ...] = ()
    """Task, seed of the environment (as text, since it may exceed 64 bits) and success of each episode."""


class EvaluationRecord(Record):
    """One evaluation of one policy on one suite."""

    id: str
    run_id: str = ""
    suite: str = ""
    step: NonNegativeInt = 0
    policy: str = ""
    policy_version: int = 0
    status: EvaluationStatus = "completed"
    message: str = ""
    started_at: float = 0.0
    finished_at: float | None = None
    metrics: Mapping[str, float] = Field(default_factory=dict)
    """Documented names; never a rate without its n."""
    baselines: Mapping[str, BaselineRecord] = Field(default_factory=dict)
    """The same instances played by agents that know nothing, by the agent's name."""
    info: Mapping[str, Any] = Field(default_factory=dict)


class HumanVerdict(Record):
    """What a person says of an episode, against what was recorded.

    It holds for exports, imitation and evaluations from then on; what a run has learnt, or is resumed with, stays.
    """

    id: str = Field(default_factory=lambda: new_id("verdict"))
    episode_id: str
    success: bool | None
    """None takes an earlier one back: what was recorded holds again."""
    reason: str = ""
    actor: str = ""
    at: float = 0.0


class LiveRecord(Record):
    """How far a run, or one of its episodes, has come just now."""

    run_id: str
    episode_id: str = ""
    """Empty for the run itself."""
    phase: str = ""
    at: float = 0.0
    data: Mapping[str, Any] = Field(default_factory=dict)


class SessionRecord(Record):
    """A device outside this process (box, pod, browser) that must be given back."""

    id: str
    backend: str
    external_id: str = ""
    """The id by which the backend knows it."""
    run_id: str = ""
    episode_id: str = ""
    owner: str = ""
    """``host:pid`` of the process that uses it."""
    status: SessionStatus = "running"
    message: str = ""
    created_at: float = 0.0
    seen_at: float = 0.0
    closed_at: float | None = None
    info: Mapping[str, Any] = Field(default_factory=dict)


class ProjectToken(Record):
    """By what a project's trainers may report to the monitor; the secret itself is nowhere kept."""

    id: str
    project: str
    created_at: float = 0.0
    revoked_at: float | None = None


class MetricPoint(Record):
    """One metric at one step; NaN where there was nothing to compute."""

    run_id: str
    step: NonNegativeInt
    name: str
    value: float
    at: float = 0.0


class EventRecord(Record):
    """Something that happened."""

    id: str = Field(default_factory=lambda: new_id("event"))
    run_id: str = ""
    at: float = 0.0
    kind: str
    data: Mapping[str, Any] = Field(default_factory=dict)


class StatusChange(Record):
    """One entry of the status history; ``seq`` counts an entity's changes from 0."""

    entity: Entity
    entity_id: str
    seq: NonNegativeInt
    old: str | None
    new: str
    message: str = ""
    at: float
