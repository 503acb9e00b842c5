"""Walks through a simulated phone: at every screen many goals are asked for, each with its planner's next action.

An episode that is imitated teaches one goal a screen. Here a device has room for many tasks, one of them is worked on,
now and then a finger slips, and on each screen that comes up the planner says what each of the tasks would need next:
labels of the states that a policy gets into (DAgger, arXiv:1011.0686), and of all goals at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from cuarl.sim.device.rejected import Rejected
from cuarl.sim.phone.astray import astray
from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.graph import page_graph
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.operate import holds
from cuarl.sim.phone.planner import Planner
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.world import PROFILES, Profile, World
from cuarl.tasks.check import ANSWER
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Answer, Button, Click, Finish

CLUTTER = 0.1
"""Share of devices with a pop-up in the way, as in episodes."""
SLIP = 0.15
"""How often a tap leads elsewhere instead."""
LOST = 0.25
"""Share of walks that begin on a wrong page."""
ON = 0.5
"""How often another task is begun where one has ended."""
HOMEWARD, UPWARD = 0.15, 0.35
"""Shares of the labels of other goals that are kept where they only lead out of the app, or back from a page."""
UP = ("Navigate up", "Back")
FORMS = ("one", "several")
"""Generated tasks of these forms ask for the same whatever else has changed on the device."""


About = Callable[[str], Sequence[TaskInstance]]
"""Goals about a page, by its id."""


def _nothing(page: str) -> Sequence[TaskInstance]:
    return ()


class Scene(NamedTuple):
    """A screen, and what some goals need next."""

    world: World
    labels: tuple[tuple[TaskInstance, Action], ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """How a device is walked through."""

    turns: int = 14
    """At most."""
    others: int = 5
    """Most goals that are asked about a screen beside the one that is worked on."""
    tried: int = 16
    """Most goals whose next action is worked out for that."""
    here: int = 3
    """Most goals about the very page that is shown: what it says decides whether they are reached."""
    profile: Profile = PROFILES["small"]

    def scenes(self, rng: random.Random, tasks: Sequence[TaskInstance], about: About = _nothing) -> Iterator[Scene]:
        """The screens of one walk on a device on which all ``tasks`` can be done that do not contradict one another.

        ``about`` gives goals about a page.
        """
        device = _Device(rng, tasks, self.profile)
        world = device.begun
        if rng.random() < LOST:
            world = astray(world, 3, rng.randrange(2**31))
        task, planner = None, None
        for _ in range(self.turns):
            if task is None or planner is None:
                task = device.next_task(rng, world)
                if task is None:
                    return
                planner = Planner(task, world)
            action = planner.next(world)
            if _is_hopeless(action):
                device.spent.add(task.task_id)
                task = None
                continue
            others = islice(device.asked(rng, world, task, self.tried), self.others)
            yield Scene(world, ((task, action), *others, *self._of_page(rng, world, about)))
            if isinstance(action, Finish | Answer):
                device.spent.add(task.task_id)
                task = None
                if rng.random() > ON:
                    return
            elif rng.random() < SLIP:
                world = astray(world, 1, rng.randrange(2**31))
                planner.stray()
            else:
                world = step(world, action)
                planner.acted(action)

    def _of_page(self, rng: random.Random, world: World, about: About) -> Iterator[tuple[TaskInstance, Action]]:
        """Goals about the page, half of them reached where half of its switches are as they say."""
        found = list(about(world.ui.page)) if world.ui.app and not world.ui.overlay else []
        if not any("page.open" not in task.tags for task in found):
            found = found[:1]
        for task in rng.sample(found, min(self.here, len(found))):
            action = _first(task, world) if _can_be_told(task, world) else None
            if action is not None:
                yield task, action


class _Device:
    """One device and the tasks that can be asked for on it."""

    def __init__(self, rng: random.Random, tasks: Sequence[TaskInstance], profile: Profile) -> None:
        preset: dict[str, Any] = {}
        for task in tasks:
            preset |= {path: value for path, value in task.preset.items() if not path.startswith("ui.")}
        self.tasks = [t for t in tasks if _is_free(t) or all(preset.get(p) == v for p, v in t.preset.items())]
        look = Look.drawn(rng.randrange(2**31), CLUTTER)
        whole = TaskInstance(task_id="walk", goal="", preset=preset)
        self.begun = prepare(whole, look, profile)
        self.spent: set[str] = set()
        """Tasks that have been worked on."""
        self._away: dict[str, set[str]] = {}
        """By app: tasks that are done elsewhere."""

    def _can_be_asked(self, task: TaskInstance, world: World) -> bool:
        if task.task_id in self.spent:
            return False
        return _can_be_told(task, world) if _is_free(task) else world.state is self.begun.state

    def next_task(self, rng: random.Random, world: World) -> TaskInstance | None:
        """One to work on."""
        left = [task for task in self.tasks if self._can_be_asked(task, world)]
        return rng.choice(left) if left else None

    def asked(
        self, rng: random.Random, world: World, but: TaskInstance, most: int
    ) -> Iterator[tuple[TaskInstance, Action]]:
        """What other tasks need next; ``most`` of them are looked at, few of those that only lead out of the app."""
        away = self._away.setdefault(world.ui.app, set())
        left = [task for task in self.tasks if task is not but and task.task_id not in away]
        rng.shuffle(left)
        for task in islice((task for task in left if self._can_be_asked(task, world)), most):
            action = _first(task, world)
            if action is None:
                continue
            if _leaves(world, action):
                away.add(task.task_id)
                if rng.random() > HOMEWARD:
                    continue
            elif _goes_up(world, action) and rng.random() > UPWARD:
                continue
            yield task, action


def _first(task: TaskInstance, world: World) -> Action | None:
    """The first action of a solution that begins in ``world``; None if there is none."""
    try:
        action = Planner(task, world).next(world)
    except Rejected:
        return None
    return None if _is_hopeless(action) else action


def _can_be_told(task: TaskInstance, world: World) -> bool:
    """Whether the page shows each part of a goal that has been done: what can't be seen is no ground for a claim."""
    done = [check.path for check in task.checks if not check.path.startswith("ui.") and holds(world, check)]
    return all(not world.ui.overlay and world.ui.page in page_graph(world).pages_for(path) for path in done)


def _leaves(world: World, action: Action) -> bool:
    """Whether an action only leads out of the app."""
    if not isinstance(action, Button | Click) or not world.ui.app or world.ui.overlay:
        return False
    after = step(world, action).ui
    return not after.app and not after.overlay and not after.dialog


def _goes_up(world: World, action: Action) -> bool:
    """Whether an action only leads back from a page."""
    if isinstance(action, Button):
        return action.name == "back"
    at = (action.x, action.y) if isinstance(action, Click) else None
    return any(e.centre == at and e.label in UP for e in elements(world))


def _is_hopeless(action: Action) -> bool:
    return isinstance(action, Finish) and not action.success


def _is_free(task: TaskInstance) -> bool:
    """Whether a task asks for the same whatever has been changed on the device."""
    return bool(set(task.tags) & set(FORMS)) and not task.plan and not any(c.path == ANSWER for c in task.checks)
