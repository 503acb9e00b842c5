"""Trajectories as rows, and back. Pure; the two directions are kept side by side so that they stay inverse.

A ``run_id`` or ``group_id`` of "" is NULL in the database, so that foreign keys hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from cuarl.store.codec import dump_line
from cuarl.store.records import EpisodeStart, EpisodeStatus, EpisodeSummary
from cuarl.store.tables import EpisodeRow, SampleRow, TurnRow, VerdictRow
from cuarl.tasks.task import Task
from cuarl.trajectory import RewardPart, Sampled, Trajectory, Turn, Verdict
from cuarl.types import Failure, ImageRef, StopReason

Row = dict[str, Any]

_STATUS: Mapping[StopReason, EpisodeStatus] = {StopReason.FAILED: "failed", StopReason.CANCELLED: "cancelled"}
_LATER_FIELDS = ("backend", "device", "ready_s", "check_at", "check_s")
_START_FIELDS = tuple(n for n in EpisodeStart.model_fields if n not in ("episode_id", "run_id", "group_id"))


class TrajectoryRows(NamedTuple):
    """One trajectory, table by table."""

    episode: Row
    turns: list[Row]
    samples: list[Row]
    verdict: Row | None


def trajectory_rows(trajectory: Trajectory, saved_at: float) -> TrajectoryRows:
    """Take a trajectory apart. Raises ValueError if its turns are not in order."""
    indexes = [t.index for t in trajectory.turns]
    if any(b <= a for a, b in pairwise(indexes)):
        raise ValueError(f"the turns of an episode must be numbered upwards, not {indexes}")
    called = [t for t in trajectory.turns if t.sampled]
    return TrajectoryRows(
        episode=_episode(trajectory, saved_at),
        turns=[_turn(trajectory.episode_id, t) for t in trajectory.turns],
        samples=[_sample(trajectory.episode_id, t.index, t.sampled) for t in called if t.sampled],
        verdict=_verdict(trajectory.episode_id, trajectory.verdict) if trajectory.verdict else None,
    )


def started_row(start: EpisodeStart, saved_at: float) -> Row:
    """The row of an episode that is under way."""
    return {
        "id": start.episode_id,
        "run_id": start.run_id or None,
        "group_id": start.group_id or None,
        **{name: getattr(start, name) for name in _START_FIELDS},
        "backend": "",
        "device": "",
        "ready_s": None,
        "check_at": None,
        "check_s": None,
        "status": "started",
        "stop": None,
        "failure": None,
        "answer": None,
        "success": None,
        "reward": None,
        "reward_parts": [],
        "final_digest": None,
        "final_width": None,
        "final_height": None,
        "turn_count": 0,
        "prompt_tokens": 0,
        "sampled_tokens": 0,
        "wall_s": 0.0,
        "saved_at": saved_at,
        "info": {},
    }


def task_row(task: Task, seen_at: float) -> Row:
    """A task's definition under the digest of its content."""
    data = task.model_dump()
    return {
        "id": task.id,
        "digest": hashlib.sha256(dump_line(data).encode()).hexdigest(),
        "suite": task.suite,
        "category": task.category,
        "difficulty": task.difficulty,
        "seen_at": seen_at,
        "data": data,
    }


def _episode(t: Trajectory, saved_at: float) -> Row:
    usage, final = t.usage, t.final_screenshot
    return {
        "id": t.episode_id,
        "run_id": t.run_id or None,
        "group_id": t.group_id or None,
        **{name: getattr(t, name) for name in (*_START_FIELDS, *_LATER_FIELDS)},
        "status": _STATUS.get(t.stop, "completed"),
        "stop": t.stop.value,
        "failure": t.failure.model_dump() if t.failure else None,
        "answer": t.answer,
        "success": t.success,
        "reward": t.reward,
        "reward_parts": [p.model_dump() for p in t.reward_parts],
        "final_digest": final and final.digest,
        "final_width": final and final.width,
        "final_height": final and final.height,
        "turn_count": len(t.turns),
        "prompt_tokens": usage.prompt_tokens,
        "sampled_tokens": usage.sampled_tokens,
        "wall_s": t.wall_s,
        "saved_at": saved_at,
        "info": t.info,
    }


