"""The environment seam: one device, one episode, single use.

Actions and observations are in pixels of the shown screenshot; an implementation maps them to its device's units. What
a backend cannot do is declared in ``capabilities``, so that it fails before anything starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Observation, StepResult


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an environment can do."""

    actions: frozenset[str]
    """Kinds of ``types.Action`` that it carries out; any other is rejected with ``info["rejected"]``."""
    state: bool = False
    """``state()`` gives what validators need."""
    exact_reset: bool = False
    """The same task and seed give the same pixels."""
    oracle: bool = False
    """``oracle_action()`` is there."""
    kind: str = "phone"
    """``phone`` or ``desktop``: which action vocabulary a model is shown."""
    held: bool = False
    """Keys can be held during clicks, moves, drags and scrolls; otherwise such an action is rejected."""


@runtime_checkable
class Env(Protocol):
    """One device for one episode. Raises ``EnvError`` for anything that is not the policy's doing.

    One that runs on a device which others know by a name has it as ``device_name``, for the record, after the reset.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Fixed for the life of the object."""
        ...

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Set the device up for ``task`` (its preset applied) and show the first screen. Called once."""
        ...

    async def step(self, action: Action) -> StepResult:
        """Carry out one action. An impossible one changes nothing and says so in ``info["rejected"]``."""
        ...

    async def state(self) -> Mapping[str, Any]:
        """The device's state as nested mappings, lists and scalars, for validators; {} if it can't be read."""
        ...

    async def close(self) -> None:
        """Release everything. Safe to call twice, and after a failure."""
        ...


@runtime_checkable
class OracleEnv(Env, Protocol):
    """An environment that knows how its tasks are solved."""

    def oracle_action(self) -> Action:
        """The next action of a solution from the present state; ``Finish`` once all checks hold."""
        ...


@runtime_checkable
class AskedOracleEnv(Env, Protocol):
    """The same for an environment that has to ask its device what to do."""

    async def ask_oracle(self) -> Action:
        """The next action of a solution from the present state; ``Finish`` once it is solved."""
        ...


@runtime_checkable
class AimedEnv(Env, Protocol):
    """An environment that knows how far what it shows reaches."""

    async def around(self, x: int, y: int) -> tuple[int, int, int, int] | None:
        """Left, top, right and bottom, pixels, of the thing whose middle is ``(x, y)``.

        None unless a tap anywhere in it is the same.
        """
        ...


@runtime_checkable
class JudgingEnv(Env, Protocol):
    """An environment that tells itself whether its task is done, such as a service with validators of its own."""

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        """The verdict on the episode so far. Raises EnvError or RewardError if there is none: never a score of zero."""
        ...


@runtime_checkable
class LedEnv(Env, Protocol):
    """An environment in which somebody else acts: an answer of the model is carried out by whoever asked for it."""

    async def look(self) -> StepResult:
        """What followed upon the model's latest answer. Raises EnvError."""
        ...


EnvFactory = Callable[[], Awaitable[Env]]
"""Makes a fresh environment for one episode."""
