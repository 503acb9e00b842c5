"""The agent seam: looks at the screen and decides on one action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cuarl.policy.sampler import PromptTooLong
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Action, Observation, ParseError


@dataclass(frozen=True, slots=True)
class Decision:
    """What an agent does next: an action, or why its output is none."""

    action: Action | None = None
    parse_error: ParseError | None = None
    warnings: tuple[str, ...] = ()
    sampled: Sampled | None = None
    too_long: PromptTooLong | None = None
    """The prompt did not fit: the episode stops with CONTEXT_FULL."""


class Agent(Protocol):
    """Decides. One object serves one episode; ``name`` goes into the record."""

    name: str

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Decide on the next action. ``seed`` alone decides any chance in it.

        ``history`` holds the turns so far, oldest first; pictures of earlier turns are the agent's own to keep.
        """
        ...
