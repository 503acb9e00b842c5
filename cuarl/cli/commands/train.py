"""``cuarl train``: one command from tasks to a trained, measured policy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cuarl.cli import idle
from cuarl.cli.options import experiment_options
from cuarl.cli.output import closing, note, print_json
from cuarl.cli.results import headline, interval, percent, print_summaries
from cuarl.cli.state import STATE
from cuarl.config.algorithms import RATIO
from cuarl.config.load import Resolved
from cuarl.config.schema import PANELS, ExperimentConfig
from cuarl.errors import ConfigError, RolloutError
from cuarl.evaluate.suite import Evaluation, find_results
from cuarl.rollout.reward import needs_verdict
from cuarl.tasks.select import require_checks
from cuarl.tasks.task import Task
from cuarl.train.launch import check_launched, launch_command
from cuarl.workflow import environments, inputs, players, signals
from cuarl.workflow import episodes as parts
from cuarl.workflow.evaluation import Measurement
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.inputs import Inputs
from cuarl.workflow.players import Player

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cuarl.run import Run
    from cuarl.settings import Settings
    from cuarl.store import Store
    from cuarl.train.learner import Learner
    from cuarl.train.loop import Collect
    from cuarl.types import Sink
    from cuarl.workflow.from_config import Imitation, Measuring, Practice

app = typer.Typer()


@app.command(
    epilog="""\b
Examples:
  cuarl train --tasks settings --difficulty easy
  cuarl train --preset qwen3-vl-lora --processes 4 --name big
  cuarl train --resume latest
  cuarl train --algorithm sft --sft-runs my-demonstrations --max-steps 20"""
)
@experiment_options(*PANELS, resumable=True)
def train(
    experiment: Experiment,
    processes: Annotated[
        int, typer.Option(min=1, help="Processes, one a GPU; more than one go through accelerate.")
    ] = 1,
    accelerate: Annotated[
        str | None,
        typer.Option(
            help="How accelerate starts them: a preset (ddp, fsdp2) or a configuration file; unset means ddp."
        ),
    ] = None,
) -> None:
    """Train a policy on tasks with reinforcement learning, and measure it before and after.

    A run that was interrupted goes on with --resume as if nothing had happened.
    """
    from cuarl.workflow.from_config import check_alone

    check_launched(os.environ)
    idle.check_launch(processes, accelerate, os.environ.get("WORLD_SIZE"))
    job = _Job.of(experiment)
    if job.config.trainer == "local":
        check_alone(job.config, processes)
    if experiment.dry_run:
        _show_plan(job, as_json=experiment.json)
        note("nothing was started")
    elif job.config.trainer == "tinker":
        if processes > 1:
            raise ConfigError(
                "Tinker trains elsewhere, so one process is enough", where="--processes", hint="leave it out"
            )
        _run_there(experiment, job)
    elif processes > 1 and "WORLD_SIZE" not in os.environ:
        raise typer.Exit(_launch(experiment, job, processes, accelerate or "ddp"))
    else:
        _run(experiment, job)


# --- before anything starts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be done, checked as far as it can be without starting anything."""

    config: ExperimentConfig
    tasks: Sequence[Task]
    measurement: Measurement
    inputs: Inputs

    @classmethod
    def of(cls, experiment: Experiment) -> _Job:
        """Select the tasks and check what depends on them. Raises ConfigError, TaskError or PrerequisiteError."""
        from cuarl.policy.load import device_named, resolve
        from cuarl.workflow.from_config import model_spec

        config, settings = experiment.config, experiment.settings()
        if config.algorithm in RATIO and (config.top_p < 1 or config.top_k > 0):
            raise ConfigError(
                f"{config.algorithm} needs samples of the whole distribution, and top_p or top_k cut it off",
                where="--top-p, --top-k", hint="leave them out; --temperature may be set",
            )  # fmt: skip
        # imitation trains on stored episodes, whatever their tasks
        tasks = parts.select_tasks(config, settings, "train").tasks if config.algorithm != "sft" else ()
        if needs_verdict(config.reward):
            require_checks(tasks)
        measured = parts.select_tasks(config, settings, "eval").tasks
        environments.check(config, [*tasks, *measured])
        if config.trainer == "local":
            resolve(model_spec(experiment.resolved, config.device))
            device_named(config.sampler_device or "cpu")
        _check_remote(experiment.resolved, settings)
        given = Inputs.of(config.reward, tasks, measured)
        inputs.check(experiment, given)
        return cls(config, tasks, Measurement(config=config, tasks=measured, episodes=config.eval_episodes), given)

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


