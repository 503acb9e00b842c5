"""Training runs: what is to be done, checked before anything starts, and the run from its directory to its last metrics.

Who learns is a ``Trainer``: ``local_trainer`` makes one of this process and those beside it, ``tinker`` one of the service.
The rest is the same for all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cuarl import objects
from cuarl.config.algorithms import RATIO
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError, RolloutError
from cuarl.evaluate.suite import Evaluation, find_results
from cuarl.rollout.reward import needs_verdict
from cuarl.tasks.select import require_checks
from cuarl.tasks.task import Task
from cuarl.workflow import environments, inputs, signals
from cuarl.workflow import episodes as parts
from cuarl.workflow.evaluation import Measurement
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.inputs import Inputs
from cuarl.workflow.players import Player
from cuarl.workflow.watcher import SILENT

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.store import Store
    from cuarl.train.loop import Collect, Metrics, Outcome, Saver, Settled, Trainable
    from cuarl.train.shutdown import Shutdown
    from cuarl.types import Sink


# --- before anything starts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done, checked as far as it can be without starting anything."""

    experiment: Experiment
    tasks: Sequence[Task]
    measurement: Measurement
    inputs: Inputs

    @property
    def config(self) -> ExperimentConfig:
        """The configuration."""
        return self.experiment.config

    @classmethod
    def of(cls, experiment: Experiment) -> Job:
        """Select the tasks and check what depends on them. Raises ConfigError, TaskError or PrerequisiteError."""
        from cuarl.policy.load import device_named, resolve
        from cuarl.workflow.from_config import model_spec

        config, settings = experiment.config, experiment.settings
        _check_held(experiment)
        if config.algorithm in RATIO and (config.top_p < 1 or config.top_k > 0):
            raise ConfigError(
                f"{config.algorithm} needs samples of the whole distribution, and top_p or top_k cut it off",
                where="--top-p, --top-k", hint="leave them out; --temperature may be set",
            )  # fmt: skip
        # imitation trains on stored episodes, whatever their tasks
        tasks = parts.tasks_of(experiment, "train") if config.algorithm != "sft" else ()
        if needs_verdict(config.reward):
            require_checks(tasks)
        measured = parts.tasks_of(experiment, "eval")
        environments.check(config, [*tasks, *measured], settings)
        if config.trainer == "local":
            resolve(model_spec(experiment.resolved, config.device))
            device_named(config.sampler_device or "cpu")
        _check_endpoint(experiment)
        given = Inputs.of(config.reward, tasks, measured)
        inputs.check(experiment, given)
        measurement = Measurement(config=config, tasks=measured, episodes=config.eval_episodes)
        return cls(experiment, tasks, measurement, given)

    def plan(self) -> dict[str, Any]:
        """The plan in a few facts."""
        c = self.config
        group = "" if c.algorithm == "sft" else f" of {c.group_size}"
        practised = "" if c.algorithm == "sft" else f"{len(self.tasks)} to practise, "
        when = [] if c.skip_baseline else ["before"]
        when += [f"every {c.eval_every} steps"] if 0 < c.eval_every < c.max_steps else []
        trained = f"LoRA of rank {c.lora_rank} on {c.lora_target_option}" if c.use_lora else "all weights"
        return {
            "model": f"{c.model_name}, {trained}",
            "tasks": f"{practised}{len(self.measurement.tasks)} to measure ({self.measurement.label})",
            "training": f"{c.max_steps} steps of {c.groups_per_batch} groups{group}: "
            f"{c.max_steps * c.groups_per_batch * c.group_size} episodes of at most {c.max_turns} turns",
            "evaluation": f"{c.eval_episodes} episodes {', '.join([*when, 'at the end'])}",
            "algorithm": f"{c.algorithm}, learning rate {c.effective_learning_rate:g}",
        }


def _check_held(experiment: Experiment) -> None:
    """Objects that only one process has make a run that can't be resumed, nor made by several."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    for field in ("reward", "env"):
        path = getattr(experiment.config, field)
        if objects.is_held(path) and (several or experiment.resume is not None):
            what = "several processes can't share it" if several else "a run can't be resumed with it"
            raise ConfigError(
                f"the {field} {path} is an object of this session alone, so {what}",
                hint="put it into a module that can be imported, and pass it from there",
            )  # fmt: skip


def _check_endpoint(experiment: Experiment) -> None:
    """See that a server gives what training needs, before anything is loaded."""
    config = experiment.config
    if config.model_base_url is None:
        return
    if config.algorithm == "sft":
        raise ConfigError("sft samples nothing, so model_base_url has no effect", hint="leave --model-base-url out")
    if not config.use_lora:
        raise ConfigError(
            "a server can be given adapters only, not whole models", where="--no-use-lora", hint="--use-lora"
        )
    from cuarl.workflow import endpoint
    from cuarl.workflow.from_config import model_spec

    spec = model_spec(experiment.resolved, config.device)
    endpoint.check(config, experiment.settings, spec, experiment.watcher.note)


# --- where a run is kept -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is kept. Only the main process has a store and a record to write to."""

    run: Run
    store: Store | None
    record: parts.Recording | None


