"""Collects what training learns from: episodes of training tasks, in groups, by a schedule, from any sampler.

``Collector`` is what all collecting has in common: which tasks come next, the episodes of them, where they run and are
recorded. ``InTurn`` collects a step's groups before the step (``asynchronous.Asynchronous`` is the other schedule).
What differs by where the policy is sampled from stands in a ``Source``: in this process, a copy of it on a device of
its own, a server, or Tinker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec, Guidance, plan
from cuarl.tasks.task import Task
from cuarl.train.batch import Batch, teaches
from cuarl.train.processes import gather_batch, waited_for
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot
from cuarl.workflow import episodes as parts
from cuarl.workflow import oracle_help
from cuarl.workflow.from_config import shaping
from cuarl.workflow.players import Player
from cuarl.workflow.source import Source
from cuarl.workflow.watcher import SILENT, Watcher

if TYPE_CHECKING:
    from cuarl.train.curriculum import Curriculum
    from cuarl.train.hints import Hints
    from cuarl.train.learner import Learner

T = TypeVar("T")

_FURTHER = 10_000_000
"""Where the groups of a further collection are numbered from, clear of those of all steps."""


def stretch(items: Sequence[T], seed: int | str, step: int, count: int) -> Iterator[T]:
    """What step ``step`` takes, ``count`` a step, from an endless row of shuffled copies of ``items``."""
    for position in range((step - 1) * count, step * count):
        epoch, at = divmod(position, len(items))
        yield random.Random(f"{seed}/epoch/{epoch}").sample(items, len(items))[at]


# --- what all collecting has in common -----------------------------------------------------------------------------


@dataclass(kw_only=True)
class Collector:
    """The tasks of training, their episodes, and where these run and are recorded."""

    config: ExperimentConfig
    tasks: Sequence[Task]
    run_id: str
    backend: Backend
    record: parts.Recording | None = None
    """None in a process that leaves recording to the main one."""
    curriculum: Curriculum | None = None
    hints: Hints | None = None

    def __post_init__(self) -> None:
        self.failures = FailureWindow(max_share=self.config.max_failed_share)
        self._by_id = {task.id: task for task in self.tasks}

    @property
    def at_once(self) -> int:
        """How many episodes run at the same time: as many as are wanted, and as the environments bear."""
        return self.backend.concurrent(self.config.max_concurrent_rollouts)

    def setup(self, player: Player) -> Setup:
        """Everything an episode needs besides its spec."""
        return parts.setup(self.config, self.backend, player, self.record)

    def by_curriculum(self, count: int) -> list[Task] | None:
        """The next tasks as the curriculum has them; None without one."""
        if self.curriculum is None:
            return None
        return [self._by_id[i] for i in self.curriculum.choose(sorted(self._by_id), count)]

    def specs(
        self, tasks: Sequence[Task], *, name: str, step: int, first_group: int, guidance: Guidance | None = None
    ) -> Sequence[EpisodeSpec]:
        """A group of episodes of each of ``tasks``; ``name`` tells them from all others of the run."""
        return plan(
            tasks,
            group_size=self.config.group_size,
            run_seed=self.config.seed,
            prefix=f"{self.run_id}.{name}",
            run_id=self.run_id,
            step=step,
            purpose="train",
            first_group=first_group,
            guidance=guidance,
        )

    def task(self, task_id: str) -> Task:
        """One of the tasks."""
        return self._by_id[task_id]

    def may_solve(self, task_id: str) -> bool:
        """Whether an oracle may know how a task is done."""
        return self.backend.may_solve(self._by_id[task_id])


# --- in turn with training -----------------------------------------------------------------------------------------


class Processes(NamedTuple):
    """Which of the processes that train together this is."""

    rank: int = 0
    world: int = 1

    @classmethod
    def of(cls, learner: Learner) -> Processes:
        """Those of a learner."""
        return cls(learner.accelerator.process_index, learner.accelerator.num_processes)


ALONE = Processes()


Guide = Callable[[int], Guidance | None]
"""What an oracle does in the episodes of a step; None: the policy is on its own."""


def _alone(step: int) -> None:
    return None


class InTurn:
    """Collects a step's groups before the step, with the policy as it is; each process runs its share of them."""

    def __init__(
        self,
        collector: Collector,
        source: Source,
        *,
        processes: Processes = ALONE,
        watcher: Watcher = SILENT,
        guide: Guide = _alone,
    ) -> None:
        self._collector, self._source, self._watcher = collector, source, watcher
        self._processes, self._guide = processes, guide
        self._setup = collector.setup(source.player)
        self._pictures: dict[str, Screenshot] = {}

    async def __call__(self, step: int, policy_version: int) -> Batch:
        """A ``train.loop.Collect``."""
        try:
            await self._source.refresh(policy_version)
            batch = await self._step(step)
        finally:
            await self._source.rest()
        led = self._source.accept(tuple(batch.led.values())) if batch.led else ()
        return replace(batch, groups=self._source.accept(batch.groups), led=dict(zip(batch.led, led, strict=True)))

    async def _step(self, step: int) -> Batch:
        """Once, and again in place of groups that teach nothing (DAPO's dynamic sampling)."""
        config, rounds = self._collector.config, self._collector.config.learning.dynamic_sampling_rounds
        batch = await self._collect(step, 0, config.groups_per_batch)
        if not rounds:
            return batch
        batch = self._split(batch)
        for number in range(1, rounds + 1):
            missing = config.groups_per_batch - len(batch.learnt)
            if not missing:
                break
            further = self._split(await self._collect(step, number, missing))
            batch = Batch(
                batch.groups + further.groups,
                {**batch.pictures, **further.pictures},
                batch.discarded + further.discarded,
                led={**batch.led, **further.led},
                demonstrated={**batch.demonstrated, **further.demonstrated},
            )
        return batch

    def _split(self, batch: Batch) -> Batch:
        """``batch`` with the groups that teach nothing set apart."""
        how = shaping(self._collector.config)
        kept = tuple(group for group in batch.groups if teaches(group, how))
        return replace(batch, groups=kept, discarded=tuple(group for group in batch.groups if group not in kept))

    def _next_tasks(self, step: int, number: int, count: int) -> list[Task]:
        found = self._collector.by_curriculum(count)
        if found is not None:
            return found
        config = self._collector.config
        seed = f"{config.seed}/again/{number}" if number else config.seed
        return list(stretch(self._collector.tasks, seed, step, config.groups_per_batch))[:count]

    async def _collect(self, step: int, number: int, count: int) -> Batch:
        """``count`` groups; ``number`` says how often the step has collected before."""
        collector, config = self._collector, self._collector.config
        again = f".again{number}" if number else ""
        specs = collector.specs(
            self._next_tasks(step, number, count),
            name=f"{step:04d}{again}",
            step=step,
            first_group=number * _FURTHER + (step - 1) * config.groups_per_batch,
            guidance=self._guide(step),
        )
        batch = await self._run(specs, f"step {step} of {config.max_steps}")
        helping = oracle_help.specs(specs, batch, config.learning, collector.hints, collector.may_solve)
        if not helping:
            return batch
        return oracle_help.added(batch, await self._run(helping, f"step {step}, with an oracle's help"))

    async def _run(self, specs: Sequence[EpisodeSpec], name: str) -> Batch:
        """The groups of ``specs``, each process its share of them; ``name`` is what people see of it."""
        collector, config, (rank, world) = self._collector, self._collector.config, self._processes
        number = {group_id: i for i, group_id in enumerate(dict.fromkeys(spec.group_id for spec in specs))}
        mine = [spec for spec in specs if number[spec.group_id] % world == rank]
        self._pictures = {}
        watched = self._watcher.progress(name, len(mine), part=True)
        with waited_for(), watched as progress:
            async with parts.serving(collector.backend):
                groups = await parts.collected(
                    mine,
                    self._setup,
                    collector.backend,
                    config,
                    failures=collector.failures,
                    save=self._take,
                    on_cancel=collector.record.cut if collector.record else None,
                    progress=progress,
                )
        batch = Batch(tuple(groups), self._pictures)
        batch = gather_batch(batch) if world > 1 else batch
        await self._record_others(batch)
        return batch

    async def _take(self, episode: Episode) -> None:
        self._pictures |= episode.pictures
        if self._collector.record is not None:
            await self._collector.record.save(episode)

    async def _record_others(self, batch: Batch) -> None:
        """The main process records for all."""
        record, (rank, world) = self._collector.record, self._processes
        if record is None:
            return
        for i, group in enumerate(batch.groups):
            if i % world != rank:
                for trajectory in group.trajectories:
                    await record.save(Episode(trajectory, _shown(trajectory, batch.pictures)))


def _shown(trajectory: Trajectory, pictures: Mapping[str, Screenshot]) -> dict[str, Screenshot]:
    refs = [turn.screenshot for turn in trajectory.turns] + [
        ref for turn in trajectory.turns if turn.sampled for ref in turn.sampled.images
    ]
    refs += [trajectory.final_screenshot] if trajectory.final_screenshot else []
    return {ref.digest: pictures[ref.digest] for ref in refs}
