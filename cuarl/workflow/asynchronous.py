"""Practice beside training: the parts of ``rollout.stream`` put together from a configuration."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from cuarl.config.schema import ExperimentConfig
from cuarl.policy.gated import GatedSampler
from cuarl.policy.twin import follow, twin
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.hold import Gate, RecallingSampler
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, plan
from cuarl.rollout.stream import Stream, StreamConfig, Ticket
from cuarl.tasks.task import Task
from cuarl.train.batch import Batch
from cuarl.train.gradients import reproducible
from cuarl.train.learner import Learner
from cuarl.types import Sink
from cuarl.workflow import environments, players
from cuarl.workflow import episodes as parts
from cuarl.workflow.environments import Backend
from cuarl.workflow.from_config import check_alone, stretch
from cuarl.workflow.players import Player


class AsyncPractice:
    """Collects groups beside training, with a twin of the policy that is trained, at most some steps older than it."""

    def __init__(
        self, config: ExperimentConfig, tasks: Sequence[Task], run_id: str, learner: Learner,
        record: parts.Recording | None, sink: Sink, *, backend: Backend | None = None,
    ) -> None:  # fmt: skip
        """``learner`` must have been restored, if there is something to restore. Raises ConfigError for several processes."""
        check_alone(config, learner.accelerator.num_processes)
        self._config, self._run_id, self._learner, self._sink = config, run_id, learner, sink
        self._tasks = {task.id: task for task in tasks}
        self._order = tasks
        self._backend = backend or environments.backend(config, tasks)
        self._twin = twin(learner.policy, config.sampler_device)
        self._twin.halted = bool  # a signal lets it go on for as long as what is under way may be finished
        gate = Gate()
        sampler = GatedSampler(self._twin, gate.passing)
        make = players.model_agents(
            config, RecallingSampler(sampler, gate), config.model_name, temperature=config.temperature, strict=True
        )
        setup = parts.setup(config, self._backend, Player(self._twin.name, make, attend=sampler.attend))
        self._stream = self._streaming(gate, setup, record)
        self._ages: tuple[int, ...] = ()
        self._dropped = 0
        learner.beside = self._stream

    def _streaming(self, gate: Gate, setup: Setup, record: parts.Recording | None) -> Stream:
        config = self._config
        shape = StreamConfig(
            groups_per_batch=config.groups_per_batch, max_age=config.max_steps_off_policy or 0,
            max_concurrent=self._backend.concurrent(config.max_concurrent_rollouts),
        )  # fmt: skip
        return Stream(
            shape, gate, setup, plan=self._plan, next_tasks=self._next_tasks, attend=setup.attend,
            swap=partial(follow, self._twin, self._learner.policy), save=record.save if record else None,
            failures=FailureWindow(max_share=config.max_failed_share), dropped=self._say_dropped,
            on_cancel=record.cut if record else None,
        )  # fmt: skip

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside, groups are collected: from where the restored checkpoint left off, or anew."""
        # a process either computes reproducibly or does not: both threads must agree on it
        with reproducible(self._learner.policy.device):
            async with parts.serving(self._backend), self._stream.running(self._learner.left_beside):
                try:
                    yield
                finally:  # those who wait for answers are cancelled now
                    self._twin.halted = lambda: True

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
            "async/staleness_mean": math.fsum(ages) / len(ages), "async/staleness_max": float(max(ages)),
            "async/dropped": float(self._dropped), "async/waiting": float(self._stream.waiting),
            "async/unfinished": float(self._stream.unfinished),
        }  # fmt: skip

    def _next_tasks(self, serial: int, count: int) -> list[str]:
        curriculum = self._learner.curriculum
        if curriculum is not None:
            return curriculum.choose(sorted(self._tasks), count)
        seed = self._config.seed
        return [next(stretch(self._order, seed, n + 1, 1)).id for n in range(serial, serial + count)]

    def _plan(self, ticket: Ticket) -> Sequence[EpisodeSpec]:
        return plan(
            [self._tasks[ticket.task_id]], group_size=self._config.group_size, run_seed=self._config.seed,
            prefix=f"{self._run_id}.{ticket.serial:06d}", run_id=self._run_id, step=ticket.step, purpose="train",
            first_group=ticket.serial,
        )  # fmt: skip

    def _say_dropped(self, ticket: Ticket, step: int, age: int) -> None:
        self._dropped += 1
        facts = {"step": step, "group": f"{self._run_id}.{ticket.serial:06d}", "task": ticket.task_id, "age": age}
        self._sink.event("group_dropped", {**facts, "limit": self._config.max_steps_off_policy})
