"""The training loop: collect → update → save → evaluate → report, step after step.

Everything outside (episodes, evaluation, where metrics go) is handed in, so that the loop can be read, and tested with
a list. Steps are numbered from 1; step n turns policy version n − 1 into version n, and step 0 is the untrained policy.

A step is committed last, when its metrics are out: whatever was cut short before that is done again by a resumed run,
and nothing is left out. For an exact repetition ``collect`` must depend on nothing but the step, the policy and the
seed.

A run that is to end early, by a signal or an error, leaves a checkpoint of all that is finished: of the step before if
episodes were still collected, else of the step that is in hand. Its evaluation, if one was due, is then *pending*: the
step's metrics are kept in the checkpoint, and a resumed run evaluates first and reports them.
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
from cuarl.train.shutdown import Shutdown, StepUndone
from cuarl.types import Record, Sink

Metrics = Mapping[str, float]
Collect = Callable[[int, int], Awaitable[Batch]]
"""``collect(step, policy_version)``: the batch that training step ``step`` learns from."""
Settled = Callable[[], Awaitable[Metrics]]
"""``settled()``: wait until asynchronous collecting stands still for this step; metrics of it."""
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
    validates: bool = False
    """Evaluate whenever a checkpoint is due, too."""

    def evaluates(self, step: int) -> bool:
        """Whether an evaluation is due after a step."""
        return not (step == 0 and self.skip_baseline) and self._due(step, self.eval_every)

    def saves(self, step: int) -> bool:
        """Whether a checkpoint is due after a step."""
        return step > 0 and self._due(step, self.save_every)

    def measures(self, step: int) -> bool:
        """Whether ``evaluate`` is called after a step."""
        return self.evaluates(step) or (self.validates and self.saves(step))

    def _due(self, step: int, every: int) -> bool:
        return step in (0, self.max_steps) or (every > 0 and step % every == 0)


class Trainable(Protocol):
    """What the loop needs of a ``learner.Learner``."""

    def begin_step(self, step: int) -> None:
        """Start a step, before its episodes are collected."""
        ...

    def undo_step(self) -> None:
        """Be as before ``begin_step``, whose step has changed no weight yet."""
        ...

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn; blocks, and is called in a worker thread. Raises StepUndone where it gave up what it could undo."""
        ...


class Saver(Protocol):
    """What the loop needs of ``checkpoint.Checkpoints``."""

    def save(self, step: int) -> Path:
        """Write, durably."""
        ...

    def commit(self, step: int, metrics: Metrics, pending: Metrics | None = None) -> None:
        """Make it the one to resume from. ``pending``: the step's metrics, if they are still to be reported."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished loop has to tell."""

    steps: int
    """Training steps of the run, those before a resume included."""
    first_eval: Metrics | None
    """The baseline, if this attempt evaluated it."""
    last_eval: Metrics | None
    """The last evaluation, if this attempt made one."""
    checkpoint: Path | None
    """The last one; None if there was nothing left to do."""
    interrupted: bool = False
    """Whether it ended early, as ``shutdown`` asked."""


async def train(
    config: LoopConfig,
    learner: Trainable,
    collect: Collect,
    evaluate: Evaluate,
    sink: Sink,
    checkpoints: Saver,
    start_step: int = 0,
    settled: Settled | None = None,
    *,
    pending: Metrics | None = None,
    shutdown: Shutdown | None = None,
) -> Outcome:
    """Train from ``start_step`` (the step of the checkpoint that was restored; 0: from scratch) to ``max_steps``.

    ``pending`` are that checkpoint's pending metrics. If a step can't be finished, for whatever reason, the steps
    before it are saved before the error (or the cancellation) goes on. Where episodes are collected asynchronously,
    ``collect`` gives a batch that was collected before, and ``settled`` is awaited behind each update: only then do
    both stand still, to be saved and evaluated.
    """
    loop = _Loop(config, learner, collect, evaluate, sink, checkpoints, settled, shutdown or Shutdown(), start_step)
    finished = False
    with loop.shutdown.cutting():
        finished = await loop.run(start_step, pending)
    return Outcome(config.max_steps if finished else loop.saved, loop.first, loop.last, loop.folder, not finished)


def last_reported(start_step: int, pending: Metrics | None) -> int:
    """The newest step whose metrics stand when training goes on from ``start_step``; −1 for none.

    Those of step 0 are evaluated once more where training begins anew, and pending ones are reported once more: the
    last attempt may have been killed just then.
    """
    return -1 if start_step == 0 else start_step - (pending is not None)


