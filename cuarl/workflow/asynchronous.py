"""Asynchronous training: the parts of ``rollout.stream`` put together from a configuration."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from cuarl.policy.sampling.gated import GatedSampler
from cuarl.policy.sampling.sampler_copy import copy_weights, sampler_copy
from cuarl.rollout.pause import PauseGate, RecallingSampler
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.rollout.stream import Stream, StreamConfig, Ticket
from cuarl.train.batch import Batch
from cuarl.train.gradients import reproducible
from cuarl.train.learner import Learner
from cuarl.types import Sink
from cuarl.workflow import episodes as parts
from cuarl.workflow import players
from cuarl.workflow.collector import Collector, stretch
from cuarl.workflow.from_config import check_alone
from cuarl.workflow.players import Player


class Asynchronous:
    """Collects groups while others are trained on, with a copy of the policy that is at most some steps older."""

    def __init__(self, collector: Collector, learner: Learner, sink: Sink) -> None:
        """``learner`` must have been restored, if there is something to restore.

        Raises ConfigError for several processes.
        """
        config = collector.config
        check_alone(config, learner.accelerator.num_processes)
        self._collector, self._learner, self._sink = collector, learner, sink
        self._copy = sampler_copy(learner.policy, config.local_policy.sampler_device)
        self._copy.halted = bool  # a signal lets it go on for as long as what is under way may be finished
        gate = PauseGate()
        sampler = GatedSampler(self._copy, gate.passing)
        make = players.model_agents(
            config, RecallingSampler(sampler, gate), config.model_name, temperature=config.temperature, strict=True
        )
        setup = collector.setup(Player(self._copy.name, make, join=sampler.join))
        self._stream = self._streaming(gate, setup)
        self._ages: tuple[int, ...] = ()
        self._dropped = 0
        learner.stream = self._stream

    def _streaming(self, gate: PauseGate, setup: Setup) -> Stream:
        config, record = self._collector.config, self._collector.record
        shape = StreamConfig(
            groups_per_batch=config.groups_per_batch,
            max_age=config.max_steps_off_policy or 0,
            max_concurrent=self._collector.at_once,
        )
        return Stream(
            shape,
            gate,
            setup,
            plan=self._plan,
            next_tasks=self._next_tasks,
            join=setup.join,
            swap=partial(copy_weights, self._copy, self._learner.policy),
            save=record.save if record else None,
            failures=self._collector.failures,
            dropped=self._say_dropped,
            on_cancel=record.cut if record else None,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside, groups are collected: from where the restored checkpoint left off, or anew."""
        # a process either computes reproducibly or does not: both threads must agree on it
        with reproducible(self._learner.policy.device):
            async with parts.serving(self._collector.backend), self._stream.running(self._learner.restored_stream):
                try:
                    yield
                finally:  # those who wait for answers are cancelled now
                    self._copy.halted = lambda: True

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
