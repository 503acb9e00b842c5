"""Groups without end, collected asynchronously: bounded slots, exact repetition, a bound on how old a group may be.

``groups_per_batch × (max_age + 1)`` groups are in flight: running, waiting to be trained on, or being trained on.
Training step t ``take``s the oldest complete groups, starts as many new ones, and trains while the others run on. They
run until the next batch is complete; then the gate shuts before the next pass, and they wait until the next ``take``,
which is also the only moment at which the sampler's weights change. So what is sampled by which policy, and which
groups are trained on when, is decided by counts of passes and groups and never by the clock (as long as the sampler's
passes wait for every episode, and environments repeat themselves). Behind a ``request_gate``, whose sampler answers
each request by itself, episodes go on until the ``take``: that bound of age holds, but what is sampled by which policy
depends on the clock.

Step t turns policy version t − 1 into t. The age of a group at that step is t − 1 less the version of its first turns.
A group that would be older than ``max_age`` when it could next be taken is dropped, whether it is complete or not.

What is in flight can be put down (``state``) while the gate is shut, and taken up again: complete episodes as they are,
the others as what they have sampled, by which they are played again up to where they were paused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from cuarl import garbage
from cuarl.rollout.episode import run_episode
from cuarl.rollout.failures import FailureWindow, refuse_if_all_failed
from cuarl.rollout.pause import CURRENT, Pause, PauseGate, clock, pausable
from cuarl.rollout.pool import Save, one_error
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.trajectory import Group, Sampled, Trajectory
from cuarl.types import Screenshot


@dataclass(frozen=True, slots=True)
class Ticket:
    """Which group this is: everything else about it follows."""

    serial: int
    """Position among all groups of the run."""
    step: int
    """The step during whose training it was started; the groups of the first batch have step 1, too."""
    task_id: str


Plan = Callable[[Ticket], Sequence[EpisodeSpec]]
"""The attempts of a group."""


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """How many groups, and how old."""

    groups_per_batch: int
    max_age: int
    """In training steps; at least 1."""
    max_concurrent: int = 64
    """Most episodes at a time."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a training step has to learn from."""

    groups: tuple[Group, ...]
    pictures: Mapping[str, Screenshot]
    ages: tuple[int, ...]
    """Of each group, in steps."""


@dataclass(slots=True, eq=False)
class _InFlight:
    """One group that has not been taken yet."""

    ticket: Ticket
    specs: Sequence[EpisodeSpec]
    pauses: Sequence[Pause]
    done: dict[int, Trajectory] = field(default_factory=dict)
    pictures: dict[str, Screenshot] = field(default_factory=dict)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    dropped: bool = False

    @property
    def complete(self) -> bool:
        return len(self.done) == len(self.specs)

    def age(self, version: int) -> int:
        """How many steps older than ``version`` the oldest turn is; 0 if there is none."""
        sampled = [s for pause in self.pauses for s in pause.answers]
        sampled += [turn.sampled for t in self.done.values() for turn in t.turns if turn.sampled]
        return version - min((s.policy_version for s in sampled), default=version)

    def group(self) -> Group:
        first = self.specs[0]
        trajectories = tuple(self.done[i] for i in range(len(self.specs)))
        return Group(group_id=first.group_id, task_id=first.task.task_id, seed=first.seed, trajectories=trajectories)

    def as_it_is(self) -> _InFlight:
        """A copy that stays as this group is now; what it is made of is never changed."""
        pauses = [Pause(list(pause.answers)) for pause in self.pauses]
        return _InFlight(self.ticket, self.specs, pauses, dict(self.done), dict(self.pictures))

    def state(self) -> dict[str, Any]:
        running = {i: p.answers for i, p in enumerate(self.pauses) if i not in self.done and p.answers}
        return {
            "ticket": [self.ticket.serial, self.ticket.step, self.ticket.task_id],
            "done": {i: t.model_dump(mode="json") for i, t in self.done.items()},
            "answers": {i: [s.model_dump(mode="json") for s in answers] for i, answers in running.items()},
            "pictures": {digest: base64.b64encode(s.png()).decode() for digest, s in self.pictures.items()},
        }


