"""Training by the Tinker service, put together from a configuration."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import CheckpointError, PrerequisiteError
from cuarl.policy.load import load_renderer
from cuarl.policy.remote.tinker import TinkerSampler, connect, mapped
from cuarl.policy.spec import ModelSpec
from cuarl.rollout.request_gate import RequestGate
from cuarl.run.checkpoints import POINTER
from cuarl.store import PolicyRecord
from cuarl.train.shutdown import Shutdown
from cuarl.train.tinker import TinkerConfig, TinkerLearner
from cuarl.train.tinker_checkpoints import SavedState, TinkerCheckpoints, saved_state
from cuarl.types import Sink
from cuarl.workflow import players
from cuarl.workflow.asynchronous import Asynchronous, Sampling
from cuarl.workflow.collector import Collector, InTurn
from cuarl.workflow.from_config import batch_config
from cuarl.workflow.job import Job
from cuarl.workflow.players import Player
from cuarl.workflow.source import Source
from cuarl.workflow.targets import SCHEME
from cuarl.workflow.trainer import Collecting, Place, Trainer, imitation, recorded
from cuarl.workflow.workers import hire

if TYPE_CHECKING:
    from cuarl.policy.prompt import Renderer


@contextmanager
def trainer(job: Job) -> Iterator[tuple[Place, Trainer]]:
    """A LoRA adapter on the service, from the newest checkpoint of the run if it has one.

    Raises MissingSecret without a key, PrerequisiteError if the service refuses.
    """
    config, settings = job.config, job.experiment.settings
    renderer = load_renderer(ModelSpec(model=config.model_name, trust_remote_code=config.trust_remote_code))
    key = settings.require("tinker_api_key")
    with recorded(job) as place, service(key, settings.tinker_base_url) as connected:
        yield place, _trainer(job, place, connected, renderer)


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


def _trainer(job: Job, place: Place, connected: Any, renderer: Renderer) -> Trainer:
    config, run = job.config, place.run
    saved = saved_state(run.checkpoints_dir)
    start, pending = (saved.step, saved.pending) if saved else (0, None)
    learner = _learner(connected, config, renderer, saved)
    saver = TinkerCheckpoints(
        run.checkpoints_dir, learner, run=run.name, on_commit=partial(_noted, place, config), start=start
    )
    return Trainer(
        learner,
        saver,
        start,
        pending,
        _player(config, learner.sampler, config.eval_temperature),
        partial(_collecting, job, place, learner, renderer),
        Shutdown(job.experiment.settings.grace_seconds),
    )


@asynccontextmanager
async def _collecting(
    job: Job, place: Place, learner: TinkerLearner, renderer: Renderer, sink: Sink
) -> AsyncIterator[Collecting]:
    config = job.config
    if config.algorithm.type == "sft":
        with imitation(job, place, renderer) as collect:
            yield Collecting(collect)
        return
    backend = hire.backend(config, job.tasks, job.experiment.settings, job.workers)
    collector = Collector(config=config, tasks=job.tasks, run_id=place.run.run_id, backend=backend, record=place.record)
    if config.max_steps_off_policy:
        asynchronous = Asynchronous(collector, learner, _beside(learner), sink)
        async with asynchronous.running():
            yield Collecting(asynchronous, asynchronous.settled)
        return
    # the learner itself has its sampler follow each update
    source = Source(_player(config, learner.sampler, config.temperature))
    yield Collecting(InTurn(collector, source, watcher=job.experiment.watcher))


def _beside(learner: TinkerLearner) -> Sampling:
    """A sampler of its own, whose weights change at a step's beginning; the learner's follows each update."""
    sampler = learner.sampler.another()

    async def swap(version: int) -> None:
        sampler.use(learner.sampler.client, version)

    return Sampling(sampler.name, RequestGate(), sampler, swap)


def _learner(service: Any, config: ExperimentConfig, renderer: Renderer, saved: SavedState | None) -> TinkerLearner:
    """A training client, new or from a saved state, and a sampler of its weights."""
    given = config.load_checkpoint_path
    start = starting_state(given) if given is not None else None
    with mapped(PrerequisiteError, f"creating a training client for {config.model_name}"):
        if saved is not None:
            client = service.create_training_client_from_state_with_optimizer(saved.path).result()
        elif start is not None:
            client = service.create_training_client_from_state(start).result()
        else:
            client = service.create_lora_training_client(config.model_name, **lora_options(config)).result()
        penalised = config.kl_penalty_coef and config.learning.kl_in == "reward"
        reference = _reference(service, config, start) if penalised else None
    sampler = TinkerSampler(None, renderer, name=Path(config.model_name).name)
    learner = TinkerLearner(client, sampler, renderer, tinker_config(config), reference)
    learner.restored_stream = saved.stream if saved else None
    learner.refresh(saved.step if saved else 0)
    return learner


def _reference(service: Any, config: ExperimentConfig, start: str | None) -> Any:
    """A ``SamplingClient`` of what a divergence is taken from: the base, or the weights that the run began with."""
    if config.learning.kl_reference == "start" and start is not None:
        return service.create_sampling_client(model_path=start).result()
    return service.create_sampling_client(base_model=config.model_name).result()


def starting_state(given: str) -> str:
    """The path at Tinker of the weights that training starts from: given as such, or by a checkpoint's folder.

    Raises CheckpointError for what is neither.
    """
    if not given.startswith(SCHEME):
        pointer = Path(given) / POINTER
        try:
            return str(json.loads(pointer.read_text(encoding="utf-8"))["state"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                "there is no checkpoint of training at Tinker here",
                where=str(pointer),
                hint="--load-checkpoint-path runs/NAME/checkpoints/latest, or a path tinker://…/weights/…",
            ) from error
    if "/weights/" not in given:
        raise CheckpointError(
            "training starts from weights that were saved for training",
            where=given,
            hint="take tinker://…/weights/… of the same checkpoint",
        )
    return given


def lora_options(config: ExperimentConfig) -> dict[str, Any]:
    """What the service is told about a new adapter."""
    return {
        "rank": config.lora_rank,
        "seed": config.seed,
        "train_attn": config.lora_target_option != "mlp",
        "train_mlp": config.lora_target_option != "attention",
        "train_unembed": config.lora_target_option == "all-linear",
    }


def tinker_config(config: ExperimentConfig) -> TinkerConfig:
    """How the service has to learn."""
    return TinkerConfig.model_validate(
        {
            "algorithm": config.algorithm.type,
            "loss": config.tinker_trainer.loss,
            "batch": batch_config(config),
            "clip_low": config.learning.clip_low,
            "clip_high": config.learning.clip_high,
            "learning_rate": config.effective_learning_rate,
            "adam_beta1": config.adam_beta1,
            "adam_beta2": config.adam_beta2,
            "adam_eps": config.adam_eps,
            "weight_decay": config.weight_decay,
            "max_grad_norm": config.max_grad_norm,
            "compute_post_kl": config.compute_post_kl,
        }
    )


def _player(config: ExperimentConfig, sampler: TinkerSampler, temperature: float) -> Player:
    make = players.model_agents(config, sampler, config.model_name, temperature=temperature, strict=True)
    return Player(sampler.name, make)


def _noted(place: Place, config: ExperimentConfig, step: int, folder: Path) -> None:
    """A step counts only once the store has all up to it."""
    store, run = place.store, place.run
    assert store is not None, "one process trains at Tinker"
    store.drain()
    store.save_policy(
        PolicyRecord(
            name=Path(config.model_name).name,
            version=step,
            run_id=run.run_id,
            step=step,
            base_model=config.model_name,
            path=str(folder),
        )
    )
    run.count({"steps": step, "episodes": step * config.groups_per_batch * config.group_size})
