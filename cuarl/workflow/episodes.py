"""From a configuration to running episodes: tasks, environments, limits, and where the record goes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import anyio

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.gym.options import Options as GymOptions
from cuarl.rollout import reward
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.pool import Progress, Save, collect
from cuarl.rollout.setup import UNOBSERVED, Episode, Setup
from cuarl.rollout.spec import EpisodeSpec, Limits
from cuarl.tasks.check import verdict
from cuarl.tasks.select import Filters
from cuarl.tasks.source import Selection, load
from cuarl.tasks.suites import shipped_folder
from cuarl.tasks.task import Task
from cuarl.trajectory import Group, Trajectory
from cuarl.workflow import environments
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.judged import Judged
from cuarl.workflow.players import Player
from cuarl.workflow.spread import Spread
from cuarl.workflow.watcher import SILENT, Note

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.settings import Settings
    from cuarl.store import Store
    from cuarl.workflow.live import Live


def select_tasks(
    config: ExperimentConfig, settings: Settings, role: Literal["train", "eval"], note: Note = SILENT.note
) -> Selection:
    """The tasks to train or to evaluate on; what a person should know about the selection goes to ``note``.

    To evaluate, ``eval_tasks`` are taken, or the evaluation tasks that the selectors of ``tasks`` pick.
    """
    if isinstance(config.env, GymOptions):
        from cuarl.workflow import gym

        return gym.select(config.env, config, settings, role)
    from cuarl.workflow import foreign

    made = foreign.select(config, settings, role)
    if made is not None:
        return made
    selectors = config.eval_tasks or config.tasks if role == "eval" else config.tasks
    filters = Filters(
        categories=config.category,
        difficulties=config.difficulty,
        splits=config.split,
        limit=config.limit,
        seed=config.seed if config.limit else None,
    )
    folders = [shipped_folder(), *([settings.tasks_dir] if settings.tasks_dir else [])]
    selection = load(selectors, filters, stdin=sys.stdin, role=role, folders=folders)
    for text in selection.notes:
        note(text)
    tasks = environments.fitting(config, selection.tasks, note)
    if told := cut_short(tasks, config.max_turns):
        note(told)
    return replace(selection, tasks=tasks)


def cut_short(tasks: Sequence[Task], max_turns: int) -> str:
    """Says how many of ``tasks`` allow more than ``max_turns``, where it is a tenth of them at least; else nothing."""
    longer = [task.max_steps for task in tasks if task.max_steps > max_turns]
    if 10 * len(longer) < max(1, len(tasks)):
        return ""
    count = f"{len(longer)} of {len(tasks)} tasks"
    return f"{count} allow more than {max_turns} turns, and end there: --max-turns {max(longer)}"


def tasks_of(experiment: Experiment, role: Literal["train", "eval"]) -> Sequence[Task]:
    """The tasks that an experiment was given, or else those that its configuration selects."""
    given = experiment.tasks if role == "train" else experiment.eval_tasks
    if given is not None:
        return given
    return select_tasks(experiment.config, experiment.settings, role, experiment.watcher.note).tasks


def limits(config: ExperimentConfig) -> Limits:
    """When an episode ends."""
    return Limits(
        max_turns=config.max_turns, deadline_s=config.max_task_time_seconds, turn_s=config.max_turn_time_seconds
    )


def setup(config: ExperimentConfig, backend: Backend, player: Player, record: Recording | None = None) -> Setup:
    """Everything an episode needs besides its spec; ``record`` follows it while it runs.

    Of a person who is waited for nobody says that they go round in circles.
    """
    folder = record.folder if record else None
    return Setup(
        make_env=backend.make_env,
        make_agent=player.make_agent,
        join=player.join if backend.in_step else nullcontext,
        begin=player.begin,
        judge=partial(verdict, side_effects=config.side_effects),
        opine=backend.opine if isinstance(backend, Judged) else None,
        reward=reward.get(config.reward),
        limits=replace(limits(config), loop_threshold=sys.maxsize) if player.attended else limits(config),
        backend=config.env.type,
        observer=record.live if record else UNOBSERVED,
        elsewhere=backend.play(player.make_agent, folder) if isinstance(backend, Spread) else None,
        clock=player.clock,
        pausable=player.pausable,
    )


async def collected(
    specs: Sequence[EpisodeSpec],
    setup: Setup,
    backend: Backend,
    config: ExperimentConfig,
    *,
    save: Save,
    failures: FailureWindow | None = None,
    on_cancel: Callable[[Episode], None] | None = None,
    progress: Progress | None = None,
    most: int | None = None,
) -> list[Group]:
    """``rollout.pool.collect``, with as many episodes at the same time as are wanted and as the backend bears.

    ``most`` of them, where the configuration has nothing to say.
    """
    return await collect(
        specs,
        setup,
        max_concurrent=backend.concurrent(config.max_concurrent_rollouts if most is None else most),
        failures=failures or FailureWindow(max_share=config.max_failed_share),
        save=save,
        progress=progress,
        on_cancel=on_cancel,
    )


def open_store(settings: Settings) -> Store:
    """The store that the settings name. Raises DatabaseBehind if it has to be migrated first."""
    from cuarl.store import Store

    return Store.open(settings.db_url, settings.blobs_url, runs_dir=settings.runs_dir)


@asynccontextmanager
async def serving(backend: Backend) -> AsyncIterator[None]:
    """Inside, environments can be made; what they share is released even when cancelled."""
    try:
        await backend.start()
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await backend.close()


@asynccontextmanager
async def playing(player: Player, backend: Backend) -> AsyncIterator[None]:
    """Inside, the player and the environments' backend are ready; both are released even when cancelled."""
    async with serving(backend), player.around():
        try:
            await player.start()
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await player.close()


class Recording:
    """Takes the episodes of a run into the store, those that were cut short included."""

    def __init__(self, store: Store, live: Live) -> None:
        self._store, self.live = store, live
        self._cut: list[Episode] = []
        self.told: list[Callable[[Trajectory], None]] = []
        """Are told each episode that is queued."""

    @property
    def folder(self) -> str | None:
        """Where screenshots go, if that is on this machine."""
        return self._store.blobs.root if self._store.blobs.is_local else None

    async def save(self, episode: Episode) -> None:
        """Queue a finished episode."""
        await self._store.submit(episode.trajectory, episode.pictures)
        for told in self.told:
            told(episode.trajectory)

    def cut(self, episode: Episode) -> None:
        """Note an episode that was cancelled; it is stored when the rest is torn down."""
        self._cut.append(episode)

    def finish(self) -> None:
        """Store what is left; nothing is under way any more."""
        self.live.close()
        for episode in self._cut:
            self._store.enqueue(episode.trajectory, episode.pictures)
        self._store.drain()


@contextmanager
def recording(store: Store, run: Run, config: ExperimentConfig, tasks: Sequence[Task]) -> Iterator[Recording]:
    """Record a run, its tasks, the episodes that the caller saves, and how it ended."""
    from cuarl.workflow.ending import in_store
    from cuarl.workflow.live import Live

    steps = config.max_steps if run.manifest.kind == "train" else None
    taken = Recording(
        store, Live(store, run.run_id, backend=config.env.type, max_turns=config.max_turns, total_steps=steps)
    )
    with in_store(store, run, config, taken.finish), taken.live:
        store.save_tasks(list({task.id: task for task in tasks}.values()))
        yield taken
