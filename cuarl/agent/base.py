"""The agent interface: is shown a screenshot and decides on one action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cuarl.policy.sampler import PromptTooLong
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Action, Observation, ParseError, Screenshot


@dataclass(frozen=True, slots=True)
class Decision:
    """What an agent does next: an action, or why its output is none."""

    action: Action | None = None
    parse_error: ParseError | None = None
    warnings: tuple[str, ...] = ()
    sampled: Sampled | None = None
    resized: tuple[int, int] | None = None
    """Width and height in pixels at which the model saw the screenshot."""
    acted: bool = False
    """Whoever asked for the answer has acted upon it, in ways that are not known: the environment only looks."""
    too_long: PromptTooLong | None = None
    """The prompt did not fit: the episode stops with CONTEXT_FULL."""
    pictures: Mapping[str, Screenshot] = field(default_factory=dict)
    """Pictures of the prompt by digest, where they are not simply the screens that the environment showed."""
    skipped: bool = False
    """Nobody wants this episode any more: it ends CANCELLED, without a verdict."""
    info: Mapping[str, str | float] = field(default_factory=dict)
    """What else there is to note of the decision, for the episode's ``info["decisions"]``."""


class Agent(Protocol):
    """Decides. One object serves one episode; ``name`` goes into the record."""

    name: str

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Decide on the next action. ``seed`` alone decides any chance in it.

        ``history`` holds the turns so far, oldest first; pictures of earlier turns are the agent's own to keep.
        """
        ...
