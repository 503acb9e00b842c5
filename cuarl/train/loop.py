"""The training loop: collect → update → save → evaluate → report, step after step.

Everything outside (episodes, evaluation, where metrics go) is handed in, so that the loop can be read, and tested with a
list. Steps are numbered from 1; step n turns policy version n − 1 into version n, and step 0 is the untrained policy.

A step is committed last, when its metrics are out: whatever was cut short before that is done again by a resumed run,
and nothing is left out. For an exact repetition ``collect`` must depend on nothing but the step, the policy and the seed.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
from pydantic import NonNegativeInt, PositiveInt

from cuarl.run.facts import resident_gib
from cuarl.train.batch import Batch
from cuarl.train.metrics import rollout_metrics
from cuarl.types import Record, Sink

Metrics = Mapping[str, float]
Collect = Callable[[int, int], Awaitable[Batch]]
"""``collect(step, policy_version)``: the batch that training step ``step`` learns from."""
Settled = Callable[[], Awaitable[Metrics]]
"""``settled()``: wait until collecting that goes on beside training stands still for this step; metrics of it."""
Evaluate = Callable[[int], Awaitable[Metrics | None]]
"""``evaluate(step)``: metrics of the policy after ``step`` training steps, or None."""


class LoopConfig(Record):
    """How long, and how often what."""

    max_steps: PositiveInt = 32
    eval_every: NonNegativeInt = 16
    """Steps between evaluations; the last step is always evaluated. 0: at the end only."""
    save_every: NonNegativeInt = 8
    """Steps between checkpoints; the last step is always saved. 0: at the end only."""
    skip_baseline: bool = False
    """Don't evaluate the untrained policy."""


class Trainable(Protocol):
    """What the loop needs of a ``learner.Learner``."""

    def begin_step(self, step: int) -> None:
        """Start a step, before its episodes are collected."""
        ...

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn; blocks, and is called in a worker thread."""
        ...


class Saver(Protocol):
    """What the loop needs of ``checkpoint.Checkpoints``."""

    def save(self, step: int) -> Path:
        """Write, durably."""
        ...

    def commit(self, step: int, metrics: Metrics) -> None:
        """Make it the one to resume from."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished loop has to tell."""

    steps: int
    """Training steps of the run, those before a resume included."""
    first_eval: Metrics | None
    """The baseline, if this attempt measured it."""
    last_eval: Metrics | None
    """The last evaluation, if this attempt made one."""
    checkpoint: Path | None
    """The last one; None if there was nothing left to do."""


async def train(
    config: LoopConfig, learner: Trainable, collect: Collect, evaluate: Evaluate, sink: Sink, checkpoints: Saver,
    start_step: int = 0, settled: Settled | None = None,
) -> Outcome:  # fmt: skip
    """Train from ``start_step`` (the step of the checkpoint that was restored; 0: from scratch) to ``max_steps``.

    If a step's episodes can't be collected, for whatever reason, the steps before it are saved before the error (or the
    cancellation) goes on. Where episodes are collected beside training, ``collect`` gives a batch that was collected before,
    and ``settled`` is awaited behind each update: only then do both stand still, to be saved and measured.
    """
    first = last = None
    if start_step == 0 and not config.skip_baseline:
        first = last = await evaluate(0)
        if first:
            sink.metrics(0, first)
    folder, saved = None, start_step
    for step in range(start_step + 1, config.max_steps + 1):
        clock = _Clock()
        learner.begin_step(step)
        batch = None
        try:
            with clock.phase("rollout"):
                batch = await collect(step, step - 1)
        finally:
            if batch is None and saved < step - 1:
                checkpoints.save(step - 1)
                checkpoints.commit(step - 1, {})
        with clock.phase("train"):
            values = await anyio.to_thread.run_sync(learner.update, batch, step)
        values = rollout_metrics(batch.collected, policy_version=step - 1) | values
        if settled is not None:
            with clock.phase("rollout"):
                values |= await settled()
        if batch.discarded:
            values["group/discarded"] = float(len(batch.discarded))
        save = _due(step, config.save_every, config)
        if save:
            with clock.phase("save"):
                folder = checkpoints.save(step)
        measured: Metrics = {}
        if _due(step, config.eval_every, config):
            with clock.phase("eval"):
                measured = await evaluate(step) or {}
            last = measured or last
        sink.metrics(step, {**values, **measured, **clock.metrics(batch, values)})
        if save:
            checkpoints.commit(step, measured)
            sink.event("checkpoint", {"step": step, "path": str(folder)})
            saved = step
    return Outcome(config.max_steps, first, last, folder)


def _due(step: int, every: int, config: LoopConfig) -> bool:
    return step == config.max_steps or (every > 0 and step % every == 0)


class _Clock:
    """Wall time of one step and of its phases."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._phases[name] = self._phases.get(name, 0.0) + time.perf_counter() - start

    def metrics(self, batch: Batch, values: Metrics) -> dict[str, float]:
        step_s = time.perf_counter() - self._start
        timed = {f"time/{name}_s": seconds for name, seconds in self._phases.items()} | {"time/step_s": step_s}
        timed["perf/episodes_per_min"] = 60 * sum(len(g.trajectories) for g in batch.collected) / step_s
        if (resident := resident_gib()) is not None:
            timed["perf/rss_gib"] = resident
        if "train/tokens" in values:
            timed["perf/tokens_per_s"] = values["tokens/total"] / self._phases["train"]
        return timed
