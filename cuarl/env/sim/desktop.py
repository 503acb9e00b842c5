"""``DesktopEnv``: the simulated Linux desktop behind the environment seam."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.env.base import Capabilities
from cuarl.env.settle import Patience
from cuarl.env.sim.base import SimulatedEnv
from cuarl.env.sim.faults import Faults
from cuarl.errors import ConfigError
from cuarl.sim.desktop import device
from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.oracle import DesktopOracle
from cuarl.sim.desktop.report import state_mapping
from cuarl.sim.desktop.start import prepare
from cuarl.sim.desktop.state import DERIVED, VOLATILE
from cuarl.sim.desktop.view import view
from cuarl.sim.desktop.world import PROFILES, DesktopWorld, Screen
from cuarl.sim.kit.scene import Scene
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action


class DesktopEnv(SimulatedEnv[DesktopWorld]):
    """A simulated desktop for one episode.

    ``profile`` names the screen (``desktop-small``, ``desktop``); ``clutter`` is the share of episodes that start with
    a notification in the way; ``faults`` and ``patience`` are as in ``SimulatedEnv``.
    """

    def __init__(
        self,
        profile: str = "desktop-small",
        *,
        clutter: float = 0.1,
        faults: Faults | None = None,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(faults=faults, patience=patience)
        if profile not in PROFILES:
            raise ConfigError(f"unknown profile {profile!r}", hint=f"use one of {', '.join(PROFILES)}")
        self.profile: Screen = PROFILES[profile]
        self.clutter = clutter

    @property
    def capabilities(self) -> Capabilities:
        """What the desktop can do."""
        return Capabilities(device.ACTIONS, state=True, exact_reset=True, oracle=True, kind="desktop")

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault."""
        return (*VOLATILE, *DERIVED)

    def start(self, task: TaskInstance, seed: int) -> tuple[DesktopWorld, DesktopOracle]:
        """The desktop of a seed, and its oracle."""
        return prepare(task, DesktopLook.drawn(seed, self.clutter), self.profile), DesktopOracle(task)

    def act(self, world: DesktopWorld, action: Action) -> DesktopWorld:
        """What mouse and keyboard do."""
        return device.step(world, action)

    def scene(self, world: DesktopWorld) -> Scene:
        """The screen laid out."""
        return view(world)

    def report(self, world: DesktopWorld) -> Mapping[str, Any]:
        """The state by section, and ``ui``."""
        return state_mapping(world)

    def text(self, world: DesktopWorld) -> Mapping[str, str]:
        """App of the focused window, and what it shows."""
        top = world.focused
        return {"app": top.app, "page": top.page} if top else {"app": "", "page": ""}
