"""How episodes are run: the parts that one environment, one agent and one task are put together from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from anyio import CancelScope

from cuarl.agent.base import Agent
from cuarl.env.backend import MakeEnv
from cuarl.env.base import Env
from cuarl.rollout.reward import RewardFunction, simple
from cuarl.rollout.spec import EpisodeSpec, Limits
from cuarl.tasks.check import verdict
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Trajectory, Verdict
from cuarl.types import Screenshot

"""Makes the fresh environment of one episode."""
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


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything an episode needs besides its spec."""

    make_env: MakeEnv
    make_agent: MakeAgent
    judge: Judge = verdict
    reward: RewardFunction = simple
    limits: Limits = field(default_factory=Limits)
    attend: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered while an episode may still ask its policy, so that a batching sampler knows whom to wait for."""
    begin: Callable[[], None] = _nothing
    """Called before the first episode of a collection: what a sampler remembers of earlier ones then changes nothing."""
    holding: Callable[[CancelScope], AbstractContextManager[object]] = nullcontext
    """Entered with the scope that bounds an episode, so that whoever makes episodes wait can put its deadline off."""
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished episode with the pictures that its record refers to, by digest."""

    trajectory: Trajectory
    pictures: Mapping[str, Screenshot]
