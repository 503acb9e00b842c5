"""An environment of one's own in a few lines: what is shown, what an action does, and what is so.

::

    class Lamp(SimpleEnv):
        def begin(self, task, seed):
            self.on = False

        def screen(self):
            return Image.new("RGB", (192, 384), "yellow" if self.on else "black")

        def act(self, action):
            self.on = not self.on

        def facts(self):
            return {"lamp": self.on}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from cuarl.env.base import Capabilities
from cuarl.env.held import beyond
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Observation, Screenshot, StepResult

if TYPE_CHECKING:
    from PIL import Image


class SimpleEnv(ABC):
    """Base of environments that work inside the process and at once. One object is one episode."""

    kind: ClassVar[str] = "phone"
    """``phone`` or ``desktop``: which actions a model is told of."""
    actions: ClassVar[frozenset[str]] = frozenset({"click", "long_press", "swipe", "type", "button", "wait"})
    """Kinds of ``types.Action`` that are handed on; others are rejected."""
    held: ClassVar[bool] = False
    """Whether ``act`` heeds keys that are held during an action; without it such actions are rejected."""

    def begin(self, task: TaskInstance, seed: int) -> None:  # noqa: B027 (may be left out)
        """Set everything up. ``seed`` decides whatever is drawn at random."""

    @abstractmethod
    def screen(self) -> Image.Image:
        """What is seen now, RGB; actions are in its pixels."""

    @abstractmethod
    def act(self, action: Action) -> str | None:
        """Carry out an action; a text says why it is impossible, and then nothing may have changed."""

    def facts(self) -> Mapping[str, Any]:
        """What checks of tasks compare: nested mappings, lists and scalars."""
        return {}

    def end(self) -> None:  # noqa: B027 (may be left out)
        """Release what is held. May be called twice."""

    # --- the seam ``env.base.Env`` -----------------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """What it can do, as the class says."""
        return Capabilities(self.actions, state=True, exact_reset=True, kind=self.kind, held=self.held)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Begin, and show the first screen."""
        self.begin(task, seed)
        return self._seen()

    async def step(self, action: Action) -> StepResult:
        """Act, and show what came of it."""
        problem: str | None = "" if self.held else beyond(action, "this environment", repeats=True)
        if action.kind not in self.actions:
            problem = f"there is no {action.kind} here"
        problem = problem or self.act(action)
        return StepResult(self._seen(), info={"rejected": problem} if problem else {})

    async def state(self) -> Mapping[str, Any]:
        """The facts."""
        return self.facts()

    async def close(self) -> None:
        """End."""
        self.end()

    def _seen(self) -> Observation:
        return Observation(Screenshot(self.screen()))
