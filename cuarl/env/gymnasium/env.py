"""``GymnasiumEnv``: a Gymnasium environment behind the environment seam (docs/guides/gymnasium.md)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

import anyio
import anyio.lowlevel
from PIL import Image
from pydantic import Field, PositiveInt

from cuarl.env.base import Capabilities
from cuarl.env.foreign.button_strip import ButtonStrip
from cuarl.env.foreign.counters import Counters
from cuarl.env.foreign.mapping import NoWord, Table
from cuarl.env.foreign.pictures import at
from cuarl.env.gymnasium.tables import table_for
from cuarl.env.points import outside
from cuarl.env.workers.frames import Refused
from cuarl.env.workers.pool import Pool
from cuarl.env.workers.worker import Worker
from cuarl.errors import ConfigError, EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Click, Observation, Screenshot, StepResult

CHILD = "cuarl.env.gymnasium.child"
CLOSE_S = 5.0
SEEDS = 2**31
"""Many environments seed old generators of NumPy, which take no more."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which environment, and how it is shown and acted on."""

    id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] | None = None
    """Options of its ``reset``."""
    actions: str | Mapping[str, Any] = "auto"
    picture: str = "auto"
    scale: Annotated[int, Field(ge=1, le=32)] = 1
    """Pixels shown for each pixel of its picture."""
    repeat: PositiveInt = 1
    """Its steps for each action."""
    device: Literal["phone", "desktop"] = "desktop"
    goal_from: str | None = None
    """Dotted path of the goal in ``observation`` or ``info``, where it words the goal itself."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What else the worker is told when it makes the environment."""


class GymnasiumEnv:
    """One episode of a Gymnasium environment that a worker runs. Made by ``opened``.

    Its picture may have buttons drawn below, each of which sends an action.
    """

    def __init__(self, pool: Pool, worker: Worker, source: Source, table: Table) -> None:
        self._pool, self._worker, self._source, self._table = pool, worker, source, table
        self._counters = Counters()
        self._task: TaskInstance | None = None
        self._observation: Observation | None = None
        self._size = (0, 0)
        self._strip: ButtonStrip | None = None
        self._used = self._closed = False

    @classmethod
    async def opened(cls, pool: Pool, source: Source) -> Self:
        """Make the environment in a worker. Raises ConfigError if there is none such or its actions can't be told."""
        worker = await pool.lend()
        done = False
        try:
            request = {"id": source.id, "kwargs": dict(source.kwargs), "picture": source.picture, **source.beside}
            opened, _ = await worker.call({"call": "open", **request})
            table = table_for(source.actions, opened["space"], opened["names"], source.id)
            done = True
        except Refused as error:
            raise ConfigError(str(error), where=source.id, hint="see docs/guides/gymnasium.md") from error
        finally:
            if not done:
                with anyio.CancelScope(shield=True):
                    await pool.take_back(worker)
        return cls(pool, worker, source, table)

    @property
    def capabilities(self) -> Capabilities:
        """What the table of actions can say."""
        return Capabilities(self._table.kinds, state=True, kind=self._source.device, held=self._table.holds)

    @property
    def volatile(self) -> tuple[str, ...]:
        """Everything: the rewards and what the environment tells are the verdict."""
        return ("*",)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Begin the episode. Raises EnvError."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used, self._task = True, task
        reply, picture = await self._call({"call": "reset", "seed": seed % SEEDS, "options": self._source.options})
        self._counters.info = reply["info"]
        self._observation = self._shown(reply, picture)
        goal = self._goal(reply)
        return Observation(self._observation.screenshot, {**self._observation.text, **({"goal": goal} if goal else {})})

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, if the environment has a word for it."""
        await anyio.lowlevel.checkpoint()
        before = self._ready()
        try:
            if self._counters.over:
                raise NoWord("the environment has ended the episode")
            if reason := outside(action, (before.screenshot.width, before.screenshot.height)):
                raise NoWord(reason)
            request = {"call": "step", "action": self._value(action), "repeat": self._source.repeat}
            reply, picture = await self._worker.call(request)
        except (NoWord, Refused) as error:
            return StepResult(before, terminated=self._counters.over, info={"rejected": str(error), "changed": False})
        self._counters.add(
            reply["reward"], terminated=reply["terminated"], truncated=reply["truncated"], info=reply["info"]
        )
        self._observation = self._shown(reply, picture)
        changed = self._observation.screenshot.digest != before.screenshot.digest
        return StepResult(
            self._observation,
            reward=reply["reward"],
            terminated=reply["terminated"],
            truncated=reply["truncated"],
            info={"changed": changed, **self._trouble(reply)},
        )

    async def state(self) -> Mapping[str, Any]:
        """The counters of the episode, and what the environment told beside the last step."""
        self._ready()
        return self._counters.state()

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        """The verdict by the task's checks, with the rewards on record."""
        self._ready()
        assert self._task is not None
        return self._counters.verdict(self._task, answer, claimed)

    async def close(self) -> None:
        """Give the worker back, or end it if its environment hangs."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            if self._worker.usable:
                with anyio.move_on_after(CLOSE_S), suppress(EnvError):  # then it is not usable any more
                    await self._worker.call({"call": "close"})
            await self._pool.take_back(self._worker)

    def _ready(self) -> Observation:
        if self._observation is None or self._closed:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._observation

    async def _call(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            return await self._worker.call(request)
        except Refused as error:
            raise EnvError(str(error), where=self._source.id) from error

    def _value(self, action: Action) -> Any:
        """What the environment is told. Raises NoWord."""
        shown = unscaled(action, self._source.scale)
        if not outside(shown, self._size):
            return self._table.value(shown, self._size)
        # below the picture, or beside one that is narrower than its buttons
        below = self._size[1] * self._source.scale
        label = self._strip.at(action.x, action.y - below) if self._strip and isinstance(action, Click) else None
        if label is None:
            raise NoWord("there is neither the picture nor a button")
        return self._table.buttons[label]

    def _shown(self, reply: Mapping[str, Any], picture: bytes) -> Observation:
        size = (reply["width"], reply["height"])
        if self._observation is not None and size != self._size:
            raise EnvError(f"the picture has changed its size from {self._size} to {size}", where=self._source.id)
        image = Image.frombytes("RGB", size, picture)
        if self._source.scale != 1:
            image = image.resize((size[0] * self._source.scale, size[1] * self._source.scale), Image.Resampling.NEAREST)
        if self._table.buttons:
            if self._observation is None:
                self._strip = ButtonStrip(list(self._table.buttons), image.width)
            assert self._strip is not None
            image = self._strip.below(image)
        self._size = size
        return Observation(Screenshot(image), reply["text"])

    def _trouble(self, reply: Mapping[str, Any]) -> dict[str, Any]:
        """What the environment says about an action that had no effect, as ``rejected``."""
        return {}

    def _goal(self, reply: Mapping[str, Any]) -> str | None:
        if self._source.goal_from is None:
            return None
        goal = at({"observation": reply["text"], "info": reply["info"]}, self._source.goal_from)
        if not isinstance(goal, str) or not goal:
            raise EnvError(f"the environment tells no goal at {self._source.goal_from}", where=self._source.id)
        return goal


def unscaled(action: Action, scale: int) -> Action:
    """The action in pixels of a picture that is shown ``scale`` times as large."""
    if scale == 1:
        return action
    told = action.model_dump()
    for name in ("x", "y", "x2", "y2"):
        if told.get(name) is not None:
            told[name] //= scale
    if "path" in told:
        told["path"] = tuple((x // scale, y // scale) for x, y in told["path"])
    return type(action).model_validate(told)
