"""Asynchronous training: the parts of ``rollout.stream`` put together from a configuration.

What is sampled from is a copy of the policy in this process, or a server that is given each new adapter.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from cuarl.policy.sampler import Sampler
from cuarl.policy.sampling.gated import GatedSampler
from cuarl.policy.sampling.sampler_copy import copy_weights, sampler_copy
from cuarl.rollout.pause import PauseGate, RecallingSampler
from cuarl.rollout.request_gate import RequestGate
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.rollout.stream import Stream, StreamConfig, Ticket
from cuarl.train.batch import Batch
from cuarl.train.gradients import reproducible
from cuarl.train.learner import CheckpointedStream, Learner
from cuarl.train.processes import gather_batch, waited_for
from cuarl.types import Sink
from cuarl.workflow import episodes as parts
from cuarl.workflow import players
from cuarl.workflow.collector import Collector, stretch
from cuarl.workflow.players import Player

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig
    from cuarl.train.loop import Collect
    from cuarl.workflow.endpoint import Trained


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Sampling:
    """What is sampled from while something else is trained."""

    name: str
    gate: PauseGate
    sampler: Sampler
    """Its batches, or each request to it, go through ``gate``."""
    swap: Callable[[int], Awaitable[None]]
    """Gives it the learner's weights, under this version."""
    join: Callable[[], AbstractContextManager[object]] = nullcontext
    halt: Callable[[], None] = _nothing
    """Nobody waits for answers any longer."""
    within: Callable[[], AbstractContextManager[object]] = nullcontext
    """Inside, it is sampled from."""


def own_copy(config: ExperimentConfig, learner: Learner) -> Sampling:
    """A copy of the policy, in this process. ``learner`` must have been restored, if there is something to restore."""
    gate, policy = PauseGate(), learner.policy
    copy = sampler_copy(policy, config.local_policy.sampler_device)
    copy.halted = bool  # a signal lets it go on for as long as what is under way may be finished
    sampler = GatedSampler(copy, gate.passing)

    async def swap(version: int) -> None:
        copy_weights(copy, policy, version)

    def halt() -> None:
        copy.halted = lambda: True

    def within() -> AbstractContextManager[None]:
        # a process either computes reproducibly or does not: both threads must agree on it
        return reproducible(policy.device)

    return Sampling(copy.name, gate, sampler, swap, sampler.join, halt, within)


async def served(server: Trained) -> Sampling:
    """A server, which is given the learner's weights as they are. Raises SamplerError if it can't load them."""
    await server.refresh(server.learner.policy.version)
    return Sampling(server.endpoint.name, RequestGate(), server.endpoint, server.refresh)


def shared(collect: Collect | None, learner: Learner) -> Collect:
    """What the main process collects, on every process that trains; the others pass None."""
    if collect is not None and learner.accelerator.num_processes == 1:
        return collect

    def gathered(mine: Batch) -> Batch:
        # what processes tell each other goes through the current GPU, and a thread begins with the first
        with learner.policy.on_device():
            return gather_batch(mine)

    async def one_for_all(step: int, policy_version: int) -> Batch:
        with waited_for():
            mine = Batch((), {}) if collect is None else await collect(step, policy_version)
        # in a thread, since episodes go on meanwhile; a process that left here would be waited for in the update
        with anyio.CancelScope(shield=True):
            batch = await anyio.to_thread.run_sync(gathered, mine)
        return batch

    return one_for_all


class Streaming(Protocol):
    """A learner whose checkpoints hold what is in flight."""

    stream: CheckpointedStream | None
    restored_stream: str | None


class Asynchronous:
    """Collects groups while others are trained on, from a sampler that is at most some steps older than the policy."""

    def __init__(self, collector: Collector, learner: Streaming, sampling: Sampling, sink: Sink) -> None:
        config = collector.config
        self._collector, self._learner, self._sampling, self._sink = collector, learner, sampling, sink
        make = players.model_agents(
            config,
            RecallingSampler(sampling.sampler, sampling.gate),
            config.model_name,
            temperature=config.temperature,
            strict=True,
        )
        self._stream = self._streaming(collector.setup(Player(sampling.name, make, join=sampling.join)))
        self._ages: tuple[int, ...] = ()
        self._dropped = 0
        learner.stream = self._stream

    def _streaming(self, setup: Setup) -> Stream:
        config, record = self._collector.config, self._collector.record
        shape = StreamConfig(
            groups_per_batch=config.groups_per_batch,
            max_age=config.max_steps_off_policy or 0,
            max_concurrent=self._collector.at_once,
        )
        return Stream(
            shape,
            self._sampling.gate,
            setup,
            plan=self._plan,
            next_tasks=self._next_tasks,
            join=setup.join,
            swap=self._sampling.swap,
            save=record.save if record else None,
            failures=self._collector.failures,
            dropped=self._say_dropped,
            on_cancel=record.cut if record else None,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside, groups are collected: from where the restored checkpoint left off, or anew."""
        with self._sampling.within():
            async with parts.serving(self._collector.backend), self._stream.running(self._learner.restored_stream):
                try:
                    yield
                finally:  # those who wait for answers are cancelled now
                    self._sampling.halt()

    async def __call__(self, step: int, policy_version: int) -> Batch:
        """A ``train.loop.Collect``: what is complete by now, while further groups are started."""
        self._dropped = 0
        taken = await self._stream.take(step, policy_version)
        self._ages = taken.ages
        return Batch(taken.groups, taken.pictures)

    async def settled(self) -> Mapping[str, float]:
        """A ``train.loop.Settled``."""
        await self._stream.settled()
        ages = self._ages
        return {
            "async/staleness_mean": math.fsum(ages) / len(ages),
            "async/staleness_max": float(max(ages)),
            "async/dropped": float(self._dropped),
            "async/waiting": float(self._stream.waiting),
            "async/unfinished": float(self._stream.unfinished),
        }

    def _next_tasks(self, serial: int, count: int) -> list[str]:
        found = self._collector.by_curriculum(count)
        if found is not None:
            return [task.id for task in found]
        order, seed = self._collector.tasks, self._collector.config.seed
        return [next(stretch(order, seed, n + 1, 1)).id for n in range(serial, serial + count)]

    def _plan(self, ticket: Ticket) -> Sequence[EpisodeSpec]:
        tasks, serial = [self._collector.task(ticket.task_id)], ticket.serial
        return self._collector.specs(tasks, name=f"{serial:06d}", step=ticket.step, first_group=serial)

    def _say_dropped(self, ticket: Ticket, step: int, age: int) -> None:
        self._dropped += 1
        group = f"{self._collector.run_id}.{ticket.serial:06d}"
        facts = {"step": step, "group": group, "task": ticket.task_id, "age": age}
        self._sink.event("group_dropped", {**facts, "limit": self._collector.config.max_steps_off_policy})
