"""``SimEnv``: the simulated phone behind the environment seam."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cuarl.env.base import Capabilities
from cuarl.env.sim import device, launcher, tree
from cuarl.env.sim.kit.effects import Dialog, Dismiss, Launch, Open, Option, Overlay
from cuarl.env.sim.kit.render import Frame, differ, draw
from cuarl.env.sim.look import POPUPS, Look
from cuarl.env.sim.planner import Planner
from cuarl.env.sim.reduce import apply
from cuarl.env.sim.report import state_mapping
from cuarl.env.sim.state import DERIVED, VOLATILE, DeviceState
from cuarl.env.sim.view import view
from cuarl.env.sim.world import PROFILES, Profile, World
from cuarl.errors import ConfigError, EnvError, TaskError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Observation, StepResult


class SimEnv:
    """A simulated phone for one episode.

    ``profile`` names the screen (``small``, ``phone``, ``tall``); ``clutter`` is the share of episodes that start with a
    pop-up in the way.
    """

    def __init__(self, profile: str = "small", *, clutter: float = 0.1) -> None:
        if profile not in PROFILES:
            raise ConfigError(f"unknown profile {profile!r}", hint=f"use one of {', '.join(PROFILES)}")
        self.profile: Profile = PROFILES[profile]
        self.clutter = clutter
        self.world: World | None = None
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
        before = self._running()
        info: dict[str, Any] = {"settle_ms": 0.0, "settled": True}
        try:
            self.world = device.step(before, action)
        except device.Rejected as reason:
            info["rejected"] = str(reason)
        if self._planner and "rejected" not in info:
            self._planner.acted(action)
        old = self._frame(before)
        new = self._frame(self._running())
        info["changed"] = differ(old, new)
        return StepResult(self._observe(self._running()), info=info)

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


def prepare(task: TaskInstance, look: Look, profile: Profile) -> World:
    """The world in which an episode of ``task`` starts."""
    state = replace(DeviceState(), launcher=replace(DeviceState().launcher, pages=()))
    world = World(state, look=look, profile=profile)
    world = world.put("display.dark_theme", look.dark).put("battery.level", look.battery)
    world = world.put("notifications.items", look.notifications)
    start: dict[str, Any] = {}
    for path, value in task.preset.items():
        if path.startswith("ui."):
            start[path] = value
        else:
            world = replace(world, state=_preset(world.state, path, value, task))
    if not world.state.launcher.pages:
        pages = launcher.first_layout(world.state, look.seed, launcher.rows_that_fit(profile.height))
        world = world.put("launcher.pages", pages)
    for path, value in start.items():
        world = _start(world, path, value, task)
    return _with_popup(world)


def _preset(state: DeviceState, path: str, value: Any, task: TaskInstance) -> DeviceState:
    try:
        return tree.put_plain(state, path, value)
    except KeyError as error:
        raise TaskError(f"preset {path!r}: there is no {error.args[0]!r}", where=f"task {task.task_id}") from error
    except TypeError as error:
        raise TaskError(f"preset {path!r}: {error}", where=f"task {task.task_id}") from error


def _start(world: World, path: str, value: Any, task: TaskInstance) -> World:
    match path:
        case "ui.page":
            return apply(apply(world, Launch(str(value).partition("/")[0])), Open(str(value)))
        case "ui.app":
            return apply(world, Launch(str(value)))
        case "ui.overlay":
            return apply(world, Overlay(str(value)))
        case _ if path.startswith("ui.form."):
            return world.put(path, value)
    raise TaskError(
        f"preset {path!r} can't be set",
        where=f"task {task.task_id}",
        hint="use ui.app, ui.page, ui.overlay or ui.form.NAME",
    )


def _with_popup(world: World) -> World:
    if world.look.popup < 0:
        return world
    title, text, button = POPUPS[world.look.popup]
    return world.with_ui(dialog=Dialog(title, text, buttons=(Option(button, Dismiss()),), kind="popup"))