@contextmanager
def recorded(job: Job, begun: Callable[[Run], object] | None = None) -> Iterator[Place]:
    """The run of ``job``, made or reopened, and marked with how it ended. ``begun`` is called once it is there."""
    experiment = job.experiment
    with ExitStack() as stack:
        store = stack.enter_context(parts.open_store(experiment.settings))
        run = stack.enter_context(experiment.open_run("train", store))
        if begun is not None:
            begun(run)
        inputs.keep(run, job.inputs)
        stack.enter_context(_how_to_go_on(experiment, run))
        record = stack.enter_context(parts.recording(store, run, job.config, [*job.tasks, *job.measurement.tasks]))
        yield Place(run, store, record)


@contextmanager
def _how_to_go_on(experiment: Experiment, run: Run) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        experiment.watcher.note(f"interrupted; go on with: cuarl train --resume {run.name}")
        raise
    except RolloutError:  # a server or device is gone: what was trained is kept
        experiment.watcher.note(f"once that is mended, go on with: cuarl train --resume {run.name}")
        raise


# --- the run -------------------------------------------------------------------------------------------------------


class Collecting(NamedTuple):
    """Where batches come from while training goes on."""

    collect: Collect
    settled: Settled | None = None


@dataclass(frozen=True, slots=True)
class Trainer:
    """Who learns, restored from its last checkpoint, with all that depends on where its weights are."""

    learner: Trainable
    saver: Saver
    start: int
    """The step that was restored; 0 for none."""
    pending: Metrics | None
    """Metrics of that step that are still to be reported."""
    evaluated: Player
    collecting: Callable[[Sink], AbstractAsyncContextManager[Collecting]]
    """Inside, batches can be had."""
    shutdown: Shutdown


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
        what = self.job.measurement
        return find_results(self.run.evals_dir, what.label, step, what.key)


def train(job: Job) -> Finished:
    """Train, and evaluate as the configuration says.

    Raises KeyboardInterrupt when it was to end early (all that is finished has been saved), and CuarlError.
    """
    job, opened = _of_this_process(job)
    job.experiment.watcher.event("plan", job.plan())
    with opened as (place, trainer):
        last = _loop(job, place, trainer)
    return Finished(job, place.run, last, place.store is not None)


def _of_this_process(job: Job) -> tuple[Job, AbstractContextManager[tuple[Place, Trainer]]]:
    """The job as this process has to do it (the main one speaks for all), and its place and trainer, to be entered."""
    if job.config.trainer == "tinker":
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


def _loop(job: Job, place: Place, trainer: Trainer) -> Evaluation | None:
    from cuarl.train.loop import last_reported
    from cuarl.train.loop import train as train_loop
    from cuarl.workflow.evaluation import Measuring
    from cuarl.workflow.from_config import loop_config

    experiment, run = job.experiment, place.run
    if place.store is not None and experiment.resume is not None:
        place.store.rewind_run(run.run_id, trainer.start)
    measuring = Measuring(
        job.measurement, trainer.evaluated, experiment.settings, run, place.store, place.record, experiment.watcher
    )
    sink = _sink(experiment, place, last_reported(trainer.start, trainer.pending))

    async def work() -> Outcome:
        async with trainer.collecting(sink) as (collect, settled):
            return await train_loop(
                loop_config(job.config), trainer.learner, collect, measuring, sink, trainer.saver, trainer.start, settled,
                pending=trainer.pending, shutdown=trainer.shutdown,
            )  # fmt: skip

    try:
        outcome = signals.run(work, trainer.shutdown)
    finally:
        sink.close()
    if outcome.interrupted:
        raise KeyboardInterrupt
    return measuring.last


def _sink(experiment: Experiment, place: Place, reported: int) -> Sink:
    from cuarl.monitor.jsonl import JsonLinesSink
    from cuarl.monitor.sinks import FanOut
    from cuarl.store import StoreSink

    run, store = place.run, place.store
    if store is None:
        return FanOut([])
    kept = None if experiment.resume is None else reported
    lines = JsonLinesSink(run.metrics_path, run.events_path, resume_step=kept)
    return FanOut([lines, StoreSink(store, run.run_id), experiment.watcher])


@contextmanager
def imitation(job: Job, place: Place) -> Iterator[Collect]:
    """The episodes that are imitated, compared with those that the run was started with."""
    from cuarl.workflow.imitation import Imitation

    settings = job.experiment.settings
    # only the main process has the store open already
    with nullcontext(place.store) if place.store else parts.open_store(settings) as store:
        found = Imitation(job.config, store, settings.runs_dir)
        inputs.check_imitated(job.experiment, place.run.path, found.ids, write=place.store is not None)
        yield found
