"""Who learns, and where a training run is kept: what ``local_trainer`` and ``tinker`` make, and ``training`` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from cuarl.errors import PeerLost, RolloutError
from cuarl.workflow import episodes as parts
from cuarl.workflow import inputs
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.job import Job
from cuarl.workflow.players import Player

if TYPE_CHECKING:
    from cuarl.policy.prompt import Renderer
    from cuarl.run import Run
    from cuarl.store import Store
    from cuarl.train.batch import Batch
    from cuarl.train.loop import Collect, Metrics, Saver, Settled, Trainable
    from cuarl.train.shutdown import Shutdown
    from cuarl.types import Sink
    from cuarl.workflow.dagger import Beside
    from cuarl.workflow.imitation import Imitation
    from cuarl.workflow.rehearsal import Rehearsal


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
        record = stack.enter_context(parts.recording(store, run, job.config, job.all_tasks))
        yield Place(run, store, record)


@contextmanager
def _how_to_go_on(experiment: Experiment, run: Run) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        experiment.watcher.note(f"resume with: cuarl train --resume {run.name}")
        raise
    except (RolloutError, PeerLost):  # a server, device or machine is gone: what was trained is kept
        experiment.watcher.note(f"once that is fixed, resume with: cuarl train --resume {run.name}")
        raise


# --- who learns ----------------------------------------------------------------------------------------------------


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


@contextmanager
def imitation(job: Job, place: Place, renderer: Renderer) -> Iterator[Collect]:
    """The episodes that are imitated, compared with those that the run was started with, and what is rehearsed.

    ``renderer`` is that of the policy.
    """
    with _sources(job, place, renderer) as (found, rehearsal):

        async def collect(step: int, policy_version: int) -> Batch:
            batch = await found(step, policy_version)
            return batch if rehearsal is None else await rehearsal.added(batch, step)

        yield collect


@contextmanager
def beside_new(job: Job, place: Place, renderer: Renderer) -> Iterator[Beside]:
    """What dagger adds to the new episodes of each step; a resumed run has its own earlier ones, too."""
    from cuarl.workflow.dagger import Aggregate, Beside, collected_before

    with _sources(job, place, renderer) as (found, rehearsal):
        assert place.store is not None, "_sources has seen to it"
        mine = collected_before(place.store, place.run.run_id)
        yield Beside(job.config, Aggregate(job.config, found, renderer.encode_answer, mine), rehearsal)


@contextmanager
def _sources(job: Job, place: Place, renderer: Renderer) -> Iterator[tuple[Imitation, Rehearsal | None]]:
    from cuarl.workflow.imitation import Imitation
    from cuarl.workflow.rehearsal import rehearsing

    if place.store is None:
        raise ValueError("only the main process reads episodes")
    begun = datetime.fromisoformat(place.run.manifest.created_at).timestamp()
    found = Imitation(
        job.config,
        place.store,
        job.experiment.settings.runs_dir,
        encode=renderer.encode_answer,
        judged_until=begun,
    )
    inputs.check_imitated(job.experiment, place.run.path, found.ids)
    with rehearsing(job.config, renderer) as rehearsal:
        yield found, rehearsal