def _turn(episode_id: str, t: Turn) -> Row:
    shot = t.screenshot
    return {
        "episode_id": episode_id,
        "turn": t.index,
        "digest": shot.digest,
        "width": shot.width,
        "height": shot.height,
        "action": t.action.model_dump() if t.action else None,
        "parse_error": t.parse_error.model_dump() if t.parse_error else None,
        "warnings": t.warnings,
        "rejected": t.rejected,
        "text": t.text,
        "reward": t.reward,
        "started_at": t.started_at,
        "model_s": t.model_s,
        "env_s": t.env_s,
        "settle_ms": t.settle_ms,
        "settled": t.settled,
        "changed": t.changed,
        "seen_width": t.resized and t.resized[0],
        "seen_height": t.resized and t.resized[1],
    }


def _sample(episode_id: str, turn: int, s: Sampled) -> Row:
    return {
        "episode_id": episode_id,
        "turn": turn,
        "text": s.text,
        "stop": s.stop,
        "temperature": s.temperature,
        "policy": s.policy,
        "policy_version": s.policy_version,
        "exact": s.exact,
        "images": [(i.digest, i.width, i.height) for i in s.images],
        "prompt_ids": s.prompt_ids,
        "token_ids": s.token_ids,
        "logprobs": s.logprobs,
    }


def _verdict(episode_id: str, v: Verdict) -> Row:
    return {
        "episode_id": episode_id,
        "success": v.success,
        "score": v.score,
        "claimed": v.claimed,
        "checks": [c.model_dump() for c in v.checks],
        "side_effects": v.side_effects,
    }


def load_trajectory(
    episode: EpisodeRow, turns: Sequence[TurnRow], samples: Mapping[int, SampleRow], verdict: VerdictRow | None
) -> Trajectory:
    """Put a trajectory together again; ``samples`` by turn number."""
    final = None
    if episode.final_digest is not None:
        final = ImageRef.model_validate(
            {"digest": episode.final_digest, "width": episode.final_width, "height": episode.final_height}
        )
    return Trajectory(
        episode_id=episode.id,
        run_id=episode.run_id or "",
        group_id=episode.group_id or "",
        **{name: getattr(episode, name) for name in (*_START_FIELDS, *_LATER_FIELDS)},
        turns=tuple(_load_turn(t, samples.get(t.turn)) for t in turns),
        final_screenshot=final,
        answer=episode.answer,
        stop=StopReason(episode.stop or ""),
        failure=None if episode.failure is None else Failure.model_validate(episode.failure),
        verdict=None if verdict is None else _load_verdict(verdict),
        reward=episode.reward,
        reward_parts=tuple(RewardPart.model_validate(p) for p in episode.reward_parts),
        wall_s=episode.wall_s,
        info=episode.info,
    )


def _load_turn(row: TurnRow, sample: SampleRow | None) -> Turn:
    return Turn(
        index=row.turn,
        screenshot=ImageRef(digest=row.digest, width=row.width, height=row.height),
        action=row.action,
        parse_error=row.parse_error,
        warnings=row.warnings,
        rejected=row.rejected,
        sampled=None if sample is None else _load_sample(sample),
        text=row.text,
        reward=row.reward,
        started_at=row.started_at,
        model_s=row.model_s,
        env_s=row.env_s,
        settle_ms=row.settle_ms,
        settled=row.settled,
        changed=row.changed,
        resized=(row.seen_width, row.seen_height) if row.seen_width and row.seen_height else None,
    )


def _load_sample(row: SampleRow) -> Sampled:
    return Sampled.model_validate(
        {
            "prompt_ids": row.prompt_ids,
            "token_ids": row.token_ids,
            "logprobs": row.logprobs,
            "text": row.text,
            "images": [{"digest": d, "width": w, "height": h} for d, w, h in row.images],
            "stop": row.stop,
            "temperature": row.temperature,
            "policy": row.policy,
            "policy_version": row.policy_version,
            "exact": row.exact,
        }
    )


def _load_verdict(row: VerdictRow) -> Verdict:
    return Verdict(
        success=row.success, score=row.score, claimed=row.claimed, checks=row.checks, side_effects=row.side_effects
    )


def load_summary(episode: EpisodeRow, verdict: VerdictRow | None) -> EpisodeSummary:
    """One line of a listing."""
    return EpisodeSummary.model_validate(
        {
            "episode_id": episode.id,
            "run_id": episode.run_id or "",
            "group_id": episode.group_id or "",
            **{name: getattr(episode, name) for name in _START_FIELDS},
            "success": verdict and verdict.success,
            "score": verdict and verdict.score,
            **{
                name: getattr(episode, name)
                for name in (
                    "status",
                    "stop",
                    "reward",
                    "turn_count",
                    "prompt_tokens",
                    "sampled_tokens",
                    "wall_s",
                    "saved_at",
                )
            },
        }
    )
