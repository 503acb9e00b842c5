"""Goals as rounds of a batch: the same for the same seed, understood by the format, clear of what is evaluated on."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from cuarl.agent import formats
from cuarl.agent.formats import SYSTEM_PROMPTS
from cuarl.agent.formats.base import Size
from cuarl.policy import tiny
from cuarl.pretrain.batches import Batch, Earlier
from cuarl.pretrain.dialogues import COORDINATE, tokens_for
from cuarl.pretrain.facts import Fact, Screen
from cuarl.pretrain.goals import DONE, WORKED_ON, GoalMaker, said
from cuarl.pretrain.soft import Softness, soft_round
from cuarl.pretrain.walks import Scene
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.generator.generate import Companions
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.world import PROFILES, World
from cuarl.tasks.build import bindings
from cuarl.tasks.nearest import BAR, Nearest
from cuarl.tasks.source import load
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Finish

PHONE = formats.get("qwen3-vl", "phone")


@pytest.fixture(scope="module")
def evaluated() -> list[TaskInstance]:
    tasks = load(("settings_eval", "phone_eval"), role=None).tasks
    return [i for task in tasks for i in bindings(task, 20)]


@pytest.fixture(scope="module")
def maker(evaluated: list[TaskInstance]) -> GoalMaker:
    tasks = tuple(load(("settings_train",), role=None).tasks)
    return GoalMaker(str(tiny.path()), dict(SYSTEM_PROMPTS), 32, evaluated, tasks)


def test_a_batch_depends_on_its_seed_alone(maker: GoalMaker) -> None:
    again = pickle.loads(pickle.dumps(maker))  # as worker processes get it
    one, two, other = maker(3, 6, "phone", 0.0), again(3, 6, "phone", 0.0), maker(4, 6, "phone", 0.0)
    assert np.array_equal(one.screens, two.screens)
    assert np.array_equal(one.rounds[0].ids, two.rounds[0].ids)
    assert not np.array_equal(one.screens, other.screens)


def test_companions_keep_clear_of_what_is_evaluated(evaluated: list[TaskInstance]) -> None:
    companions, nearest = Companions(evaluated), Nearest([i.goal for i in evaluated])
    drawn = [task for key in range(4) for task in companions.drawn(f"clear{key}", 40)]
    assert len({task.description for task in drawn}) > 120
    assert max(nearest.of(task.description).similarity for task in drawn) < BAR
    assert {task.split for task in drawn} == {"train"}


def test_goals_about_a_page_are_about_it_alone(evaluated: list[TaskInstance]) -> None:
    companions = Companions(evaluated)
    drawn = {page: companions.about(page, 40) for page in ("settings/sound", "settings/display", "mail/inbox")}
    assert len(drawn["settings/sound"]) > 10
    for page, tasks in drawn.items():
        opened = [check.value for task in tasks for check in task.checks if check.path == "ui.current_activity"]
        assert set(opened) <= {page}
    sounds, looks = (
        {c.path for t in drawn[p] for c in t.checks if not c.path.startswith("ui.")} for p in list(drawn)[:2]
    )
    assert sounds and looks and not sounds & looks


def _home() -> World:
    return prepare(TaskInstance(task_id="t", goal="g"), Look.drawn(5), PROFILES["small"])


@pytest.mark.parametrize("seed", range(5))
def test_taps_are_spread_over_what_they_are_meant_for(seed: int) -> None:
    world = _home()
    icon = next(e for e in elements(world) if e.role == "icon")
    call = said(random.Random(seed), world, Click(x=icon.centre[0], y=icon.centre[1]))
    action = PHONE.parse(call, Size(192, 384)).action
    assert isinstance(action, Click)
    assert icon.box[0] <= action.x < icon.box[2]
    assert icon.box[1] <= action.y < icon.box[3]


def test_what_is_worked_on_and_what_is_done_count_more(maker: GoalMaker) -> None:
    world = _home()
    tokens = tokens_for(maker.tokenizer, SYSTEM_PROMPTS["phone"], 72)
    task, done = TaskInstance(task_id="a", goal="Show the clock."), Finish()
    at = elements(world)[0].centre
    tap = Click(x=at[0], y=at[1])
    first, second = maker._goals(random.Random(0), Scene(world, ((task, tap), (task, done))), tokens)
    third, fourth = maker._goals(random.Random(0), Scene(world, ((task, done), (task, tap))), tokens)
    assert set(first[1]) == {0, WORKED_ON, WORKED_ON * COORDINATE}
    assert set(second[1]) == {0, 1}
    assert set(third[1]) == {0, DONE}
    assert set(fourth[1]) == {0, 1, COORDINATE}
    assert 0 < sum(w > 0 for w in first[1]) < len(first[0])


def test_requests_about_what_is_so_already_can_be_left_out() -> None:
    screen = Screen(192, 384, (Fact("Torch", (0, 0, 50, 20), checked=True, role="switch"),))
    softness = Softness(follow=1.0, finish=0.0, held=None, elsewhere=0.0)
    made = [soft_round(random.Random(i), screen, softness) for i in range(300)]
    told = [r for r in made if r is not None]
    assert len(told) < 300
    assert told
    assert all("terminate" not in r.call for r in told)
    assert not any("on" in r.request.rstrip(".").split() and "off" not in r.request for r in told)


def test_earlier_batches_are_kept_up_to_a_number() -> None:
    kept = Earlier(0, most=3)
    assert kept.drawn(2) == []
    for i in range(10):
        kept.keep(Batch("phone", np.full((1, 1), i), (), None))  # type: ignore[arg-type]
    drawn = kept.drawn(5)
    assert len(drawn) == 3
    assert len({int(b.screens[0, 0]) for b in drawn}) == 3
