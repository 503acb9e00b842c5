"""``SimEnv``: the simulated phone behind the environment seam."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from cuarl.env.base import Capabilities
from cuarl.env.settle import Patience
from cuarl.env.sim.base import SimulatedEnv
from cuarl.env.sim.faults import Faults
from cuarl.errors import ConfigError
from cuarl.sim.kit.scene import Box, Scene
from cuarl.sim.phone import device
from cuarl.sim.phone.astray import astray
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.graph import surveyed
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.planner import Planner
from cuarl.sim.phone.report import state_mapping
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.state import DERIVED, VOLATILE
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES, Profile, World
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action


class SimEnv(SimulatedEnv[World]):
    """A simulated phone for one episode.

    ``profile`` names the screen (``small``, ``phone``, ``tall``); ``clutter`` is the share of episodes that start with
    a pop-up in the way; ``astray`` is how many taps lead to a wrong page before an episode starts, at most; with
    ``oracle_opens`` the oracle opens apps by name; ``faults`` and ``patience`` are as in ``SimulatedEnv``.
    """

    def __init__(
        self,
        profile: str = "small",
        *,
        clutter: float = 0.1,
        astray: int = 0,
        oracle_opens: bool = False,
        faults: Faults | None = None,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(faults=faults, patience=patience)
        if profile not in PROFILES:
            raise ConfigError(f"unknown profile {profile!r}", hint=f"use one of {', '.join(PROFILES)}")
        self.profile: Profile = PROFILES[profile]
        self.clutter, self.astray, self.oracle_opens = clutter, astray, oracle_opens

    @property
    def capabilities(self) -> Capabilities:
        """What the phone can do."""
        return Capabilities(device.ACTIONS, state=True, exact_reset=True, oracle=True, kind="phone")

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault, with those that the device changed by itself."""
        return (*VOLATILE, *DERIVED, *(self.world.ui.derived if self.world else ()))

    def start(self, task: TaskInstance, seed: int) -> tuple[World, Planner]:
        """The phone of a seed, and its planner."""
        world = prepare(task, Look.drawn(seed, self.clutter), self.profile)
        planner = Planner(task, world, opens=self.oracle_opens)
        if self.astray:
            world = astray(world, self.astray, seed)
            planner.stray()
        return world, planner

    def act(self, world: World, action: Action) -> World:
        """What a finger does."""
        return device.step(world, action)

    def scene(self, world: World) -> Scene:
        """The screen laid out."""
        return view(world)

    def report(self, world: World) -> Mapping[str, Any]:
        """The state by section, and ``ui``."""
        return state_mapping(world)

    def text(self, world: World) -> Mapping[str, str]:
        """App and page."""
        return {"app": world.ui.app, "page": world.ui.page}

    def survey(self, world: World) -> Generator[None, None, None]:
        """Find out which pages there are, and where they lead."""
        return surveyed(world)

    def reach(self, x: int, y: int) -> Box | None:
        """The visible part of the control whose middle that is.

        None for a slider, where each place is another value.
        """
        aimed = [e for e in elements(self._running()) if e.centre == (x, y)]
        return aimed[-1].box if aimed and aimed[-1].role != "slider" else None