class _Loop:
    """The loop's parts, and what it remembers from step to step."""

    def __init__(
        self,
        config: LoopConfig,
        learner: Trainable,
        collect: Collect,
        evaluate: Evaluate,
        sink: Sink,
        checkpoints: Saver,
        settled: Settled | None,
        shutdown: Shutdown,
        start_step: int,
    ) -> None:
        self.config, self.learner, self.sink, self.checkpoints = config, learner, sink, checkpoints
        self.collect, self.evaluate, self.settled, self.shutdown = collect, evaluate, settled, shutdown
        self.first: Metrics | None = None
        self.last: Metrics | None = None
        self.folder: Path | None = None
        self.saved = start_step
        """The newest step that was committed."""
        self._written = start_step

    async def run(self, start_step: int, pending: Metrics | None) -> bool:
        """All of it; as the next ones False if the run is to end early."""
        if pending is not None:
            going_on = await self.report_pending(start_step, pending)
        else:
            going_on = start_step > 0 or self.config.skip_baseline or await self.evaluate_baseline()
        for step in range(start_step + 1, self.config.max_steps + 1):
            going_on = going_on and await self.step(step)
        return going_on

    async def evaluate_baseline(self) -> bool:
        """Step 0: the untrained policy."""
        evaluation, ending = await self._evaluated(0, _Clock())
        if evaluation:
            self.first = evaluation
            self.sink.metrics(0, evaluation)
        return not ending

    async def report_pending(self, step: int, values: Metrics) -> bool:
        """Do what the checkpoint of ``step`` was saved before: its evaluation."""
        clock = _Clock()
        evaluation, ending = await self._evaluated(step, clock)
        self.sink.metrics(step, {**values, **evaluation, **clock.times()})
        self._commit(step, evaluation)
        return not ending

    async def step(self, step: int) -> bool:
        """One training step; False if the run is to end, and all that is finished has been saved."""
        clock = _Clock()
        try:
            batch = await self._collected(step, clock)
            values = await self._learnt(batch, step, clock)
        except StepUndone:
            self._keep(step - 1)
            return False
        ending, measuring = self.shutdown.agree(), self.config.measures(step)
        if ending or self.config.saves(step):
            self._save(step, clock)
        if measuring and ending:
            self._commit(step, {}, pending={**values, **clock.metrics(batch, values)})
            return False
        evaluation: Metrics = {}
        if measuring:
            evaluation, ending = await self._evaluated_or_pending(step, batch, values, clock)
            if ending:
                self._save(step, clock)
        self.sink.metrics(step, {**values, **evaluation, **clock.metrics(batch, values)})
        if self._written == step:
            self._commit(step, evaluation)
            self.sink.event("checkpoint", {"step": step, "path": str(self.folder)})
        return not ending

    async def _collected(self, step: int, clock: _Clock) -> Batch:
        self.learner.begin_step(step)
        batch = None
        try:
            with clock.phase("rollout"):
                batch = await self.collect(step, step - 1)
        finally:
            if batch is None:
                self._keep(step - 1)
        return batch

    async def _learnt(self, batch: Batch, step: int, clock: _Clock) -> dict[str, float]:
        """The update, which is never left half-way, and the metrics of its step."""
        with clock.phase("train"), anyio.CancelScope(shield=True):
            values = await anyio.to_thread.run_sync(self.learner.update, batch, step)
        values = rollout_metrics(batch.collected, policy_version=step - 1) | values
        if self.settled is not None:
            with clock.phase("rollout"):
                values |= await self._standing_still(self.settled)
        if batch.discarded:
            values["group/discarded"] = float(len(batch.discarded))
        return values

    async def _standing_still(self, settled: Settled) -> Metrics:
        """Wait for it as long as can be; without it, what is under way is saved as it happens to be."""
        try:
            if not self.shutdown.requested:
                return await settled()
        except anyio.get_cancelled_exc_class():
            if not self.shutdown.requested:
                raise
        with anyio.move_on_after(self.shutdown.left_s, shield=True):
            return await settled()
        return {}

    async def _evaluated(self, step: int, clock: _Clock) -> tuple[Metrics, bool]:
        """The evaluation, which one process makes while the others wait; and whether the run is to end."""
        evaluation = None
        try:
            with clock.phase("eval"):
                evaluation = await self.evaluate(step) or {}
        finally:
            ending = self.shutdown.agree(failing=evaluation is None)
        self.last = evaluation or self.last
        return evaluation, ending

    async def _evaluated_or_pending(
        self, step: int, batch: Batch, values: Metrics, clock: _Clock
    ) -> tuple[Metrics, bool]:
        found = None
        try:
            found = await self._evaluated(step, clock)
        finally:
            if found is None:
                self._save(step, clock)
                self._commit(step, {}, pending={**values, **clock.metrics(batch, values)})
        return found

    # --- checkpoints -----------------------------------------------------------------------------------------------

    def _keep(self, step: int) -> None:
        """Save what there was before the step in hand, which is undone."""
        self.learner.undo_step()
        if self.saved < step:
            self.folder = self.checkpoints.save(step)
            self._commit(step, {})

    def _save(self, step: int, clock: _Clock) -> None:
        """Once a step: every process has a part in it."""
        if self._written != step:
            with clock.phase("save"):
                self.folder = self.checkpoints.save(step)
            self._written = step

    def _commit(self, step: int, evaluation: Metrics, pending: Metrics | None = None) -> None:
        self.checkpoints.commit(step, evaluation, pending)
        self.saved = step


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

    def times(self) -> dict[str, float]:
        return {f"time/{name}_s": seconds for name, seconds in self._phases.items()}

    def metrics(self, batch: Batch, values: Metrics) -> dict[str, float]:
        step_s = time.perf_counter() - self._start
        timed = self.times() | {"time/step_s": step_s}
        timed["perf/episodes_per_min"] = 60 * sum(len(g.trajectories) for g in batch.collected) / step_s
        if "time/sampling_s" in values:
            rollout, train_s = self._phases["rollout"], self._phases["train"]
            timed["perf/idle_frac"] = (rollout - values["time/sampling_s"]) / (rollout + train_s)
        if (resident := resident_gib()) is not None:
            timed["perf/rss_gib"] = resident
        if "train/tokens" in values:
            timed["perf/tokens_per_s"] = values["tokens/total"] / self._phases["train"]
        return timed
