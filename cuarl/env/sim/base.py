"""What the simulated devices have in common: one episode behind the environment seam, whatever the device is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from anyio import to_thread

from cuarl.env.base import Capabilities
from cuarl.env.settle import Patience, settle
from cuarl.env.sim.faults import Faults, FaultyScreen
from cuarl.errors import EnvError
from cuarl.pacing import in_parts, own_pass
from cuarl.sim.device.rejected import Rejected
from cuarl.sim.kit.render import Frame, differ, draw, drawing, large
from cuarl.sim.kit.scene import Box, Scene
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Observation, Point, Screenshot, StepResult, placed, points

CLOSE = 0.006
"""How far from the oracle's point another counts as that: a share of the side, the rounding of a model's own words."""

W = TypeVar("W")
W_contra = TypeVar("W_contra", contravariant=True)


class Oracle(Protocol[W_contra]):
    """Knows how a task is solved."""

    def next(self, world: W_contra) -> Action:
        """The next action of a solution; ``Finish(success=False)`` if there seems to be none."""
        ...

    def acted(self, action: Action) -> None:
        """Note that the environment carried ``action`` out."""
        ...


class SimulatedEnv(ABC, Generic[W]):
    """A simulated device for one episode: a frozen world, a pure step, a picture of each world.

    ``faults`` are troubles to inject, which ``patience`` (see ``env/settle.py``) waits out in simulated time; without
    any, every step is instantaneous.
    """

    def __init__(self, *, faults: Faults | None = None, patience: Patience | None = None) -> None:
        self.world: W | None = None
        self.patience = patience
        self._screen = FaultyScreen(faults) if faults else None
        self._oracle: Oracle[W] | None = None
        self._told: Action | None = None
        self._shown: tuple[W, Frame] | None = None

    @property
    def device_name(self) -> str:
        """Its kind: nothing tells one simulated device from another."""
        return f"simulated {self.capabilities.kind}"

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What the device can do."""

    @property
    @abstractmethod
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault."""

    @abstractmethod
    def start(self, task: TaskInstance, seed: int) -> tuple[W, Oracle[W]]:
        """The world in which an episode starts, and who can solve it. Raises TaskError for a preset that can't be."""

    @abstractmethod
    def act(self, world: W, action: Action) -> W:
        """The world after an action. Raises ``Rejected``."""

    @abstractmethod
    def scene(self, world: W) -> Scene:
        """What is on the screen."""

    @abstractmethod
    def report(self, world: W) -> Mapping[str, Any]:
        """What validators see."""

    @abstractmethod
    def text(self, world: W) -> Mapping[str, str]:
        """Text fields of an observation."""

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Set the device up: the look of ``seed``, the task's preset. Raises TaskError for a preset that can't be."""
        if self.world is not None:
            raise EnvError("this environment was reset already; an environment serves one episode")
        await own_pass()
        self.world, self._oracle = self.start(task, seed)
        await self._draw(self.world)
        return self._observe(self.world)

    async def step(self, action: Action) -> StepResult:
        """Carry out one action."""
        await own_pass()
        before = self._running()
        if self._screen:
            await self._screen.before_step()
        old, meant = self._frame(before), self._meant(action)
        info: dict[str, Any] = {"settle_ms": 0.0, "settled": True}
        try:
            self.world = self.act(before, action)
        except Rejected as reason:
            info["rejected"] = str(reason)
        else:
            assert self._oracle is not None
            self._oracle.acted(meant)
        new = await self._draw(self._running())
        info["changed"] = differ(old, new)
        observation = self._observe(self._running())
        if self._screen and "rejected" not in info:
            observation = await self._settled(self._screen, old.screenshot, observation, info)
        return StepResult(observation, info=info)

    async def _settled(
        self, screen: FaultyScreen, old: Screenshot, observation: Observation, info: dict[str, Any]
    ) -> Observation:
        screen.show(old, observation.screenshot)
        seen = await settle(old, screen.shoot, patience=self.patience, clock=screen.clock)
        info |= {"settle_ms": seen.settle_ms, "settled": seen.settled, "changed": seen.changed}
        return replace(observation, screenshot=seen.screenshot)

    def picture(self) -> Screenshot:
        """The screen as it is."""
        return self._frame(self._running()).screenshot

    def oracle_action(self) -> Action:
        """The next action of a solution.

        ``Finish(success=False)``, saying where it is stuck, if there seems to be none.
        """
        world = self._running()
        assert self._oracle is not None
        self._told = self._oracle.next(world)
        return self._told

    async def ask_oracle(self) -> Action:
        """The same, with passes of the event loop for others between the parts of what has to be found out first."""
        if self._told is None:
            await in_parts(self.survey(self._running()))
        return self.oracle_action()

    def survey(self, world: W) -> Generator[None, None, None]:
        """Find out what the oracle has to know of a device before it plans, in parts."""
        yield from ()

    async def around(self, x: int, y: int) -> Box | None:
        """Left, top, right, bottom of the control with the middle ``(x, y)``, if a tap anywhere in it is the same."""
        return self.reach(x, y)

    def reach(self, x: int, y: int) -> Box | None:
        """The same, told at once. A device that doesn't know says None."""
        return None

    def _meant(self, action: Action) -> Action:
        """What the oracle told, if ``action`` is that at other points that come to the same."""
        told = self._told
        if told is None or told.kind != action.kind:
            return action
        there, here = points(told), points(action)
        if not there or len(there) != len(here) or placed(action, there) != told:
            return action
        same = all(self._same(a, b) for a, b in zip(there, here, strict=True))
        return told if same else action

    def _same(self, there: Point, here: Point) -> bool:
        x, y = here
        box = self.reach(*there)
        if box is not None:
            return box[0] <= x < box[2] and box[1] <= y < box[3]
        width, height = self.scene(self._running()).size
        return abs(x - there[0]) <= CLOSE * width and abs(y - there[1]) <= CLOSE * height

    async def state(self) -> Mapping[str, Any]:
        """The device state, with ``ui`` for navigation tasks."""
        return self.report(self._running())

    async def close(self) -> None:
        """Nothing to release."""

    def _running(self) -> W:
        if self.world is None:
            raise EnvError("the environment was not reset", hint="call reset(task, seed) first")
        return self.world

    def _frame(self, world: W) -> Frame:
        if self._shown is None or self._shown[0] is not world:
            last = self._shown[1] if self._shown else None
            self._shown = world, draw(self.scene(world), last)
        return self._shown[1]

    async def _draw(self, world: W) -> Frame:
        """``_frame``, with passes of the event loop for others in between."""
        if self._shown is None or self._shown[0] is not world:
            last = self._shown[1] if self._shown else None
            frame = await in_parts(drawing(self.scene(world), last))
            if large(frame.image.size) and not frame.screenshot.digested:
                await to_thread.run_sync(getattr, frame.screenshot, "digest")  # 15 ms for 1080 by 2400 pixels
            self._shown = world, frame
        return self._shown[1]

    def _observe(self, world: W) -> Observation:
        return Observation(self._frame(world).screenshot, self.text(world))
