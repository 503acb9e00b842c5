"""How episodes are run: the parts that one environment, one agent and one task are put together from."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from anyio import CancelScope

from cuarl.agent.base import Agent
from cuarl.env.backend import MakeEnv
from cuarl.env.base import Env
from cuarl.rollout.opinion import Opinion, Seen
from cuarl.rollout.reward import RewardFunction, simple
from cuarl.rollout.spec import EpisodeSpec, Limits
from cuarl.tasks.check import verdict
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Trajectory, Turn, Verdict
from cuarl.types import Screenshot

MakeAgent = Callable[[EpisodeSpec, Env], Agent]
"""Makes the agent of one episode; some, like the oracle, need its environment."""


class Judge(Protocol):
    """Tells whether a task is done. Raises RewardError if it can't tell."""

    def __call__(
        self,
        instance: TaskInstance,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        answer: str | None,
        claimed: bool | None,
        volatile: Sequence[str] = (),
    ) -> Verdict:
        """Compare the states after reset and at the end; ``volatile`` paths may change by themselves."""
        ...


Phase = Literal["creating", "acting", "checking", "done"]
"""What an episode is at: its environment is made and reset, the agent acts, the end is judged, it is over."""


class Observer(Protocol):
    """Told of each running episode as it goes. Must not block, and must not raise."""

    def phase(self, spec: EpisodeSpec, phase: Phase, device: str = "") -> None:
        """The episode has come to ``phase``; ``device`` is what runs it, once that is known."""
        ...

    def screen(self, spec: EpisodeSpec, screen: Screenshot) -> None:
        """What the device shows now."""
        ...

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """A turn is over; ``screen`` says what came of it."""
        ...


class Unobserved:
    """Nobody looks."""

    def phase(self, spec: EpisodeSpec, phase: Phase, device: str = "") -> None:
        """Nobody is told."""

    def screen(self, spec: EpisodeSpec, screen: Screenshot) -> None:
        """Nobody is told."""

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Nobody is told."""


UNOBSERVED = Unobserved()


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished episode with the pictures that its record refers to, by digest."""

    trajectory: Trajectory
    pictures: Mapping[str, Screenshot]


Opine = Callable[[Seen], Awaitable[Opinion]]
"""Gives an opinion on an episode. Raises RewardError if it can't."""
Play = Callable[[EpisodeSpec, "Setup", Callable[[Episode], None] | None], Awaitable[Episode]]
"""Runs an episode as ``episode.run_episode`` does, in another process. What is the caller's own (joining a batch, being
paused, being watched) is taken from the setup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything an episode needs besides its spec."""

    make_env: MakeEnv
    make_agent: MakeAgent
    judge: Judge = verdict
    opine: Opine | None = None
    """Asked what it thinks of each episode; where the task has no checks, that is the verdict."""
    reward: RewardFunction = simple
    limits: Limits = field(default_factory=Limits)
    join: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered while an episode may still ask its policy, so that a batching sampler knows whom to wait for."""
    begin: Callable[[], None] = _nothing
    """Called before the first episode of a collection: what a sampler remembers of earlier ones then changes
    nothing."""
    pausable: Callable[[CancelScope], AbstractContextManager[object]] = nullcontext
    """Entered with the scope that bounds an episode, so that whoever makes episodes wait can put its deadline off."""
    backend: str = ""
    """What runs the environments, as ``--env`` names it."""
    observer: Observer = UNOBSERVED
    elsewhere: Play | None = None
    """Runs the episodes in other processes; None runs them in this one."""
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
