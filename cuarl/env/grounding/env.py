"""One picture, and one action on it: a hit if it points into the box of what was named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel

from cuarl.env.base import Capabilities
from cuarl.env.held import beyond
from cuarl.env.points import outside
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Click, Finish, LongPress, Move, Observation, Screenshot, StepResult

OFFERED: Mapping[str, frozenset[str]] = {
    "phone": frozenset({"click", "long_press", "swipe", "type", "button", "open_app", "wait", "answer", "finish"}),
    "desktop": frozenset({"click", "long_press", "move", "drag", "scroll", "type", "key", "wait", "answer", "finish"}),
}
"""All that policies know of such devices: what they do with a picture is theirs to decide."""


class GroundingEnv:
    """A still picture. The task's preset has ``picture``, ``box`` (left, top, right, bottom) and ``about``."""

    def __init__(self, kind: Literal["phone", "desktop"]) -> None:
        self._kind = kind
        self._box: tuple[float, ...] = ()
        self._shown: Screenshot | None = None
        self._pointed: tuple[int, int] | None = None
        self._done = self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """Everything that such a device has."""
        return Capabilities(OFFERED[self._kind], state=True, exact_reset=True, oracle=True, kind=self._kind)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Nothing that an action does is a side effect."""
        return ("*",)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Show the picture. Raises EnvError if it can't be read."""
        if self._shown is not None or self._closed:
            raise EnvError("an environment serves one episode")
        path = str(task.preset["picture"])
        try:
            self._shown = Screenshot.decode(Path(path).read_bytes())
        except OSError as error:
            raise EnvError(f"the picture can't be read: {error}", where=path) from error
        self._box = tuple(map(float, task.preset["box"]))
        return Observation(self._shown)

    async def step(self, action: Action) -> StepResult:
        """The one action; it ends the episode, whatever it is."""
        await anyio.lowlevel.checkpoint()
        if self._shown is None:
            raise EnvError("this environment was not reset yet")
        if reason := self._refusal(action, self._shown):
            return StepResult(Observation(self._shown), info={"rejected": reason, "changed": False})
        self._done = True
        if isinstance(action, Click | LongPress | Move):
            self._pointed = action.x, action.y
        return StepResult(Observation(self._shown), terminated=True, info={"changed": False})

    async def state(self) -> Mapping[str, Any]:
        """Whether it was a hit, and where it pointed: the middle of a pixel counts."""
        if self._pointed is None:
            return {"hit": False, "pointed": None}
        x, y = (value + 0.5 for value in self._pointed)
        left, top, right, bottom = self._box
        return {"hit": left <= x <= right and top <= y <= bottom, "pointed": list(self._pointed)}

    async def close(self) -> None:
        """Nothing is held."""
        self._closed = True

    def _refusal(self, action: Action, shown: Screenshot) -> str:
        if self._done:
            return "this picture takes one action"
        if action.kind not in OFFERED[self._kind]:
            return f"a {self._kind} has no {action.kind}"
        return beyond(action, "this picture") or outside(action, (shown.width, shown.height))

    def oracle_action(self) -> Action:
        """A click on the middle of the box."""
        if self._done or self._shown is None:
            return Finish()
        left, top, right, bottom = self._box
        x, y = int((left + right) / 2), int((top + bottom) / 2)
        return Click(x=min(max(x, 0), self._shown.width - 1), y=min(max(y, 0), self._shown.height - 1))
