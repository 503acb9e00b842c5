"""What was reported as runs, metrics, evaluations and episodes of the store, so that all pages show it.

They are made anew of the rows that they depend on whenever one of these changes; each write may be repeated.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cuarl.monitor.ingest.batch import SOURCES
from cuarl.monitor.ingest.episodes import (
    NO_SCREEN,
    Rollout,
    episode_id,
    number,
    seconds,
    text,
    trajectory,
    turns_of,
    whole,
)
from cuarl.store import writes as w
from cuarl.store.ingest import Ingest, Kept
from cuarl.store.live import LiveWriter
from cuarl.store.pages import Pages
from cuarl.store.records import EvaluationRecord, EvaluationStatus, LiveRecord, RunRecord, RunStatus
from cuarl.store.store import Store

_RUN: Mapping[str, RunStatus] = {
    "pending": "pending", "initializing": "running", "running": "running", "completed": "completed", "failed": "failed",
    "paused": "paused", "cancelled": "cancelled",
}  # fmt: skip
_EVALUATION: Mapping[str, EvaluationStatus] = {"completed": "completed", "failed": "failed", "cancelled": "cancelled"}
_METRICS = {
    "reward_mean": "reward/mean", "reward_std": "reward/std", "loss": "policy/loss",
    "kl_divergence": "policy/kl_sampler", "policy_gradient_norm": "optim/grad_norm",
    "learning_rate": "optim/learning_rate",
}  # fmt: skip
_PHASES = {"env_creation": "creating", "agent_initialization": "creating", "validation": "checking", "cleanup": "done"}
_SUITE = "evaluation"
"""One for all, so that a baseline and what follows it are one curve."""
_EVALUATION_ID = "{project}~{kind}-{number}"


def run_id(project: str, number_of: int) -> str:
    """The id of a reported training's run, which no id of this store's own runs can be."""
    return f"{project}~{number_of}"


class _Source(NamedTuple):
    """What a rollout is from."""

    kind: str
    training: int
    step: int


class Records:
    """Makes records of the rows of one project."""

    def __init__(self, store: Store, ingest: Ingest, project: str) -> None:
        self._store, self._ingest, self._project = store, ingest, project
        self._live = LiveWriter(store.engine)

    def refresh(self, touched: Mapping[str, set[int]], *, at: float) -> None:
        """Bring the store up to date with rows that have changed, by their numbers. Raises StoreError."""
        rollouts = self._changed_rollouts(touched)
        self._store.blobs.put([NO_SCREEN])
        removed = self._removed(touched, rollouts) - touched["training"]
        writes: list[w.Write] = [self._run(row, at) for row in self._rows("training", touched["training"] | removed)]
        steps = self._rows("steps", touched["steps"])
        # rows of an earlier step, or its rollouts, may come late: they don't say where a run is that says so itself
        runs = self._rows("training", {row.parent for row in steps if row.parent is not None})
        telling = {row.id for row in runs if row.data.get("current_step") is not None}
        for row in steps:
            writes += self._step(row, at, tells=row.parent not in telling)
        self._store.write(writes)
        self._store.write(self._episodes(rollouts, at))
        changed = {kind: set(touched[kind]) for kind in ("evals", "baselines")}
        for row in rollouts:
            kind = {"eval": "evals", "baseline": "baselines"}.get(str(row.data.get("source_type")))
            if kind is not None and row.parent is not None:
                changed[kind].add(row.parent)
        found = [self._evaluation(kind, row, at) for kind, ids in changed.items() for row in self._rows(kind, ids)]
        self._store.write(found)

    def _removed(self, touched: Mapping[str, set[int]], rollouts: Sequence[Kept]) -> set[int]:
        """The trainings of these rows whose runs somebody has removed from the store, where they come back."""
        parents = {f"{kind}s": set(touched[f"{kind}s"]) for kind in SOURCES}
        for row in rollouts:
            if row.parent is not None:
                parents.get(f"{row.data.get('source_type')}s", set()).add(row.parent)
        found = [row.parent for kind, ids in parents.items() for row in self._rows(kind, ids)]
        names = {run_id(self._project, number): number for number in found if number is not None}
        there = {record.id for record in Pages(self._store.engine).runs_by_id(sorted(names))}
        return {number for name, number in names.items() if name not in there}

    def _rows(self, kind: str, ids: Iterable[int]) -> list[Kept]:
        wanted = sorted(ids)
        return self._ingest.rows(kind, ids=wanted) if wanted else []

    # --- runs, steps, evaluations ----------------------------------------------------------------------------------

    def _run(self, row: Kept, at: float) -> w.Write:
        data, status = row.data, _RUN.get(str(row.data.get("status")), "running")
        ended = status in ("completed", "failed", "cancelled")
        record = RunRecord(
            id=run_id(self._project, row.id),
            name=row.client_id,
            status=status,
            message=text(data.get("error_message") or data.get("status_message")),
            model=text(data.get("model_name")),
            seed=whole(data.get("seed")) if data.get("seed") is not None else None,
            config=_config(data),
            step=max(0, whole(data.get("current_step"))),
            total_steps=whole(data.get("total_steps")) if whole(data.get("total_steps")) > 0 else None,
            started_at=seconds(data.get("start_time")) or seconds(data.get("created_at")) or at,
            finished_at=(seconds(data.get("end_time")) or at) if ended else None,
            heartbeat_at=seconds(data.get("last_heartbeat")) or at,
            info={"project": self._project, "training_id": row.id},
        )
        self._tell_live(record, data, at, ended=ended)
        return w.SaveRun(run=record, at=at)

    def _tell_live(self, record: RunRecord, data: Mapping[str, Any], at: float, *, ended: bool) -> None:
        if ended:
            self._live.clear(record.id)
            return
        told = {
            "step": record.step,
            "total_steps": record.total_steps,
            "percent": number(data.get("progress_percent")),
            "left_s": number(data.get("estimated_remaining_time")),
            "since": at,
            "episodes": 0,
            "done": 0,
        }
        phase = text(data.get("current_phase")) or "running"
        self._live.write([LiveRecord(run_id=record.id, phase=phase, at=at, data=told)], record.id)

    def _step(self, row: Kept, at: float, *, tells: bool) -> list[w.Write]:
        data, run = row.data, run_id(self._project, row.parent or 0)
        values = {name: found for key, name in _METRICS.items() if (found := number(data.get(key))) is not None}
        more = _object(data.get("metrics_json"))
        values |= {str(name): found for name, one in more.items() if (found := number(one)) is not None}
        step = max(0, whole(data.get("step")))
        written: list[w.Write] = [w.Heartbeat(run_id=run, step=step if tells else None, at=at)]
        return [*written, w.LogMetrics(run_id=run, step=step, values=values, at=at)] if values else written

    def _evaluation(self, kind: str, row: Kept, at: float) -> w.Write:
        data, single = row.data, kind.removesuffix("s")
        mine = [one for one in self._ingest.rows("rollouts", parents=[row.id]) if one.data.get("source_type") == single]
        ids = [episode_id(self._project, one.id) for one in mine if Rollout(one).over]
        measured = {
            "success_rate": number(data.get("success_rate")),
            "n": number(data.get("completed_tasks")) or number(data.get("total_tasks")) or float(len(ids)),
            "steps_mean": number(data.get("avg_turns")),
        }
        status = _EVALUATION.get(str(data.get("status")), "running")
        record = EvaluationRecord(
            id=_EVALUATION_ID.format(project=self._project, kind=single, number=row.id),
            run_id=run_id(self._project, row.parent or 0),
            suite=_SUITE,
            step=max(0, whole(data.get("step"))),
            policy=text(data.get("model_path")),
            status=status,
            message=text(data.get("error_message") or data.get("status_message")),
            started_at=seconds(data.get("start_time")) or at,
            finished_at=None if status == "running" else seconds(data.get("end_time")) or at,
            metrics={name: value for name, value in measured.items() if value is not None},
        )
        return w.SaveEvaluation(evaluation=record, episode_ids=tuple(ids), at=at)

    # --- episodes --------------------------------------------------------------------------------------------------

    def _changed_rollouts(self, touched: Mapping[str, set[int]]) -> list[Kept]:
        """The rollouts that rows belong to, by way of their turns, too."""
        turns = self._rows("turns", touched["turns"])
        ids = touched["rollouts"] | {row.parent for row in turns if row.parent is not None}
        return self._rows("rollouts", ids)

    def _episodes(self, rows: Sequence[Kept], at: float) -> list[w.Write]:
        """Whole episodes of the rollouts that are over; how far the others have come goes to the table ``live``."""
        found: list[w.Write] = []
        for rollout in self._whole(rows):
            source = self._source(rollout.row)
            if source is None:  # it belongs to no training, so nobody would find it
                continue
            run = run_id(self._project, source.training)
            name = episode_id(self._project, rollout.row.id)
            if rollout.over:
                episode = trajectory(rollout, run_id=run, project=self._project, step=source.step, purpose=source.kind)
                found.append(w.SaveTrajectory(trajectory=episode, at=at))
                self._live.write([], run, [name])
            else:
                self._live.write([_running(rollout, run, name, source, at)], run)
        return found

    def _source(self, row: Kept) -> _Source | None:
        kind = str(row.data.get("source_type"))
        found = self._rows(f"{kind}s", [row.parent] if row.parent is not None else [])
        if not found or found[0].parent is None:
            return None
        return _Source(kind, found[0].parent, max(0, whole(found[0].data.get("step"))))

    def _whole(self, rows: Sequence[Kept]) -> list[Rollout]:
        ids = [row.id for row in rows]
        turns = _by_parent(self._ingest.rows("turns", parents=ids)) if ids else {}
        numbers = [turn.id for found in turns.values() for turn in found]
        actions, observations, validations = (
            _by_parent(self._ingest.rows(kind, parents=parents)) if parents else {}
            for kind, parents in (("actions", numbers), ("observations", numbers), ("validations", ids))
        )
        tasks = {row.id: row.data for row in self._rows("tasks", _referred(rows, "task_id"))}
        environments = {row.id: row.data for row in self._rows("environments", _referred(rows, "env_id"))}
        return [
            Rollout(
                row,
                task=tasks.get(whole(row.data.get("task_id")), {}),
                environment=environments.get(whole(row.data.get("env_id")), {}),
                turns=turns.get(row.id, ()),
                actions={turn: [one.data for one in found] for turn, found in actions.items()},
                observations={turn: [one.data for one in found] for turn, found in observations.items()},
                validations=[one.data for one in validations.get(row.id, ())],
            )
            for row in rows
        ]


def _running(rollout: Rollout, run: str, name: str, source: _Source, at: float) -> LiveRecord:
    data, turns = rollout.row.data, turns_of(rollout)
    told = {
        "task_id": text(rollout.task.get("task_id")),
        "goal": text(rollout.task.get("instruction") or rollout.task.get("description")),
        "step": source.step,
        "purpose": "train" if source.kind == "step" else "eval",
        "backend": text(rollout.environment.get("env_type")),
        "device": text(rollout.environment.get("gbox_id")),
        "started_at": seconds(data.get("start_time")) or at,
        "max_turns": whole(data.get("max_turns")),
        "attempt": max(0, whole(data.get("env_index"))),
        "turns": [turn.model_copy(update={"text": {}}).model_dump(mode="json") for turn in turns],
        "screen": turns[-1].screenshot.model_dump() if turns else None,
    }
    phase = _PHASES.get(str(data.get("current_phase")), "acting")
    return LiveRecord(run_id=run, episode_id=name, phase=phase, at=at, data=told)


def _by_parent(rows: Sequence[Kept]) -> dict[int, list[Kept]]:
    found: dict[int, list[Kept]] = defaultdict(list)
    for row in rows:
        found[row.parent or 0].append(row)
    return found


def _referred(rows: Sequence[Kept], key: str) -> set[int]:
    return {number for row in rows if isinstance(number := row.data.get(key), int)}


def _config(data: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters: the trainer's own configuration, or else the columns that say some of it."""
    given = _object(data.get("config_json"))
    columns = (
        "lora_rank", "learning_rate", "batch_size", "group_size", "groups_per_batch", "max_tokens", "temperature",
        "kl_penalty_coef", "num_substeps", "max_turns", "box_type", "renderer_name", "wandb_project", "wandb_name",
        "log_path",
    )  # fmt: skip
    return {**{name: data[name] for name in columns if data.get(name) is not None}, **given}


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=lambda name: None)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}
