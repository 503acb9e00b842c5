"""The agent that acts elsewhere: it only tells what another program has decided and done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

from cuarl.agent.base import Decision
from cuarl.policy.sampler import Sampler, SamplingParams
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
from cuarl.types import Observation


class RelayAgent:
    """Passes on the decisions that ``decide`` waits for, given the turns so far."""

    def __init__(self, name: str, decide: Callable[[Sequence[Turn]], Awaitable[Decision]]) -> None:
        self.name, self._decide = name, decide

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The next decision; task, screen and seed are the other program's own affair."""
        return await self._decide(history)


@runtime_checkable
class Followed(Protocol):
    """An environment in which another program acts, asking a model that is served to it."""

    def follow(self, sampler: Sampler, params: SamplingParams, sampling_seed: int) -> RelayAgent:
        """Have it ask ``sampler``; the agent that tells what it does. To be called before the reset."""
        ...
