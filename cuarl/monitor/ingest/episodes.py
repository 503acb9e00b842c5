"""A reported rollout as an episode of ours, as far as its rows tell it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from PIL import Image

from cuarl.monitor.ingest.actions import read_action
from cuarl.monitor.ingest.pictures import reference
from cuarl.store.ingest import Kept
from cuarl.trajectory import CheckResult, Sampled, Trajectory, Turn, Verdict
from cuarl.types import Failure, ImageRef, Screenshot, StopReason

NO_SCREEN = Screenshot(Image.new("RGB", (180, 320), (128, 128, 128)))
"""Stands where no screenshot was reported."""
OVER = ("completed", "failed", "cancelled")
Fields = Mapping[str, Any]


@dataclass(slots=True)
class Rollout:
    """The rows of one rollout."""

    row: Kept
    task: Fields = field(default_factory=dict)
    environment: Fields = field(default_factory=dict)
    turns: Sequence[Kept] = ()
    actions: Mapping[int, Sequence[Fields]] = field(default_factory=dict)
    """By the number of their turn; likewise the observations."""
    observations: Mapping[int, Sequence[Fields]] = field(default_factory=dict)
    validations: Sequence[Fields] = ()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.row.data.get("status") in OVER


def trajectory(rollout: Rollout, *, run_id: str, project: str, step: int, purpose: str) -> Trajectory:
    """The episode of a rollout that is over."""
    data, task = rollout.row.data, rollout.task
    status, turns = data.get("status"), turns_of(rollout)
    failed = status != "completed"
    verdict = None if failed and not rollout.validations else _verdict(rollout)
    parent = data.get(f"{data.get('source_type')}_id")
    group = (
        f"{run_id}.{data.get('source_type')}{parent}.{data.get('group_num')}"
        if data.get("group_num") is not None
        else ""
    )
    reward = number(data.get("reward"))
    return Trajectory(
        episode_id=episode_id(project, rollout.row.id),
        run_id=run_id,
        group_id=group,
        attempt=max(0, whole(data.get("env_index"))),
        step=step,
        purpose="train" if purpose == "step" else "eval",
        task_id=text(task.get("task_id")) or "unknown",
        goal=text(task.get("instruction") or task.get("description") or task.get("name")),
        category=text(task.get("category")),
        difficulty=text(task.get("difficulty")),
        env=_device_kind(rollout.environment),
        backend=text(rollout.environment.get("env_type")),
        device=text(rollout.environment.get("gbox_id")),
        agent="reported",
        policy=text(data.get("model_path")),
        turns=turns,
        final_screenshot=_last_screen(rollout),
        stop=_stop(data),
        failure=_failure(data) if status == "failed" else None,
        verdict=verdict,
        reward=None if failed else reward,
        started_at=seconds(data.get("start_time")) or 0.0,
        wall_s=max(0.0, number(data.get("rollout_time")) or 0.0),
        info={
            "project": project,
            "rollout_id": text(data.get("rollout_id")),
            "max_turns": whole(data.get("max_turns")),
        },
    )


def episode_id(project: str, number_of: int) -> str:
    """The id of a rollout's episode, which no id of this store's own runs can be."""
    return f"{project}~rollout-{number_of}"


def turns_of(rollout: Rollout) -> tuple[Turn, ...]:
    """The turns in their order."""
    rows = sorted(rollout.turns, key=lambda row: (whole(row.data.get("turn")), row.id))
    return tuple(_turn(i, row, rollout) for i, row in enumerate(rows))


def _turn(index: int, row: Kept, rollout: Rollout) -> Turn:
    data, actions = row.data, rollout.actions.get(row.id, ())
    before = _screen(rollout.observations.get(row.id, ()), "screenshot_before") or reference(data.get("screen_before"))
    chosen = actions[0] if actions else {}
    said = text(data.get("model_response")) or "\n".join(
        filter(None, (text(data.get("thinking")), text(data.get("text"))))
    )
    if not said and chosen:
        said = text(chosen.get("action_json") or chosen.get("tool_args"))
    return Turn(
        index=index,
        screenshot=before or NO_SCREEN.ref,
        action=read_action(chosen) if chosen else None,
        sampled=_sampled(said, chosen, rollout) if said or chosen else None,
        reward=number(data.get("reward")),
        started_at=seconds(data.get("start_time")) or 0.0,
        model_s=max(0.0, number(data.get("turn_time")) or 0.0),
    )


def _sampled(said: str, action: Fields, rollout: Rollout) -> Sampled:
    """What was answered; token ids and log-probabilities where both were reported and fit each other."""
    ids, logprobs = _numbers(action.get("tokens")), _numbers(action.get("logprobs"))
    fits = len(ids) == len(logprobs) and all(n == int(n) and abs(n) < 2**31 for n in ids)
    return Sampled(
        text=said,
        token_ids=tuple(map(int, ids)) if fits else (),
        logprobs=tuple(logprobs) if fits and ids else None,
        policy=text(rollout.row.data.get("model_path")),
        exact=False,
    )


def _screen(observations: Sequence[Fields], kind: str) -> ImageRef | None:
    found = (reference(one.get("screenshot_uri")) for one in observations if one.get("obs_type") == kind)
    return next(filter(None, found), None)


def _last_screen(rollout: Rollout) -> ImageRef | None:
    rows = sorted(rollout.turns, key=lambda row: (whole(row.data.get("turn")), row.id))
    if not rows:
        return None
    after = _screen(rollout.observations.get(rows[-1].id, ()), "screenshot_after")
    return after or reference(rows[-1].data.get("screen_after"))


def _verdict(rollout: Rollout) -> Verdict | None:
    data = rollout.row.data
    checks = tuple(
        CheckResult(
            path=text(one.get("validation_query")) or "validation",
            op="equals",
            expected=one.get("expected_result"),
            actual=one.get("actual_result"),
            passed=bool(one.get("success")),
        )
        for one in rollout.validations
    )
    said = [
        data.get("validation_passed"),
        data.get("task_success"),
        *(one.get("success") for one in rollout.validations),
    ]
    known = [value for value in said if isinstance(value, bool)]
    if not known:
        return None
    claimed = data.get("agent_reported_success")
    return Verdict(
        success=known[0], score=float(known[0]), checks=checks, claimed=claimed if isinstance(claimed, bool) else None
    )


def _stop(data: Fields) -> StopReason:
    if data.get("status") == "cancelled":
        return StopReason.CANCELLED
    if data.get("status") == "failed":
        return StopReason.FAILED
    return StopReason.MAX_TURNS if data.get("ran_out_of_turns") else StopReason.DONE


def _failure(data: Fields) -> Failure:
    said = text(data.get("error_message") or data.get("status_message") or data.get("errors"))
    return Failure(boundary="rollout", kind="Reported", message=said or "no reason was reported")


def _device_kind(environment: Fields) -> str:
    known = f"{environment.get('box_type')} {environment.get('env_type')}".lower()
    return "desktop" if "linux" in known or "desktop" in known else "phone"


# --- values --------------------------------------------------------------------------------------------------------


def text(value: Any) -> str:
    """A field as text; empty where there is none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number(value: Any) -> float | None:
    """A field as a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int:
    """A field as a whole number of at most 48 bits; 0 for anything else."""
    found = number(value)
    return int(found) if found is not None and abs(found) < 2**48 else 0


def seconds(value: Any) -> float | None:
    """A field as Unix time, of ISO 8601 (in UTC where it says no zone) or a number."""
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    return number(value)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    found = [number(one) for one in value] if isinstance(value, list) else []
    return [one for one in found if one is not None] if None not in found else []
