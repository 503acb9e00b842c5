"""Training runs, from their directory to their last metrics.

Who learns is a ``Trainer``: ``local_trainer`` makes one of this process and those beside it, ``tinker`` one of the
service. The rest is the same for all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cuarl.evaluate.suite import Evaluation, find_results
from cuarl.workflow import signals
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.job import Job
from cuarl.workflow.trainer import Place, Trainer
from cuarl.workflow.watcher import SILENT
from cuarl.workflow.workers import hire

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.train.batch import Batch
    from cuarl.train.loop import Collect, LoopConfig, Outcome
    from cuarl.types import Sink
    from cuarl.workflow.evaluation import Due, EvaluationPlan
    from cuarl.workflow.reporting import Reporter
    from cuarl.workflow.tracking import Tracking


@dataclass(frozen=True, slots=True)
class Finished:
    """A training run that is over."""

    job: Job
    run: Run
    last: Evaluation | None
    """The last evaluation, if this attempt made one."""
    main: bool = True
    """Whether this process speaks for all."""

    @property
    def before(self) -> Evaluation | None:
        """The untrained policy's evaluation."""
        return None if self.job.config.skip_baseline else self._kept(0)

    @property
    def after(self) -> Evaluation | None:
        """The trained policy's."""
        return self.last or self._kept(self.job.config.max_steps)

    def _kept(self, step: int) -> Evaluation | None:
        what = self.job.evaluation_plan
        return find_results(self.run.evals_dir, what.label, step, what.key)


def train(job: Job) -> Finished:
    """Train, and evaluate as the configuration says.

    Raises KeyboardInterrupt when it was to end early (all that is finished has been saved), and CuarlError.
    """
    job, opened = _of_this_process(job)
    job.experiment.watcher.event("plan", job.plan())
    with opened as (place, trainer), _reporting(job, place) as reporter:
        last = _loop(job, place, trainer, reporter)
    return Finished(job, place.run, last, place.store is not None)


def _of_this_process(job: Job) -> tuple[Job, AbstractContextManager[tuple[Place, Trainer]]]:
    """The job as this process has to do it (the main one speaks for all), and its place and trainer, to be entered."""
    if job.config.trainer.type == "tinker":
        from cuarl.workflow import tinker

        return job, tinker.trainer(job)
    from cuarl.train.processes import join_processes
    from cuarl.train.watch import watch_launcher
    from cuarl.workflow import local_trainer

    watch_launcher(os.environ, patience_s=2 * job.experiment.settings.grace_seconds)
    accelerator = join_processes(job.config.device)
    if not accelerator.is_main_process:
        job = replace(job, experiment=replace(job.experiment, watcher=SILENT))
    return job, local_trainer.trainer(job, accelerator)


def _reporting(job: Job, place: Place) -> AbstractContextManager[Reporter | None]:
    """Who tells a monitor elsewhere of the run, if there is one; inside, it is told."""
    if place.store is None or place.record is None or not job.experiment.settings.monitor_base_url:
        return nullcontext()
    from cuarl.workflow.reporting import Reporter

    reporter = Reporter(place.run, job.config, job.experiment.settings, place.store.blobs)
    place.record.told.append(reporter.episode)
    return reporter


def _loop(job: Job, place: Place, trainer: Trainer, reporter: Reporter | None) -> Evaluation | None:
    from cuarl.train.loop import last_reported
    from cuarl.train.loop import train as train_loop
    from cuarl.workflow.evaluation import TrainingEvaluator
    from cuarl.workflow.from_config import loop_config

    experiment, run = job.experiment, place.run
    if place.store is not None and experiment.resume is not None:
        place.store.rewind_run(run.run_id, trainer.start)
    schedule = loop_config(job.config)
    evaluator = TrainingEvaluator(
        _due(job, schedule),
        trainer.evaluated,
        experiment.settings,
        run,
        place.store,
        place.record,
        experiment.watcher,
        job.workers,
    )
    reported = last_reported(trainer.start, trainer.pending)
    tracking = _tracking(experiment, place, reported)
    others = [one for one in (tracking, reporter) if one is not None]
    evaluator.told += [one.evaluated for one in others]
    sink = _sink(experiment, place, reported, others)

    sink.event("start", _announced(job, run, trainer.start))

    async def work() -> Outcome:
        async with hire.employed(job.workers), trainer.collecting(sink) as (collect, settled):
            return await train_loop(
                schedule,
                trainer.learner,
                _followed(collect, job, place),
                evaluator,
                sink,
                trainer.saver,
                trainer.start,
                settled,
                pending=trainer.pending,
                shutdown=trainer.shutdown,
            )

    try:
        outcome = signals.run(work, trainer.shutdown)
    finally:
        sink.close()
    if outcome.interrupted:
        raise KeyboardInterrupt
    return evaluator.last


def _announced(job: Job, run: Run, step: int) -> dict[str, Any]:
    """What those who watch must know to say how far it is."""
    config = job.config
    return {
        "run": run.name,
        "run_id": run.run_id,
        "step": step,
        "steps": config.max_steps,
        "eval_every": config.eval_every,
        "reward": config.reward,
        "imitates": config.algorithm.type in ("sft", "dagger"),
    }


def _due(job: Job, schedule: LoopConfig) -> list[tuple[EvaluationPlan, Due]]:
    validation = [(job.validation_plan, schedule.saves)] if job.validation_plan else []
    return [(job.evaluation_plan, schedule.evaluates), *validation]


def _followed(collect: Collect, job: Job, place: Place) -> Collect:
    """``collect``, which says where the run is: between two of its calls the policy is trained."""
    record, config = place.record, job.config
    if record is None:
        return collect

    async def followed(step: int, policy_version: int) -> Batch:
        record.live.begin("collecting", step, config.groups_per_batch * config.group_size)
        batch = await collect(step, policy_version)
        record.live.begin("training", step)
        return batch

    return followed


def _tracking(experiment: Experiment, place: Place, reported: int) -> Tracking | None:
    """What the trackers are told that the run asks for. Without one nothing of them is loaded."""
    if place.store is None or not experiment.config.track:
        return None
    from cuarl.workflow.tracking import Tracking

    experiment.settings.tell_trackers()
    return Tracking(experiment.config, place.run, place.store, after=None if experiment.resume is None else reported)


def _sink(experiment: Experiment, place: Place, reported: int, others: Sequence[Sink]) -> Sink:
    from cuarl.monitor.jsonl import JsonLinesSink
    from cuarl.monitor.sinks import FanOut
    from cuarl.store import StoreSink

    run, store = place.run, place.store
    if store is None:
        return FanOut([])
    kept = None if experiment.resume is None else reported
    lines = JsonLinesSink(run.metrics_path, run.events_path, resume_step=kept)
    return FanOut([lines, StoreSink(store, run.run_id), experiment.watcher, *others])
