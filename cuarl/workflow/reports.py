"""What a run reports to a training monitor, row by row in the format of ``docs/guides/monitor.md``. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cuarl.config.schema import ExperimentConfig
from cuarl.evaluate.suite import VALIDATION, Evaluation
from cuarl.trajectory import Trajectory, Turn
from cuarl.types import ImageRef, StopReason

Data = Mapping[str, Any]
_STATUS = {StopReason.FAILED: "failed", StopReason.CANCELLED: "cancelled"}
_COLUMNS = {
    "reward/mean": "reward_mean", "reward/std": "reward_std", "policy/loss": "loss",
    "policy/kl_sampler": "kl_divergence", "optim/grad_norm": "policy_gradient_norm",
    "optim/learning_rate": "learning_rate",
}  # fmt: skip
PICTURE = "screenshot:"
"""What a field with a screenshot begins with until it is sent; its digest follows."""


@dataclass(frozen=True, slots=True)
class Item:
    """One row to report."""

    kind: str
    """The list of the batch that it belongs to; ``training`` for the run itself."""
    client_id: str
    data: Data
    refs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Fields that hold the number of another row: its kind and ``client_id``."""

    def line(self) -> str:
        """One line of JSON in ASCII."""
        whole = {"kind": self.kind, "client_id": self.client_id, "data": self.data, "refs": self.refs}
        return json.dumps(whole, separators=(",", ":"), allow_nan=False, default=str)

    @classmethod
    def read(cls, line: str) -> Item:
        """Undo ``line``. Raises ValueError, LookupError or TypeError for one that was cut off."""
        found = json.loads(line)
        refs = {name: (kind, other) for name, (kind, other) in found["refs"].items()}
        return cls(found["kind"], found["client_id"], found["data"], refs)


class Reports:
    """Makes the rows of one run."""

    def __init__(self, name: str, run_id: str, config: ExperimentConfig) -> None:
        self._name, self._run, self._config = name, run_id, config
        self._of_run = {"training_id": ("training", name)}

    # --- the run, its steps and evaluations ------------------------------------------------------------------------

    def begun(self, at: float) -> Item:
        """The run, with all that it was asked to do."""
        c = self._config
        return self.run(
            at,
            status="running",
            model_name=c.model_name,
            lora_rank=c.lora_rank if c.use_lora else None,
            learning_rate=c.effective_learning_rate,
            batch_size=c.groups_per_batch * c.group_size,
            group_size=c.group_size,
            groups_per_batch=c.groups_per_batch,
            max_tokens=c.max_tokens,
            temperature=c.temperature,
            kl_penalty_coef=c.kl_penalty_coef,
            num_substeps=c.num_substeps,
            max_turns=c.max_turns,
            seed=c.seed,
            box_type=c.env.type,
            renderer_name=c.renderer_name,
            total_steps=c.max_steps,
            start_time=moment(at),
            config_json=c.canonical_json,
        )

    def run(self, at: float, **fields: Any) -> Item:
        """News of the run."""
        return Item("training", self._name, {"run_name": self._name, "last_heartbeat": moment(at), **fields})

    def step(self, step: int, **fields: Any) -> Item:
        """A training step."""
        return Item("steps", f"step-{self._run}-{step}-0", {"step": step, "batch": 0, **fields}, self._of_run)

    def measured(self, step: int, values: Mapping[str, float], at: float) -> Iterator[Item]:
        """The metrics of a step; those of the evaluation before the first one are with that evaluation."""
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        if step:
            columns = {column: finite[name] for name, column in _COLUMNS.items() if name in finite}
            yield self.step(step, status="completed", end_time=moment(at), metrics_json=json.dumps(finite), **columns)
        yield self.run(at, current_step=step, current_phase="training")

    def evaluated(self, evaluation: Evaluation) -> Iterator[Item]:
        """An evaluation that is over."""
        if evaluation.label == VALIDATION:
            return
        whole, outcomes = evaluation.overall, evaluation.outcomes
        yield self._evaluation(
            evaluation.step,
            model_path=evaluation.policy,
            status="completed",
            start_time=moment(evaluation.started_at),
            end_time=moment(evaluation.started_at + evaluation.wall_s),
            total_tasks=len(outcomes),
            completed_tasks=whole.n,
            successful_tasks=sum(bool(outcome.success) for outcome in outcomes),
            success_rate=whole.success_rate,
            avg_turns=whole.steps_mean,
            metrics_json=json.dumps(whole.metrics()),
        )

    def _evaluation(self, step: int, **fields: Any) -> Item:
        kind, name = self._source("eval", step)
        return Item(kind, name, {"step": step, **fields} if kind == "evals" else fields, self._of_run)

    def _source(self, purpose: str, step: int) -> tuple[str, str]:
        """The row that an episode belongs to: its kind and ``client_id``."""
        if purpose == "train":
            return "steps", f"step-{self._run}-{step}-0"
        return ("evals", f"eval-{self._run}-{step}") if step else ("baselines", f"baseline-{self._run}")

    # --- episodes --------------------------------------------------------------------------------------------------

    def episode(self, t: Trajectory) -> Iterator[Item]:
        """A finished episode, whole, behind what it belongs to; nothing of validation, for which there is no row."""
        if t.purpose == "rollout" or f".{VALIDATION}." in t.episode_id:
            return
        kind, source = self._source(t.purpose, t.step)
        yield self.step(t.step) if kind == "steps" else self._evaluation(t.step, model_path=t.policy)
        yield Item("tasks", t.task_id, _task(t))
        yield Item("environments", f"{t.episode_id}:env", _environment(t))
        single = kind.removesuffix("s")
        yield Item(
            "rollouts",
            t.episode_id,
            {**self._rollout(t), "source_type": single},
            {
                f"{single}_id": (kind, source),
                "env_id": ("environments", f"{t.episode_id}:env"),
                "task_id": ("tasks", t.task_id),
            },
        )
        for i, turn in enumerate(t.turns):
            after = t.turns[i + 1].screenshot if i + 1 < len(t.turns) else t.final_screenshot
            yield from _turn(t, turn, after, last=i + 1 == len(t.turns))
        if t.verdict is not None:
            yield Item("validations", f"{t.episode_id}:validation", _validation(t), _of_rollout(t))

    def _rollout(self, t: Trajectory) -> dict[str, Any]:
        errors = [turn.parse_error.code for turn in t.turns if turn.parse_error]
        group = t.group_id.rpartition(".")[2]
        return {
            "rollout_id": t.episode_id,
            "batch": 0,
            "group_num": int(group) if group.isdecimal() else None,
            "env_index": t.attempt,
            "is_eval": t.purpose == "eval",
            "model_path": t.policy,
            "status": _STATUS.get(t.stop, "completed"),
            "current_turn": len(t.turns),
            "num_turns": len(t.turns),
            "max_turns": self._config.max_turns,
            "start_time": moment(t.started_at),
            "end_time": moment(t.started_at + t.wall_s),
            "rollout_time": t.wall_s,
            "task_completed": t.verdict is not None and t.verdict.claimed is not None,
            "task_success": t.success,
            "validation_passed": t.success,
            "agent_reported_success": t.verdict.claimed if t.verdict else None,
            "reward": t.reward,
            "temperature": self._config.temperature if t.purpose == "train" else self._config.eval_temperature,
            "parse_errors": len(errors),
            "runtime_errors": sum(turn.rejected is not None for turn in t.turns),
            "ran_out_of_turns": t.stop is StopReason.MAX_TURNS,
            "error_message": t.failure and f"{t.failure.boundary}: {t.failure.message}",
        }


