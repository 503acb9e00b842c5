"""Evaluations as commands need them: planned, run, recorded, with the baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cuarl.config.schema import ExperimentConfig
from cuarl.evaluate.suite import (
    VALIDATION,
    Evaluation,
    conditions_key,
    evaluate,
    folder_for,
    plan_evaluation,
    write_results,
)
from cuarl.evaluate.summary import Outcome, summarise
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.pool import Progress
from cuarl.settings import Settings
from cuarl.tasks import changes
from cuarl.tasks.task import Task
from cuarl.workflow import episodes as parts
from cuarl.workflow import players, signals
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.live import Live
from cuarl.workflow.players import Player
from cuarl.workflow.watcher import SILENT, Watcher
from cuarl.workflow.workers import hire
from cuarl.workflow.workers.crew import Crew

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.store import Store
    from cuarl.store.records import BaselineRecord

BASELINES = ("nothing", "random")

_SETTINGS = (
    "side_effects", "max_turns", "max_task_time_seconds", "max_turn_time_seconds", "top_p", "top_k", "max_tokens",
    "renderer_name", "history_images", "history_turns", "history_older", "max_prompt_tokens", "dtype",
    "quantization",
)  # fmt: skip
"""Fields that success may depend on in any environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """What is evaluated, and on what."""

    config: ExperimentConfig
    tasks: Sequence[Task]
    episodes: int
    attempts: int = 1
    purpose: Literal["evaluation", "validation"] = "evaluation"

    @property
    def label(self) -> str:
        """The suites that the tasks are from; of a run's validation that it is one."""
        if self.purpose == VALIDATION:
            return VALIDATION
        suites = sorted({task.suite or "tasks" for task in self.tasks})
        return "+".join(suites) if len(suites) <= 3 else f"{suites[0]}+{len(suites) - 1}"

    @property
    def planned(self) -> int:
        """How many episodes are played: whole instances, so ``episodes`` or a few more."""
        return max(1, -(-self.episodes // self.attempts)) * self.attempts

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the evaluation, as far as success may depend on it."""
        config = self.config
        tasks = changes.digest({"eval": [changes.content(task) for task in self.tasks]})
        return {
            "episodes": self.episodes,
            "attempts": self.attempts,
            "tasks": tasks[:12],
            "temperature": config.eval_temperature,
            **{name: getattr(config, name) for name in _SETTINGS},
            "env": config.env.model_dump(mode="json", exclude=set(config.env.capacity)),
            **({"purpose": self.purpose} if self.purpose == VALIDATION else {}),
        }

    @property
    def key(self) -> str:
        """The key that its evaluations will have."""
        conditions = {"seed": self.config.seed, "limited": self.limited, **self.settings}
        return conditions_key(self.label, conditions)

    @property
    def limited(self) -> str:
        """In what the tasks are fewer than the selection; empty if they aren't."""
        instances = max(1, self.episodes // self.attempts)
        if instances < len(self.tasks):
            return f"a sample of {instances} of {len(self.tasks)} tasks"
        return f"at most {self.config.limit} tasks" if self.config.limit else ""


async def run_evaluation(
    what: EvaluationPlan,
    player: Player,
    settings: Settings,
    *,
    prefix: str,
    run_id: str = "",
    step: int = 0,
    record: parts.Recording | None = None,
    progress: Progress | None = None,
    workers: Crew | None = None,
) -> Evaluation:
    """Evaluate ``player``. Episodes go to ``record``; ``prefix`` must be unique to this evaluation within its store.

    ``workers`` are employed already; without them, those that the configuration asks for are, for as long as it takes.
    """
    config = what.config
    own = hire.crew(config, settings) if workers is None else None
    plan = plan_evaluation(
        what.tasks,
        episodes=what.episodes,
        attempts=what.attempts,
        run_seed=config.seed,
        prefix=prefix,
        run_id=run_id,
        step=step,
    )
    served = hire.backend(config, what.tasks, settings, workers or own)
    if record is not None:
        record.live.begin("evaluating", step, len(plan))
    async with hire.employed(own), parts.playing(player, served):
        return await evaluate(
            plan,
            parts.setup(config, served, player, record),
            label=what.label,
            run_seed=config.seed,
            limited=what.limited,
            settings=what.settings,
            max_concurrent=served.concurrent(config.max_concurrent_rollouts),
            failures=FailureWindow(max_share=config.max_failed_share),
            save=record.save if record else None,
            on_cancel=record.cut if record else None,
            progress=progress,
        )


def evaluate_baselines(what: EvaluationPlan, settings: Settings, watcher: Watcher) -> dict[str, tuple[Outcome, ...]]:
    """Outcomes of the agents that know nothing, on the same instances; they are not stored."""
    found = {}
    for name in BASELINES:
        with watcher.progress(name, what.planned) as progress:
            player = players.scripted(name)
            found[name] = signals.run(
                partial(run_evaluation, what, player, settings, prefix=name, progress=progress)
            ).outcomes
    return found


@contextmanager
def home(
    experiment: Experiment, store: Store, run: Path | None, what: EvaluationPlan, *, actor: str | None = None
) -> Iterator[tuple[Run, parts.Recording]]:
    """Where an evaluation is recorded: with the run that it evaluates, or, if it has a name, in a run of its own."""
    from cuarl.run import Run

    if run is None or experiment.name is not None:
        resolved = replace(experiment.resolved, config=what.config)
        with (
            replace(experiment, resolved=resolved).open_run("eval", store, actor=actor) as made,
            parts.recording(store, made, what.config, what.tasks) as record,
        ):
            yield made, record
        return
    found = Run(run)
    record = parts.Recording(
        store, Live(store, found.run_id, backend=what.config.env.type, max_turns=what.config.max_turns)
    )
    try:
        with record.live:
            yield found, record
    finally:
        record.finish()


def keep(
    store: Store,
    evaluation: Evaluation,
    evaluation_id: str,
    run: Run,
    *,
    own: bool,
    beside: Mapping[str, Sequence[Outcome]] | None = None,
) -> Path:
    """Write ``results.json`` into ``run`` and the evaluation into the store; returns the file.

    ``own`` says that the run itself makes the evaluation, and nobody afterwards. ``beside`` are the baselines'
    outcomes.
    """
    from cuarl.store import EvaluationRecord

    store.save_evaluation(
        EvaluationRecord(
            id=evaluation_id,
            run_id=run.run_id,
            suite=evaluation.label,
            step=evaluation.step,
            policy=evaluation.policy,
            policy_version=evaluation.policy_version,
            started_at=evaluation.started_at,
            finished_at=evaluation.started_at + evaluation.wall_s,
            metrics=evaluation.overall.metrics(),
            baselines={name: _baseline(outcomes) for name, outcomes in (beside or {}).items()},
            info={"agent": evaluation.agent, **evaluation.conditions},
        ),
        [o.episode_id for o in evaluation.outcomes],
    )
    return write_results(folder_for(run.evals_dir, evaluation, own=own), evaluation)


def _baseline(outcomes: Sequence[Outcome]) -> BaselineRecord:
    from cuarl.store.records import BaselineRecord

    return BaselineRecord(
        metrics=summarise(outcomes).metrics(), outcomes=tuple((o.task_id, str(o.seed), o.success) for o in outcomes)
    )


Due = Callable[[int], bool]
"""Whether something is to be done after a training step."""


class TrainingEvaluator:
    """Evaluates the policy as it is, in the main process, by each plan whose turn it is.

    Keeps the last proper evaluation.
    """

    def __init__(
        self,
        plans: Sequence[tuple[EvaluationPlan, Due]],
        player: Player,
        settings: Settings,
        run: Run,
        store: Store | None,
        record: parts.Recording | None,
        watcher: Watcher = SILENT,
        workers: Crew | None = None,
    ) -> None:
        self._plans, self._player, self._settings, self._run, self._watcher = plans, player, settings, run, watcher
        self._workers = workers
        self._store, self._record = store, record
        self.last: Evaluation | None = None
        self.told: list[Callable[[Evaluation], None]] = []
        """Are told each evaluation once it is stored."""

    async def __call__(self, step: int) -> dict[str, float] | None:
        """A ``train.loop.Evaluate``."""
        if self._store is None or self._record is None:
            return None
        # what was due when the run was interrupted may not be by the settings it is resumed with
        plans = [plan for plan, due in self._plans if due(step)] or [plan for plan, _ in self._plans]
        found: dict[str, float] = {}
        for plan in plans:
            found |= (await self._evaluated(plan, step, self._store, self._record)).metrics()
        return found

    async def _evaluated(self, what: EvaluationPlan, step: int, store: Store, record: parts.Recording) -> Evaluation:
        prefix = f"{self._run.run_id}.{'eval' if what.purpose == 'evaluation' else what.purpose}.{step:04d}"
        with self._watcher.progress(f"{what.purpose} at step {step}", what.planned, part=True) as progress:
            evaluation = await run_evaluation(
                what,
                self._player,
                self._settings,
                prefix=prefix,
                run_id=self._run.run_id,
                step=step,
                record=record,
                progress=progress,
                workers=self._workers,
            )
        keep(store, evaluation, prefix, self._run, own=True)
        for told in self.told:
            told(evaluation)
        if what.purpose == "evaluation":
            self.last = evaluation
        return evaluation
