"""Training by the Tinker service, put together from a configuration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import PrerequisiteError
from cuarl.policy.load import load_renderer
from cuarl.policy.spec import ModelSpec
from cuarl.policy.tinker import TinkerSampler, connect, mapped
from cuarl.store import PolicyRecord, Store
from cuarl.tasks.task import Task
from cuarl.train.batch import Batch
from cuarl.train.loop import last_reported
from cuarl.train.loop import train as train_loop
from cuarl.train.shutdown import Shutdown
from cuarl.train.tinker import TinkerCheckpoints, TinkerConfig, TinkerLearner, saved_state
from cuarl.workflow import episodes as parts
from cuarl.workflow import inputs, players, signals
from cuarl.workflow.evaluation import Measurement
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.from_config import Imitation, Measuring, Practice, learner_config, loop_config
from cuarl.workflow.inputs import Inputs
from cuarl.workflow.players import Player

if TYPE_CHECKING:
    from cuarl.policy.render import Renderer
    from cuarl.run import Run
    from cuarl.types import Sink

MakeSink = Callable[["Run", Store, parts.Recording, int], "Sink"]
"""Where metrics go; the last argument is the newest step whose metrics stand already."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A training run that is over."""

    run: Run
    measuring: Measuring


def train_there(
    experiment: Experiment, tasks: Sequence[Task], measurement: Measurement, given: Inputs, make_sink: MakeSink
) -> Finished:
    """Train a LoRA adapter on the service, from the newest checkpoint of the run if it has one.

    Raises MissingSecret without a key, PrerequisiteError if the service refuses, TrainError if it fails in a step.
    """
    config, settings = experiment.config, experiment.settings()
    renderer = load_renderer(ModelSpec(model=config.model_name, trust_remote_code=config.trust_remote_code))
    key = settings.require("tinker_api_key")
    with (
        parts.open_store(settings) as store,
        experiment.open_run("train", store) as run,
        parts.recording(store, run, config, [*tasks, *measurement.tasks]) as record,
        service(key, settings.tinker_base_url) as connected,
    ):
        inputs.keep(run, given)
        saved = saved_state(run.checkpoints_dir)
        start, pending = (saved.step, saved.pending) if saved else (0, None)
        if experiment.resume is not None:
            store.rewind_run(run.run_id, start)
        learner = _learner(connected, config, renderer, saved.path if saved else None, start)
        practised = _player(config, learner.sampler, config.temperature)
        measured = _player(config, learner.sampler, config.eval_temperature)
        measuring = Measuring(measurement, measured, run, store, record, json=experiment.json)
        loop = loop_config(config)
        checkpoints = TinkerCheckpoints(
            run.checkpoints_dir, learner, run=run.name, on_commit=partial(_noted, store, run, config), start=start
        )
        collecting: Callable[[int, int], Awaitable[Batch]]
        if config.algorithm == "sft":
            imitation = Imitation(config, store, settings.runs_dir)
            inputs.check_imitated(experiment, run.path, imitation.ids, write=True)
            collecting = imitation
        else:
            collecting = Practice(config, tasks, practised, run.run_id, None, record, json=experiment.json)
        sink = make_sink(run, store, record, last_reported(start, pending))
        shutdown = Shutdown(settings.grace_seconds)
        try:
            work = partial(train_loop, loop, learner, collecting, measuring, sink, checkpoints, start)
            outcome = signals.run(partial(work, pending=pending, shutdown=shutdown), shutdown)
        finally:
            sink.close()
        if outcome.interrupted:
            raise KeyboardInterrupt
    return Finished(run, measuring)


@contextmanager
def service(key: str, url: str | None) -> Iterator[Any]:
    """A connection that tells the service how it ended."""
    connected, status = connect(key, url), "errored"
    try:
        yield connected
        status = "success"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        with mapped(PrerequisiteError, "closing the session"):
            connected.close(status).result()


def _learner(service: Any, config: ExperimentConfig, renderer: Renderer, state: str | None, step: int) -> TinkerLearner:
    """A training client, new or from a saved state, and a sampler of its weights."""
    with mapped(PrerequisiteError, f"creating a training client for {config.model_name}"):
        if state is not None:
            client = service.create_training_client_from_state_with_optimizer(state).result()
        else:
            client = service.create_lora_training_client(config.model_name, **lora_options(config)).result()
    sampler = TinkerSampler(None, renderer, name=Path(config.model_name).name)
    learner = TinkerLearner(client, sampler, renderer, tinker_config(config))
    learner.refresh(step)
    return learner


def lora_options(config: ExperimentConfig) -> dict[str, Any]:
    """What the service is told about a new adapter."""
    return {
        "rank": config.lora_rank, "seed": config.seed, "train_attn": config.lora_target_option != "mlp",
        "train_mlp": config.lora_target_option != "attention", "train_unembed": config.lora_target_option == "all-linear",
    }  # fmt: skip


def tinker_config(config: ExperimentConfig) -> TinkerConfig:
    """How the service has to learn."""
    return TinkerConfig.model_validate({
        "algorithm": config.algorithm, "loss": config.tinker_loss, "batch": learner_config(config).batch, "clip_low": config.clip_low,
        "clip_high": config.clip_high, "learning_rate": config.effective_learning_rate, "adam_beta1": config.adam_beta1,
        "adam_beta2": config.adam_beta2, "adam_eps": config.adam_eps, "weight_decay": config.weight_decay,
        "max_grad_norm": config.max_grad_norm,
    })  # fmt: skip


def _player(config: ExperimentConfig, sampler: TinkerSampler, temperature: float) -> Player:
    make = players.model_agents(config, sampler, config.model_name, temperature=temperature, strict=True)
    return Player(sampler.name, make)


def _noted(store: Store, run: Run, config: ExperimentConfig, step: int, folder: Path) -> None:
    """A step counts only once the store has all up to it."""
    store.drain()
    store.save_policy(
        PolicyRecord(
            name=Path(config.model_name).name, version=step, run_id=run.run_id, step=step, base_model=config.model_name,
            path=str(folder),
        )
    )  # fmt: skip
    run.count({"steps": step, "episodes": step * config.groups_per_batch * config.group_size})