def _check_remote(resolved: Resolved, settings: Settings) -> None:
    """See that a server gives what training needs, before anything is loaded."""
    config = resolved.config
    if config.model_base_url is None:
        return
    if config.algorithm == "sft":
        raise ConfigError("sft samples nothing, so model_base_url has no effect", hint="leave --model-base-url out")
    if not config.use_lora:
        raise ConfigError(
            "a server can be given adapters only, not whole models", where="--no-use-lora", hint="--use-lora"
        )
    from cuarl.workflow import endpoint as remote
    from cuarl.workflow.from_config import model_spec

    remote.check(config, settings, model_spec(resolved, config.device))


def _show_plan(job: _Job, *, as_json: bool) -> None:
    if as_json:
        print_json({"event": "plan", **job.plan()}, line=True)
    else:
        for name, text in job.plan().items():
            note(f"{name:<11} {text}")


# --- several processes ---------------------------------------------------------------------------------------------


def _launch(experiment: Experiment, job: _Job, processes: int, accelerate: str) -> int:
    """Make the run directory here, so that processes don't race for it, and go on with it in all of them."""
    launch_command([], processes=processes, accelerate=accelerate)  # a wrong preset is refused before that
    with parts.open_store(experiment.settings()) as store:
        run = experiment.open_run("train", store)
    inputs.keep(run, job.inputs)
    options = [("--runs-dir", experiment.runs_dir), ("--db", experiment.db), ("--env-file", STATE.env_file)]
    arguments = ["train", "--resume", str(run.path), "--display", STATE.display]
    arguments += [str(word) for name, value in options if value is not None for word in (name, value)]
    flags = {"--json": experiment.json, "--quiet": STATE.quiet, "--debug": STATE.debug,
             inputs.OPTION: experiment.accept_changes}  # fmt: skip
    arguments += [flag for flag, given in flags.items() if given]
    # in a session of its own, or Ctrl-C would reach each process twice
    child = subprocess.Popen(
        launch_command(arguments, processes=processes, accelerate=accelerate), start_new_session=True
    )
    return _exit_code(run, signals.wait_for(child))


def _exit_code(run: Run, code: int) -> int:
    """What the run says of how it ended, or else what the launcher says."""
    from cuarl.run import read_manifest

    if code < 0:
        note(f"the launcher was ended by signal {-code}; its processes save what they have and end, too")
    last = read_manifest(run.path).attempts[-1:]
    return last[0].exit_code if last and last[0].exit_code is not None else max(code, 1) if code else 0


# --- the run -------------------------------------------------------------------------------------------------------


def _run_there(experiment: Experiment, job: _Job) -> None:
    """The same, trained by Tinker."""
    from cuarl.workflow.tinker import train_there

    _show_plan(job, as_json=experiment.json)

    def make_sink(run: Run, store: Store, record: parts.Recording, reported: int) -> Sink:
        return _sink(experiment, _Places(run, store, record), reported)

    done = train_there(experiment, job.tasks, job.measurement, job.inputs, make_sink)
    _report(job, done.run, done.measuring, as_json=experiment.json)


