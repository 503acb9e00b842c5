"""Evaluates an agent on a selection of tasks, on instances that no training ever sees.

The seed of an instance comes from the run seed, the task and a running number, never from what else is evaluated: two
evaluations with the same run seed meet the same instances, which is what makes them comparable pair by pair.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, ValidationError

from cuarl.errors import ConfigError
from cuarl.evaluate.summary import Outcome, Summary, breakdown, by_about, summarise
from cuarl.regular_file import read_regular
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.pool import Progress, Save, collect
from cuarl.rollout.seeds import digest, environment_seed, sampling_seed
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.run.atomic import write_text
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Record

RESULTS = "results.json"
VALIDATION = "validation"
"""Label and purpose of evaluations on the tasks that a run keeps aside to choose a checkpoint by."""

_METRICS = ("success_rate", "ci_low", "ci_high", "n", "false_completion_rate", "side_effect_rate", "steps_mean")


class Evaluation(Record):
    """One evaluation, whole: what was evaluated, on what, and how it went."""

    schema_version: int = 1
    label: str
    """Name of what it was evaluated on, e.g. the suite."""
    agent: str = ""
    policy: str = ""
    policy_version: int = 0
    step: NonNegativeInt = 0
    seed: int = 0
    """Run seed that the instances were drawn with."""
    limited: str = ""
    """Why this is not the whole selection; empty if it is."""
    overall: Summary
    by_category: Mapping[str, Summary] = Field(default_factory=dict)
    by_difficulty: Mapping[str, Summary] = Field(default_factory=dict)
    by_split: Mapping[str, Summary] = Field(default_factory=dict)
    """Empty where no task has a split."""
    by_about: Mapping[str, Mapping[str, Summary]] = Field(default_factory=dict)
    """By what else is told about tasks, and its values: empty but for pairs of picture and instruction."""
    baselines: Mapping[str, Summary] = Field(default_factory=dict)
    """The same instances played by agents that know nothing."""
    outcomes: tuple[Outcome, ...] = ()
    started_at: float = 0.0
    """Unix time, seconds."""
    wall_s: float = 0.0
    settings: Mapping[str, Any] = Field(default_factory=dict)
    """What else may matter to whoever repeats it: environment, temperature, limits, the number of episodes."""

    @property
    def conditions(self) -> dict[str, Any]:
        """All settings that it was made with; only evaluations with equal conditions belong on one curve."""
        return {"episodes": len(self.outcomes), "seed": self.seed, "limited": self.limited, **self.settings}

    @property
    def key(self) -> str:
        """Short digest of its conditions and of what it was evaluated on."""
        return conditions_key(self.label, self.conditions)

    def metrics(self) -> dict[str, float]:
        """By documented name (``eval/<label>/success_rate`` …), without what could not be computed."""
        values = self.overall.metrics()
        return {f"eval/{self.label}/{name}": values[name] for name in _METRICS if name in values}


def plan_evaluation(
    tasks: Sequence[Task],
    *,
    episodes: int,
    attempts: int = 1,
    run_seed: int = 0,
    prefix: str,
    run_id: str = "",
    step: int = 0,
) -> tuple[EpisodeSpec, ...]:
    """About ``episodes`` episodes, spread evenly: each task in turn gets one more instance, with ``attempts`` at each.

    With fewer instances than tasks, the tasks are a sample drawn by ``run_seed``. ``prefix`` must be unique to this
    evaluation within the store.
    """
    instances = max(1, -(-episodes // attempts))
    if instances < len(tasks):
        tasks = sorted(sorted(tasks, key=lambda t: digest("limit", run_seed, t.id))[:instances], key=tasks.index)
    specs: list[EpisodeSpec] = []
    for position in range(instances):
        task, number = tasks[position % len(tasks)], position // len(tasks)
        seed = environment_seed(run_seed, task.id, number, "eval")
        instance = task.instantiate(seed)
        specs += [
            EpisodeSpec(
                task=instance,
                seed=seed,
                sampling_seed=sampling_seed(run_seed, task.id, number, attempt),
                group_id=f"{prefix}.{position:04d}",
                attempt=attempt,
                run_id=run_id,
                step=step,
                purpose="eval",
            )
            for attempt in range(attempts)
        ]
    return tuple(specs)


async def evaluate(
    plan: Sequence[EpisodeSpec],
    setup: Setup,
    *,
    label: str,
    run_seed: int = 0,
    limited: str = "",
    settings: Mapping[str, Any] | None = None,
    max_concurrent: int = 8,
    failures: FailureWindow | None = None,
    save: Save | None = None,
    progress: Progress | None = None,
    on_cancel: Callable[[Episode], None] | None = None,
) -> Evaluation:
    """Run ``plan`` and sum it up. Raises what ``collect`` raises."""
    started_at, start = setup.now(), time.monotonic()
    groups = await collect(
        plan, setup, max_concurrent=max_concurrent, failures=failures, save=save, progress=progress, on_cancel=on_cancel
    )
    trajectories = [t for g in groups for t in g.trajectories]
    sampled = next((t for t in trajectories if t.policy), trajectories[0])
    tasks = {spec.task.task_id: spec.task for spec in plan}
    outcomes = tuple(_told(Outcome.of(t), tasks[t.task_id]) for t in trajectories)
    return Evaluation(
        label=label,
        agent=sampled.agent,
        policy=sampled.policy,
        policy_version=sampled.policy_version,
        step=plan[0].step,
        seed=run_seed,
        limited=limited,
        overall=summarise(outcomes),
        by_category=breakdown(outcomes, "category"),
        by_difficulty=breakdown(outcomes, "difficulty"),
        by_split=_by_split(outcomes),
        by_about=by_about(outcomes),
        outcomes=outcomes,
        started_at=started_at,
        wall_s=time.monotonic() - start,
        settings=settings or {},
    )


def _told(outcome: Outcome, task: TaskInstance) -> Outcome:
    """With what the task says of itself, and no episode records."""
    about = task.preset.get("about", {}) if task.env == "grounding" else {}
    return outcome.model_copy(update={"split": task.split or "", "about": about})


def _by_split(outcomes: Sequence[Outcome]) -> dict[str, Summary]:
    return breakdown([o for o in outcomes if o.split], "split")


def conditions_key(label: str, conditions: Mapping[str, Any]) -> str:
    """Six hexadecimal digits that differ where what was measured, or how, does."""
    text = json.dumps([label, conditions], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def folder_name(label: str, step: int, key: str = "") -> str:
    """Name of an evaluation's folder below ``evals/``.

    With the key of its conditions if the plain name is not for it.
    """
    return f"{label}-step-{step:06d}" + (f"-{key}" if key else "")


def folder_for(evals: Path, evaluation: Evaluation, *, own: bool) -> Path:
    """Where ``evaluation`` goes below ``evals``: never where one lies that was made under other conditions.

    ``own`` says that the run itself makes it; only then does it take a plain name that is free.
    """
    plain = evals / folder_name(evaluation.label, evaluation.step)
    try:
        fits = read_results(plain).key == evaluation.key if (plain / RESULTS).is_file() else own
    except ConfigError:  # damaged, and somebody's all the same
        fits = False
    if fits:
        return plain
    return evals / folder_name(evaluation.label, evaluation.step, evaluation.key)


def find_results(evals: Path, label: str, step: int, key: str) -> Evaluation | None:
    """The evaluation of ``step`` under the conditions of ``key``; None if it was not made."""
    for name in (folder_name(label, step), folder_name(label, step, key)):
        if (evals / name / RESULTS).is_file() and (found := read_results(evals / name)).key == key:
            return found
    return None


def overruled(evaluation: Evaluation, said: Mapping[str, bool]) -> Evaluation:
    """``evaluation`` with the verdicts that people gave instead, by episode; itself where they said nothing of it."""
    if not any(o.episode_id in said for o in evaluation.outcomes):
        return evaluation
    outcomes = tuple(_judged(o, said[o.episode_id]) if o.episode_id in said else o for o in evaluation.outcomes)
    return evaluation.model_copy(
        update={
            "outcomes": outcomes, "overall": summarise(outcomes), "by_category": breakdown(outcomes, "category"),
            "by_difficulty": breakdown(outcomes, "difficulty"), "by_split": _by_split(outcomes),
            "by_about": by_about(outcomes),
        }
    )  # fmt: skip


def _judged(outcome: Outcome, success: bool) -> Outcome:
    # a claim that came true after all was no false one; whether another was made is not known here
    return outcome.model_copy(update={"success": success, "false_completion": outcome.false_completion and not success})


def write_results(folder: Path, evaluation: Evaluation) -> Path:
    """Write ``results.json`` into ``folder``, which is made, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RESULTS
    write_text(path, evaluation.model_dump_json(indent=1) + "\n")
    return path


def read_results(path: Path) -> Evaluation:
    """Read a ``results.json``, or the one in a folder. Raises ConfigError if it is none."""
    path = path / RESULTS if path.is_dir() else path
    try:
        return Evaluation.model_validate_json(read_regular(path))
    except (OSError, ValidationError) as error:
        raise ConfigError(f"no evaluation can be read here: {str(error).splitlines()[0]}", where=str(path)) from error
