"""The shipped suites: nothing leaks, everything that is promised is there, and a sample is proven to be solvable."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from itertools import product

import pytest

from cuarl.env.sim.devices import make_sim
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import writes
from cuarl.sim.phone.apps import build
from cuarl.sim.phone.graph import controls, page_graph
from cuarl.sim.phone.world import World
from cuarl.tasks.build import bindings
from cuarl.tasks.library import Library
from cuarl.tasks.review import Judged, review
from cuarl.tasks.select import Filters
from cuarl.tasks.source import load
from cuarl.tasks.task import CATEGORIES, DIFFICULTIES, Task
from cuarl.types import Answer, Finish
from cuarl.workflow.task_proofs import prove

ALL_BINDINGS = 500
LATER_TRAIN = {
    "train_01_open_settings", "train_02_max_brightness", "train_03_airplane_mode", "train_04_check_brightness",
    "train_05_disable_wifi", "train_06_min_brightness", "train_09_clear_notifications", "train_10_timeout_30s",
    "train_11_timeout_1min", "train_12_timeout_2min", "train_13_disable_auto_time",
    "train_14_enable_battery_saver", "train_19_uninstall_instagram", "train_21_create_downloads_folder",
    "train_22_download_gbox_logo", "train_23_check_gbox_keyboard_storage", "train_26_check_chrome_storage",
    "train_30_uninstall_facebook", "train_32_check_instagram_storage", "train_35_timeout_5min",
    "train_36_timeout_10min", "train_43_clear_all_notifications", "train_48_timeout_30min",
}  # fmt: skip
LATER_EVAL = {
    "eval_01_display_timeout_5min", "eval_02_dnd_mode_enable", "eval_05_enable_battery_saver",
    "eval_06_uninstall_instagram", "eval_09_create_downloads_folder", "eval_10_download_gbox_logo",
    "eval_11_check_gbox_keyboard_storage", "eval_12_check_chrome_storage", "eval_16_create_downloads_folder_xyz",
}  # fmt: skip

LIBRARY = Library.open()
TASKS = {role: [t for s in LIBRARY.suites if s.suite.role == role for t in s.tasks] for role in ("train", "eval")}
EVERY = [*TASKS["train"], *TASKS["eval"]]
SWITCHES = {
    role: [t for t in tasks if (t.env, t.category, t.difficulty) == ("phone", "settings", "easy") and "to" in t.params]
    for role, tasks in TASKS.items()
}


def goals(role: str) -> set[str]:
    """Every goal that a suite of the role may ask for, without case."""
    return {instance.goal.casefold() for task in TASKS[role] for instance in bindings(task, ALL_BINDINGS)}


def in_suite(name: str) -> set[str]:
    return {task.id for suite in LIBRARY.suites if suite.name == name for task in suite.tasks}


def test_the_shipped_suites_load_and_have_no_findings() -> None:
    judged = [Judged(one, LIBRARY.role_of(one)) for suite in LIBRARY.suites for one in suite.located]
    assert [f"{f.where}: {f.task_id}: {f.text}" for f in review(judged)] == []


def test_no_task_has_more_bindings_than_the_tests_look_at() -> None:
    sizes = {t.id: len(list(bindings(t, ALL_BINDINGS))) for t in EVERY}
    assert max(sizes.values()) < ALL_BINDINGS


def test_training_and_evaluation_share_no_goal() -> None:
    trained, held_out = goals("train"), goals("eval")
    assert not trained & held_out
    assert len(held_out) >= 60


@pytest.mark.parametrize(("role", "least"), [("train", 6), ("eval", 4)])
def test_each_category_has_tasks_of_each_difficulty(role: str, least: int) -> None:
    cells = Counter((task.category, task.difficulty) for task in TASKS[role])
    assert {cell for cell in product(CATEGORIES, DIFFICULTIES) if cells[cell] < least} == set()


def test_the_recipes_ids_are_all_there() -> None:
    for suite, kind, count in (("recipe_train", "train", 80), ("recipe_eval", "eval", 20)):
        numbers = {int(m[1]) for name in in_suite(suite) if (m := re.match(rf"{kind}_(\d\d)_", name))}
        assert numbers >= set(range(1, count + 1))
    assert in_suite("recipe_train") >= {"train_02_enable_wifi", "train_05_airplane_mode"} | LATER_TRAIN
    assert in_suite("recipe_eval") >= LATER_EVAL
    assert (len(in_suite("recipe_train")), len(in_suite("recipe_eval"))) == (80 + 22, 20 + 7)


def test_the_recipes_own_example_selects_tasks_of_both_categories() -> None:
    example = (
        '[{"source_type": "demo_training", "category": "settings", "limit": 20}, {"source_type": '
        '"demo_training", "category": "navigation", "limit": 10}]'
    )
    counts = Counter(task.category for task in load([example]).tasks)
    assert counts == {"settings": 20, "navigation": 10}


def test_easy_settings_are_enough_and_of_the_learning_bed() -> None:
    chosen = load(["settings"], Filters(difficulties=("easy",))).tasks
    assert {t.id for t in chosen} == {t.id for t in SWITCHES["train"]} | {
        "train_02_enable_wifi",
        "train_05_airplane_mode",
    }
    assert (len(SWITCHES["train"]), len(SWITCHES["eval"])) == (40, 24)


def test_no_switch_is_both_trained_and_held_out() -> None:
    trained, held_out = ({t.checks[0].path for t in SWITCHES[role]} for role in ("train", "eval"))
    assert not trained & held_out


@pytest.mark.parametrize("task", [*SWITCHES["train"], *SWITCHES["eval"]], ids=lambda task: task.id)
def test_a_switchs_goal_names_the_row_as_it_is_drawn(task: Task) -> None:
    world, (check,) = World(), task.checks
    label = task.description.removeprefix("Turn {to.word} ").removesuffix(".")
    rows = [
        control.label
        for page in page_graph(world).pages_for(check.path)
        if page.startswith("settings/")
        for control in controls(build(world, page).body)
        if isinstance(control, w.Row) and (check.path, ...) in writes(control.on_tap)
    ]
    assert set(rows) == {label}


@pytest.mark.parametrize("task", EVERY[::9], ids=lambda task: task.id)
def test_the_oracle_solves_a_task_that_doing_nothing_does_not(task: Task) -> None:
    proof = asyncio.run(prove(task, 7, make_sim(task.env)))
    assert (proof.problem, proof.steps <= task.max_steps) == ("", True)


async def seen_before_the_answer(task: Task, seed: int) -> tuple[str, str]:
    """What the oracle answers, and all that could be read on the screen at that moment."""
    env = make_sim(task.env, clutter=0.0)
    await env.reset(task.instantiate(seed), seed)
    while not isinstance(action := env.oracle_action(), Answer):
        assert not isinstance(action, Finish)
        await env.step(action)
    assert env.world is not None
    drawn = [item.widget for item in env.scene(env.world).items]
    fields = (getattr(widget, name) for widget in drawn for name in type(widget).__dataclass_fields__)
    return action.text, "\n".join(text for text in fields if isinstance(text, str))


COUNTED = ("how_many_saved_networks",)
"""Tasks whose answer is not written anywhere: one counts."""


@pytest.mark.parametrize(
    "task", [t for t in EVERY if "answer" in t.tags and t.id not in COUNTED], ids=lambda task: task.id
)
def test_an_answer_can_be_read_on_the_screen_and_differs_by_seed(task: Task) -> None:
    answers = set()
    for seed in range(6):
        answer, screen = asyncio.run(seen_before_the_answer(task, seed))
        assert answer in screen
        answers.add(answer)
    assert len(answers) > 1