class Stream:
    """Collects groups for as long as it is ``running``.

    ``setup`` must ask a sampler that goes through ``gate``, and ``join`` be that of its batcher, if it has one.
    ``swap(version)`` gives the sampler the weights of that version. ``next_tasks(serial, count)`` chooses tasks, and
    is called in order. ``dropped`` is told of every group that got too old, with its age.
    """

    def __init__(
        self,
        config: StreamConfig,
        gate: PauseGate,
        setup: Setup,
        *,
        plan: Plan,
        next_tasks: Callable[[int, int], Sequence[str]],
        swap: Callable[[int], Awaitable[None]],
        join: Callable[[], AbstractContextManager[object]] = nullcontext,
        failures: FailureWindow | None = None,
        save: Save | None = None,
        dropped: Callable[[Ticket, int, int], None] | None = None,
        on_cancel: Callable[[Episode], None] | None = None,
    ) -> None:
        self._config, self._gate, self._plan, self._next_tasks = config, gate, plan, next_tasks
        # an episode counts as present until its verdict is there, so that a pass knows what is complete
        self._setup = replace(setup, join=nullcontext, clock=clock, pausable=pausable)
        self._swap, self._join, self._save, self._dropped = swap, join, save, dropped
        self._failures, self._on_cancel = failures or FailureWindow(), on_cancel
        self._air: list[_InFlight] = []
        self._serial = 0
        self._before: tuple[int, list[_InFlight]] | None = None
        """What was in flight before the present step's batch was taken; None if it has not been taken."""
        self._undone = False
        self._running = 0
        self._ended = False
        gate.full = self._full

    @asynccontextmanager
    async def running(self, state: str | None = None) -> AsyncIterator[None]:
        """Inside, groups are collected: from the beginning, or from where ``state`` was taken."""
        self._slots = anyio.CapacityLimiter(self._config.max_concurrent)
        with one_error(), garbage.deferred():
            async with anyio.create_task_group() as tasks:
                self._tasks: TaskGroup = tasks
                try:
                    if state is None:
                        self._start(1, self._config.groups_per_batch * (self._config.max_age + 1))
                    else:
                        self._restore(state)
                    yield
                    self._ended = True  # not reached where an error or an interrupt ends it
                finally:
                    # whoever leads a pass can't be cancelled while it waits
                    self._gate.end()
                    tasks.cancel_scope.cancel()

    async def settled(self) -> None:
        """Wait until the next batch is complete and everybody is paused."""
        await self._gate.shut()

    async def take(self, step: int, version: int) -> Taken:
        """The batch of training step ``step``, which trains ``version``.

        From now on the sampler samples from it, too.
        """
        await self.settled()
        # a run that is interrupted within this step makes it again, and so needs what there was before it
        self._before = self._serial, [g.as_it_is() for g in self._air]
        # nobody is in a pass while the gate is shut, so no token is drawn from half of the new weights
        await self._swap(version)
        taken = [g for g in self._air if g.complete][: self._config.groups_per_batch]
        groups = tuple(g.group() for g in taken)
        refuse_if_all_failed([t for group in groups for t in group.trajectories])
        self._air = [g for g in self._air if g not in taken]
        # the next batch is taken one version later: what would be too old by then need not be finished
        self._drop(step, version + 1)
        self._start(step, self._config.groups_per_batch * self._config.max_age - len(self._air))
        self._gate.open()
        self._close_if_idle()
        pictures = {digest: picture for g in taken for digest, picture in g.pictures.items()}
        return Taken(groups, pictures, tuple(g.age(version) for g in taken))

    @property
    def waiting(self) -> int:
        """Complete groups that have not been taken."""
        return sum(g.complete for g in self._air)

    @property
    def unfinished(self) -> int:
        """Groups whose episodes still run."""
        return len(self._air) - self.waiting

    def begin_step(self) -> None:
        """A training step begins: its batch has not been taken yet."""
        self._before = None

    def undo_step(self) -> None:
        """The step won't be made: ``state`` is from now on what it was before its batch was taken."""
        self._undone = True

    def state(self) -> str:
        """Everything in flight, as JSON; while the gate is shut, after ``settled``."""
        serial, air = self._before if self._undone and self._before is not None else (self._serial, self._air)
        return json.dumps({"serial": serial, "air": [g.state() for g in air]})

    # --- parts -----------------------------------------------------------------------------------------------------

    def _full(self) -> bool:
        return self.waiting >= self._config.groups_per_batch

    def _close_if_idle(self) -> None:
        """Where nobody is left to ask, no pass will shut the gate."""
        if self._running == 0 and self._full():
            self._gate.close()

    def _start(self, step: int, count: int) -> None:
        tasks = self._next_tasks(self._serial, count)
        for task_id in tasks:
            ticket = Ticket(self._serial, step, task_id)
            self._serial += 1
            specs = self._plan(ticket)
            self._launch(_InFlight(ticket, specs, [Pause() for _ in specs]))

    def _restore(self, state: str) -> None:
        saved = json.loads(state)
        self._serial = saved["serial"]
        for each in saved["air"]:
            ticket = Ticket(*each["ticket"])
            # seeds follow from the ticket: an attempt that was under way is played again from its answers alone
            specs = self._plan(ticket)
            answers = {int(i): [Sampled.model_validate(s) for s in found] for i, found in each["answers"].items()}
            group = _InFlight(ticket, specs, [Pause(answers.get(i, [])) for i in range(len(specs))])
            group.done = {int(i): Trajectory.model_validate(t) for i, t in each["done"].items()}
            group.pictures = {d: Screenshot.decode(base64.b64decode(png)) for d, png in each["pictures"].items()}
            self._launch(group)
        self._close_if_idle()

    def _launch(self, group: _InFlight) -> None:
        self._air.append(group)
        # a group that was put down may have some of its episodes already
        missing = [i for i in range(len(group.specs)) if i not in group.done]
        self._running += len(missing)
        if missing:
            self._tasks.start_soon(self._run, group, missing)

    async def _run(self, group: _InFlight, attempts: Sequence[int]) -> None:
        with group.scope:
            async with anyio.create_task_group() as running:
                for attempt in attempts:
                    running.start_soon(self._attempt, group, attempt)

    async def _attempt(self, group: _InFlight, attempt: int) -> None:
        try:
            async with self._slots:
                CURRENT.set(group.pauses[attempt])
                with self._join():
                    episode = await run_episode(
                        group.specs[attempt], self._setup, on_cancel=lambda e: self._cut(group, e)
                    )
                    if group.dropped or self._gate.over:
                        return
                    self._keep(group, attempt, episode)
                    self._gate.finished()
        finally:
            self._running -= 1
            self._close_if_idle()
        if self._save is not None:
            # complete, so it is saved even if everything else is cancelled at this moment
            with anyio.CancelScope(shield=True):
                await self._save(episode)
        self._failures.note(episode.trajectory)

    def _keep(self, group: _InFlight, attempt: int, episode: Episode) -> None:
        group.done[attempt] = episode.trajectory
        # the trajectory has them from now on
        group.pauses[attempt].answers = []
        # hundreds of episodes may wait here, so only the screenshots that training reads are held
        trained = {ref.digest for turn in episode.trajectory.turns if turn.sampled for ref in turn.sampled.images}
        group.pictures |= {digest: picture for digest, picture in episode.pictures.items() if digest in trained}

    def _cut(self, group: _InFlight, episode: Episode) -> None:
        # what is cut off because nobody wants it any more is no news; an interrupt is
        if self._on_cancel is not None and not (group.dropped or self._ended):
            self._on_cancel(episode)

    def _drop(self, step: int, next_version: int) -> None:
        """Let go of what would be too old at the next step."""
        for group in self._air:
            age = group.age(next_version)
            if age > self._config.max_age:
                group.dropped = True
                group.scope.cancel()
                if self._dropped is not None:
                    self._dropped(group.ticket, step, age)
        self._air = [g for g in self._air if not g.dropped]
