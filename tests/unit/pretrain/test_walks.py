"""Walks on which many goals are asked at every screen: each label begins a solution, each claim can be seen to hold."""

from __future__ import annotations

import random

import pytest

from cuarl.pretrain.walks import Scene, Walk
from cuarl.sim.phone.device import step
from cuarl.sim.phone.generator.generate import Companions
from cuarl.sim.phone.graph import page_graph
from cuarl.sim.phone.planner import Planner
from cuarl.sim.phone.report import state_mapping
from cuarl.tasks.check import ANSWER, evaluate
from cuarl.tasks.source import load
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Answer, Finish

MOST_TURNS = 80
WRITTEN = ("phone_train", "settings_train", "recipe_train")


@pytest.fixture(scope="module")
def walks() -> list[list[Scene]]:
    """On two devices of generated tasks and on two of the suites'."""
    companions, written = Companions(), load(WRITTEN, role=None).tasks
    found: list[list[Scene]] = []
    for seed in range(4):
        rng = random.Random(f"walks/{seed}")
        if seed < 2:
            tasks = [task.bind({}) for task in companions.drawn(f"test{seed}", 60)]
        else:
            tasks = [task.instantiate(seed) for task in rng.sample(written, 60)]
        for _ in range(3):
            walk = Walk().scenes(rng, tasks, lambda page: [task.bind({}) for task in companions.about(page, 12)])
            found.append(list(walk))
    return found


@pytest.fixture(scope="module")
def scenes(walks: list[list[Scene]]) -> list[Scene]:
    """Of all walks."""
    return [scene for walk in walks for scene in walk]


def _labels(scenes: list[Scene]) -> list[tuple[Scene, TaskInstance, Action]]:
    """What was said of goals that are asked beside the one that is worked on, which may stand on a line of its plan."""
    return [(scene, task, action) for scene in scenes for task, action in scene.labels[1:]]


def _holds(task: TaskInstance, scene_state: dict[str, object], answer: str | None) -> bool:
    return all(evaluate(check, scene_state, answer).passed for check in task.checks)


def test_labels_begin_solutions(scenes: list[Scene]) -> None:
    asked = random.Random(1).sample(_labels(scenes), 120)
    failed = []
    for scene, task, action in asked:
        planner, world = Planner(task, scene.world), scene.world
        for _ in range(MOST_TURNS):
            done = planner.next(world)
            if isinstance(done, Finish):
                break
            if world is scene.world:
                assert done == action
            if not isinstance(done, Answer):
                world = step(world, done)
            planner.acted(done)
        if not _holds(task, dict(state_mapping(world)), planner.answer):
            failed.append((task.goal, action))
    assert not failed


def test_success_is_claimed_where_the_state_says_so_and_the_page_shows_it(scenes: list[Scene]) -> None:
    claims = [(scene.world, task) for scene, task, action in _labels(scenes) if isinstance(action, Finish)]
    assert claims
    for world, task in claims:
        assert _holds(task, dict(state_mapping(world)), None), task.goal
        shown = [c.path for c in task.checks if not c.path.startswith("ui.")]
        assert all(world.ui.page in page_graph(world).pages_for(path) for path in shown), task.goal


def test_walks_lead_to_many_pages_and_to_ends(scenes: list[Scene]) -> None:
    assert len({scene.world.ui.page for scene in scenes}) > 20
    worked_on = [scene.labels[0][1] for scene in scenes]
    assert sum(isinstance(action, Finish | Answer) for action in worked_on) >= 6
    assert all(not isinstance(action, Finish) or action.success for scene in scenes for _, action in scene.labels)


def test_what_depends_on_the_device_is_asked_while_it_is_as_it_was(walks: list[list[Scene]]) -> None:
    """A question, a condition or a plan is about the device that its tasks left."""
    strict, changed = 0, 0
    for walk in walks:
        begun = walk[0].world.state
        for scene in walk:
            changed += scene.world.state is not begun
            for task, _ in scene.labels[1:]:
                if task.plan or any(check.path == ANSWER for check in task.checks):
                    strict += 1
                    assert scene.world.state is begun, task.goal
    assert strict > 20
    assert changed > 20