def _task(t: Trajectory) -> Data:
    return {
        "task_id": t.task_id,
        "name": t.goal,
        "description": t.goal,
        "instruction": t.goal,
        "category": t.category,
        "difficulty": t.difficulty,
        "source_type": "custom",
    }


def _environment(t: Trajectory) -> Data:
    return {
        "env_type": t.backend,
        "box_type": "android" if t.env == "phone" else "linux",
        "gbox_id": t.device or None,
        "status": "error" if t.failure and t.failure.boundary == "env" else "terminated",
        "creation_time": moment(t.started_at),
        "error_message": t.failure.message if t.failure and t.failure.boundary == "env" else None,
    }


def _of_rollout(t: Trajectory) -> dict[str, tuple[str, str]]:
    return {"rollout_id": ("rollouts", t.episode_id)}


def _turn(t: Trajectory, turn: Turn, after: ImageRef | None, *, last: bool) -> Iterator[Item]:
    name = f"{t.episode_id}:turn:{turn.index}"
    of_turn = {"turn_id": ("turns", name)}
    said = turn.sampled.text if turn.sampled else None
    yield Item(
        "turns",
        name,
        {
            "turn": turn.index,
            "start_time": moment(turn.started_at) if turn.started_at else None,
            "turn_time": turn.model_s + turn.env_s,
            "reward": turn.reward,
            "episode_done": last,
            "model_response": said,
        },
        _of_rollout(t),
    )
    if turn.action is not None:
        fields = turn.action.model_dump(mode="json")
        sampled = turn.sampled
        yield Item(
            "actions",
            f"{name}:action",
            {
                "action_type": turn.action.kind,
                "action_name": "action",
                "action_json": {"name": turn.action.kind, "args": _recipe_fields(fields)},
                "tokens": list(sampled.token_ids) if sampled else None,
                "logprobs": list(sampled.logprobs) if sampled and sampled.logprobs else None,
                "num_tokens": len(sampled.token_ids) if sampled else None,
            },
            of_turn,
        )
    for kind, shot in (("screenshot_before", turn.screenshot), ("screenshot_after", after)):
        if shot is not None:
            data = {"obs_type": kind, "screenshot_uri": f"{PICTURE}{shot.digest}"}
            yield Item("observations", f"{name}:{kind}", data, of_turn)


def _recipe_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """An action in the words of the recipe's tools, beside our own."""
    kind = fields["kind"]
    named = {"button": "button_press", "key": "key_press", "answer": "finish"}
    found = {**fields, "action_type": named.get(kind, kind)}
    if kind == "button":
        found["button"] = {"volume_up": "volumeUp", "volume_down": "volumeDown"}.get(fields["name"], fields["name"])
    if kind in ("finish", "answer"):
        found["result_message"] = fields.get("message", fields.get("text", ""))
    if kind == "swipe":
        found |= {
            "start_target": {"coordinates": [fields["x"], fields["y"]]},
            "end_target": {"coordinates": [fields["x2"], fields["y2"]]},
        }
    return found


def _validation(t: Trajectory) -> Data:
    assert t.verdict is not None
    wrong = [check for check in t.verdict.checks if not check.passed] or list(t.verdict.checks)
    first = wrong[0] if wrong else None
    return {
        "validation_time": moment(t.check_at or t.started_at + t.wall_s),
        "validation_query": first and first.path,
        "expected_result": None if first is None else json.dumps(first.expected, default=str),
        "actual_result": None if first is None else json.dumps(first.actual, default=str),
        "success": t.verdict.success,
        "execution_time": t.check_s,
        "details_json": t.verdict.model_dump(mode="json"),
    }


def moment(at: float) -> str:
    """A Unix time as the monitor reads it."""
    return datetime.fromtimestamp(at, UTC).isoformat()