def _run(experiment: Experiment, job: _Job) -> None:
    from cuarl.train.learner import Learner
    from cuarl.train.processes import join_processes
    from cuarl.train.watch import watch_launcher
    from cuarl.workflow.from_config import learner_config, load_trained

    watch_launcher(os.environ, patience_s=2 * experiment.settings().grace_seconds)
    accelerator = join_processes(job.config.device)
    if not accelerator.is_main_process:
        STATE.quiet, STATE.display = True, "none"
        experiment = replace(experiment, json=False)
    _show_plan(job, as_json=experiment.json)
    learner = Learner(load_trained(experiment.resolved, accelerator), learner_config(job.config), accelerator)
    with _places(experiment, job, accelerator) as places:
        measuring = _train(experiment, job, learner, places)
    if accelerator.is_main_process:
        _report(job, places.run, measuring, as_json=experiment.json)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a run is kept. Only the main process has a store and a record to write to."""

    run: Run
    store: Store | None
    record: parts.Recording | None


@contextmanager
def _places(experiment: Experiment, job: _Job, accelerator: Accelerator) -> Iterator[_Places]:
    """Open, and mark how it ended. The other processes learn from the main one which run it is."""
    from cuarl.run import Run
    from cuarl.train.processes import from_main

    if not accelerator.is_main_process:
        path: Path = from_main(None)
        yield _Places(Run(path), None, None)
        return
    with ExitStack() as stack:
        store = stack.enter_context(parts.open_store(experiment.settings()))
        run = stack.enter_context(experiment.open_run("train", store))
        from_main(run.path)
        inputs.keep(run, job.inputs)
        stack.enter_context(_how_to_go_on(run))
        record = stack.enter_context(parts.recording(store, run, job.config, [*job.tasks, *job.measurement.tasks]))
        yield _Places(run, store, record)


@contextmanager
def _how_to_go_on(run: Run) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; go on with: cuarl train --resume {run.name}")
        raise
    except RolloutError:  # a server or device is gone: what was trained is kept
        note(f"once that is mended, go on with: cuarl train --resume {run.name}")
        raise


def _train(experiment: Experiment, job: _Job, learner: Learner, places: _Places) -> Measuring:
    from cuarl.train.card import About
    from cuarl.train.checkpoint import Checkpoints
    from cuarl.train.loop import Outcome, last_reported
    from cuarl.train.loop import train as train_loop
    from cuarl.train.processes import any_of
    from cuarl.train.shutdown import Shutdown
    from cuarl.workflow.from_config import Measuring, RecordedCheckpoints, loop_config

    config, run, store = job.config, places.run, places.store
    about = About(
        run=run.name, base_model=config.model_name, base_revision=learner.policy.revision, algorithm=config.algorithm,
        tasks=", ".join(config.tasks) or "all", seed=config.seed, config_digest=config.digest,
    )  # fmt: skip
    checkpoints = Checkpoints(run.checkpoints_dir, learner, about, save_total_limit=config.save_total_limit)
    start = checkpoints.restore()
    if store is not None and experiment.resume is not None:
        store.rewind_run(run.run_id, start)
    player = players.in_process(config, learner.policy, temperature=config.eval_temperature, strict=True)
    measuring = Measuring(job.measurement, player, run, store, places.record, json=experiment.json)
    loop = loop_config(config)
    sink = _sink(experiment, places, last_reported(start, checkpoints.pending))
    saver = RecordedCheckpoints(checkpoints, about, learner, run, store)

    shutdown = Shutdown(experiment.settings().grace_seconds, agreed=any_of)
    learner.overdue = lambda: shutdown.left_s == 0
    in_loop = partial(train_loop, pending=checkpoints.pending, shutdown=shutdown)

    async def work() -> Outcome:
        if not config.max_steps_off_policy:
            async with _kept_in_step(experiment, job, learner, places, start) as collect:
                return await in_loop(loop, learner, collect, measuring, sink, saver, start)
        from cuarl.workflow.asynchronous import AsyncPractice

        practice = AsyncPractice(config, job.tasks, run.run_id, learner, places.record, sink)
        async with practice.running():
            return await in_loop(loop, learner, practice, measuring, sink, saver, start, practice.settled)

    try:
        outcome = signals.run(work, shutdown)
    finally:
        sink.close()
    if outcome.interrupted:
        raise KeyboardInterrupt
    return measuring


@asynccontextmanager
async def _kept_in_step(
    experiment: Experiment, job: _Job, learner: Learner, places: _Places, start: int
) -> AsyncIterator[Collect]:
    """What collects, with the server or the second copy that is sampled from, if there is one, brought up to date."""
    config = job.config
    if config.sampler_device is not None:
        from cuarl.workflow.second_copy import SecondCopy

        second = SecondCopy(config, learner)
        yield second.collector(_collector(experiment, job, learner, places, second.player()))
    elif config.model_base_url is None or config.algorithm == "sft":
        yield _collector(experiment, job, learner, places)
    else:
        from cuarl.workflow import endpoint as remote

        served = remote.trained(config, experiment.settings(), learner, places.run.path / "adapters", start)
        async with served.connected():
            yield served.collector(_collector(experiment, job, learner, places, served.player()))


def _collector(
    experiment: Experiment, job: _Job, learner: Learner, places: _Places, player: Player | None = None
) -> Practice | Imitation:
    from cuarl.workflow.from_config import Imitation, Practice

    config = job.config
    if config.algorithm == "sft":
        settings = experiment.settings()
        imitation = Imitation(config, places.store or parts.open_store(settings), settings.runs_dir)
        inputs.check_imitated(experiment, places.run.path, imitation.ids, write=places.store is not None)
        return imitation
    player = player or players.in_process(config, learner.policy, temperature=config.temperature, strict=True)
    return Practice(config, job.tasks, player, places.run.run_id, learner, places.record, json=experiment.json)


def _sink(experiment: Experiment, places: _Places, reported: int) -> Sink:
    from cuarl.monitor.console import ConsoleSink
    from cuarl.monitor.jsonl import JsonLinesSink
    from cuarl.monitor.sinks import FanOut
    from cuarl.store import StoreSink

    run, store = places.run, places.store
    if store is None:
        return FanOut([])
    kept = None if experiment.resume is None else reported
    told: Sink = _JsonSink() if experiment.json else ConsoleSink(note)
    return FanOut(
        [JsonLinesSink(run.metrics_path, run.events_path, resume_step=kept), StoreSink(store, run.run_id), told]
    )


class _JsonSink:
    """Metrics and events on standard output."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        print_json({"event": "metrics", "step": step, **values}, line=True)

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        print_json({"event": kind, **data}, line=True)

    def close(self) -> None:
        """Nothing is held."""


# --- afterwards ----------------------------------------------------------------------------------------------------


def _report(job: _Job, run: Run, measuring: Measuring, *, as_json: bool) -> None:
    """Success before and after, with intervals; where everything is; what to do next."""
    after = measuring.last or _kept(job, run, job.config.max_steps)
    before = None if job.config.skip_baseline else _kept(job, run, 0)
    if as_json:
        done = {"event": "done", "run": run.name, "path": run.path, "before": before and before.overall}
        print_json({**done, "after": after and after.overall}, line=True)
    elif after is not None:
        print_summaries(after.outcomes, {"before": before.outcomes} if before else None)
    closing(_result(before, after), where=run.path, then=f"cuarl eval --compare base {run.name}")


def _kept(job: _Job, run: Run, step: int) -> Evaluation | None:
    return find_results(run.evals_dir, job.measurement.label, step, job.measurement.key)


def _result(before: Evaluation | None, after: Evaluation | None) -> str:
    if after is None:
        return "trained, not evaluated"
    if before is None:
        return headline(after.overall)
    was = f"{percent(before.overall.success_rate)} ({interval(before.overall)})"
    return f"success before {was}, after: {headline(after.overall)}"
