"""``SimEnv``: the simulated phone behind the environment seam."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio.lowlevel

from cuarl.env.base import Capabilities
from cuarl.env.settle import Patience, settle
from cuarl.env.sim import device
from cuarl.env.sim.faults import Faults, FaultyScreen
from cuarl.env.sim.kit.render import Frame, differ, draw
from cuarl.env.sim.look import Look
from cuarl.env.sim.planner import Planner
from cuarl.env.sim.report import state_mapping
from cuarl.env.sim.start import prepare
from cuarl.env.sim.state import DERIVED, VOLATILE
from cuarl.env.sim.view import view
from cuarl.env.sim.world import PROFILES, Profile, World
from cuarl.errors import ConfigError, EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Observation, Screenshot, StepResult


class SimEnv:
    """A simulated phone for one episode.

    ``profile`` names the screen (``small``, ``phone``, ``tall``); ``clutter`` is the share of episodes that start with a
    pop-up in the way. ``faults`` are troubles to inject, which ``patience`` (see ``env/settle.py``) waits out in simulated
    time; without any, every step is instantaneous.
    """

    def __init__(
        self,
        profile: str = "small",
        *,
        clutter: float = 0.1,
        faults: Faults | None = None,
        patience: Patience | None = None,
    ) -> None:
        if profile not in PROFILES:
            raise ConfigError(f"unknown profile {profile!r}", hint=f"use one of {', '.join(PROFILES)}")
        self.profile: Profile = PROFILES[profile]
        self.clutter = clutter
        self.world: World | None = None
        self.patience = patience
        self._screen = FaultyScreen(faults) if faults else None
        self._planner: Planner | None = None
        self._shown: tuple[World, Frame] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the phone can do."""
        return Capabilities(device.ACTIONS, state=True, exact_reset=True, oracle=True, kind="phone")

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault, with those that the device changed by itself."""
        return (*VOLATILE, *DERIVED, *(self.world.ui.derived if self.world else ()))

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Set the phone up: the look of ``seed``, the task's preset. Raises TaskError for a preset that can't be."""
        if self.world is not None:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._planner = Planner(task)
        self.world = prepare(task, Look.drawn(seed, self.clutter), self.profile)
        return self._observe(self.world)

    async def step(self, action: Action) -> StepResult:
        """Carry out one action."""
        await anyio.lowlevel.checkpoint()
        before = self._running()
        if self._screen:
            await self._screen.before_step()
        old = self._frame(before)
        info: dict[str, Any] = {"settle_ms": 0.0, "settled": True}
        try:
            self.world = device.step(before, action)
        except device.Rejected as reason:
            info["rejected"] = str(reason)
        else:
            assert self._planner is not None
            self._planner.acted(action)
        new = self._frame(self._running())
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

    def oracle_action(self) -> Action:
        """The next action of a solution; ``Finish(success=False)``, saying where it is stuck, if there seems to be none."""
        world = self._running()
        assert self._planner is not None
        return self._planner.next(world)

    async def state(self) -> Mapping[str, Any]:
        """The device state, with ``ui`` for navigation tasks."""
        return state_mapping(self._running())

    async def close(self) -> None:
        """Nothing to release."""

    def _running(self) -> World:
        if self.world is None:
            raise EnvError("the environment was not reset", hint="call reset(task, seed) first")
        return self.world

    def _frame(self, world: World) -> Frame:
        if self._shown is None or self._shown[0] is not world:
            last = self._shown[1] if self._shown else None
            self._shown = world, draw(view(world), last)
        return self._shown[1]

    def _observe(self, world: World) -> Observation:
        text = {"app": world.ui.app, "page": world.ui.page}
        return Observation(self._frame(world).screenshot, text)
