"""Training by this process, and those that were started beside it: the learner, and where its episodes are sampled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.policy.load import in_four_bits
from cuarl.run import Run
from cuarl.train.batch import Batch
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.learner import Learner
from cuarl.train.processes import any_of, from_main, gather_batch, on_another_node, waited_for
from cuarl.train.shutdown import Shutdown
from cuarl.train.watch import naming_lost_peers
from cuarl.types import Sink
from cuarl.workflow import dagger, players
from cuarl.workflow.checkpoints import RecordedCheckpoints
from cuarl.workflow.collector import Collector, InTurn, Processes
from cuarl.workflow.from_config import learner_config, load_trained, model_spec
from cuarl.workflow.job import Job
from cuarl.workflow.source import Source
from cuarl.workflow.trainer import Collecting, Place, Trainer, beside_new, imitation, recorded
from cuarl.workflow.workers import hire

if TYPE_CHECKING:
    from accelerate import Accelerator

    from cuarl.config.schema import ExperimentConfig
    from cuarl.train.loop import Collect, Metrics, Settled
    from cuarl.workflow.asynchronous import Sampling
    from cuarl.workflow.endpoint import Trained
    from cuarl.workflow.players import Player


@contextmanager
def trainer(job: Job, accelerator: Accelerator) -> Iterator[tuple[Place, Trainer]]:
    """The learner of this process, restored, in the run that the main process has opened."""
    config = job.config
    learner = Learner(load_trained(job.experiment.resolved, accelerator), learner_config(config), accelerator)
    with _place(job, accelerator) as place:
        yield place, _trainer(job, place, learner)


@contextmanager
def _place(job: Job, accelerator: Accelerator) -> Iterator[Place]:
    """Open, and mark how it ended. The other processes learn from the main one which run it is.

    Those of other machines were given a copy of what it was started with.
    """
    if not accelerator.is_main_process:
        with naming_lost_peers():
            path: Path = from_main(None)
            given = job.experiment.resume
            yield Place(Run(given if given is not None and on_another_node() else path), None, None)
        return
    with recorded(job, lambda run: from_main(run.path)) as place, naming_lost_peers():
        yield place


def _trainer(job: Job, place: Place, learner: Learner) -> Trainer:
    config, run = job.config, place.run
    spec = model_spec(job.experiment.resolved, config.device)
    about = About(
        run=run.name,
        # an adapter that starts from a fully trained checkpoint belongs on that, not on the model that it was made of
        base_model=spec.model if spec.train == "adapter" else config.model_name,
        base_revision=learner.policy.revision,
        quantization="nf4" if in_four_bits(spec) else "none",
        algorithm=config.algorithm.type,
        tasks=", ".join(config.tasks) or "all",
        seed=config.seed,
        config_digest=config.digest,
    )
    checkpoints = Checkpoints(run.checkpoints_dir, learner, about, save_total_limit=config.save_total_limit)
    start = checkpoints.restore()
    server = _server(job, place, learner)
    shutdown = Shutdown(job.experiment.settings.grace_seconds, agreed=any_of)
    learner.overdue = lambda: shutdown.left_s == 0
    return Trainer(
        learner,
        RecordedCheckpoints(checkpoints, about, learner, run, place.store),
        start,
        checkpoints.pending,
        _evaluated(config, learner, server),
        partial(_collecting, job, place, learner, server),
        shutdown,
    )


@asynccontextmanager
async def _collecting(
    job: Job, place: Place, learner: Learner, server: Trained | None, sink: Sink
) -> AsyncIterator[Collecting]:
    """In turn with training, asynchronously, or from the store."""
    config = job.config
    if config.algorithm.type == "sft":
        with _imitation(job, place, learner) as collect:
            yield Collecting(collect)
        return
    collector = Collector(
        config=config,
        tasks=job.tasks,
        run_id=place.run.run_id,
        record=place.record,
        curriculum=learner.curriculum,
        hints=learner.hints,
        backend=hire.backend(config, job.tasks, job.experiment.settings, job.workers),
    )
    if config.max_steps_off_policy:
        async with _meanwhile(job, place, learner, server, collector, sink) as collecting:
            yield collecting
        return
    async with _source(job, place, learner, server) as source:
        place_of, watcher = Processes.of(learner), job.experiment.watcher
        if config.algorithm.type == "dagger":
            in_turn = InTurn(collector, source, processes=place_of, watcher=watcher, guide=dagger.guide(config))
            beside = beside_new(job, place, learner.policy) if place.store is not None else nullcontext()
            with beside as more:
                told = source.told if server is None else server.told
                yield Collecting(dagger.Dagger(config, in_turn, learner.policy.encode_answer, more), told)
            return
        in_turn = InTurn(collector, source, processes=place_of, watcher=watcher)
        yield Collecting(in_turn, source.told if server is None else server.told)


@asynccontextmanager
async def _meanwhile(
    job: Job, place: Place, learner: Learner, server: Trained | None, collector: Collector, sink: Sink
) -> AsyncIterator[Collecting]:
    """While all processes train, the main one collects for all of them."""
    from cuarl.workflow.asynchronous import Asynchronous, shared

    if not learner.accelerator.is_main_process:
        async with nullcontext() if server is None else _connected(job, place, server):
            yield Collecting(shared(None, learner))
        return
    async with _sampling(job, place, learner, server) as sampling:
        asynchronous = Asynchronous(collector, learner, sampling, sink)
        async with asynchronous.running():
            yield Collecting(shared(asynchronous, learner), _with_servers(asynchronous.settled, server))


def _with_servers(settled: Settled, server: Trained | None) -> Settled:
    """``settled``, and what the servers did meanwhile."""
    if server is None:
        return settled

    async def both() -> Metrics:
        return {**await settled(), **await server.told()}

    return both


@contextmanager
def _imitation(job: Job, place: Place, learner: Learner) -> Iterator[Collect]:
    """The main process reads the episodes, which the others may have no way to, and shares them."""
    with imitation(job, place, learner.policy) if place.store is not None else nullcontext() as read:

        async def shared(step: int, policy_version: int) -> Batch:
            with waited_for():
                mine = await read(step, policy_version) if read is not None else Batch((), {})
            return gather_batch(mine)

        yield shared


@asynccontextmanager
async def _source(job: Job, place: Place, learner: Learner, server: Trained | None) -> AsyncIterator[Source]:
    """What is sampled from: the policy that is trained, a copy of it on another device, or a server."""
    config = job.config
    if config.local_policy.sampler_device is not None:
        from cuarl.workflow.second_copy import second_copy

        yield second_copy(config, learner)
    elif server is not None:
        async with _connected(job, place, server):
            yield server.source()
    else:
        yield Source(players.in_process(config, learner.policy, temperature=config.temperature, strict=True))


@asynccontextmanager
async def _sampling(job: Job, place: Place, learner: Learner, server: Trained | None) -> AsyncIterator[Sampling]:
    """What is sampled from beside training: a copy of the policy, or a server."""
    from cuarl.workflow import asynchronous

    if server is None:
        yield asynchronous.own_copy(job.config, learner)
        return
    async with _connected(job, place, server):
        yield await asynchronous.served(server)


def _server(job: Job, place: Place, learner: Learner) -> Trained | None:
    """The server that is sampled from, not yet asked anything; None where the policy is sampled in this process."""
    if job.config.model_base_url is None:
        return None
    from cuarl.workflow import endpoint

    experiment, folder = job.experiment, place.run.path / "adapters"
    return endpoint.trained(job.config, experiment.settings, learner, folder, experiment.watcher.note)


def _evaluated(config: ExperimentConfig, learner: Learner, server: Trained | None) -> Player:
    """Who is evaluated: the policy, sampled as in training where one process trains."""
    if server is not None and server.rescoring is None and learner.accelerator.num_processes == 1:
        return server.evaluating()
    return players.in_process(config, learner.policy, temperature=config.eval_temperature, strict=True)


@asynccontextmanager
async def _connected(job: Job, place: Place, server: Trained) -> AsyncIterator[None]:
    """Inside, the server is there; at the end it forgets the run's adapter."""
    async with _started(job, place, server.learner), server.connected():
        yield


@asynccontextmanager
async def _started(job: Job, place: Place, learner: Learner) -> AsyncIterator[None]:
    """Inside, a server that is started for the run answers, and gives what training needs; others are there already."""
    config, experiment = job.config, job.experiment
    if config.policy.type != "vllm":
        yield
        return
    from cuarl.policy.load import resolve
    from cuarl.workflow import endpoint, own_server
    from cuarl.workflow.from_config import model_spec

    async with AsyncExitStack() as stack:
        if learner.accelerator.is_main_process:
            spec, note = model_spec(experiment.resolved, config.device), experiment.watcher.note
            log = place.run.path / "logs" / "vllm.log"
            await stack.enter_async_context(own_server.running(config, resolve(spec)[0], log, note))
            await endpoint.checked(config, experiment.settings, spec, note)
        learner.accelerator.wait_for_everyone()
        yield
