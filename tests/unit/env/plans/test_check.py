"""A plan is followed or refused, never ignored."""

from __future__ import annotations

import pytest

from cuarl.config.load import resolve
from cuarl.env.plans.check import UNPLANNED, check_plans, plan_problem
from cuarl.errors import TaskError
from cuarl.settings import Settings
from cuarl.tasks.suites import load_suite, shipped_folder
from cuarl.tasks.task import Task
from cuarl.workflow import environments

KNOWN = {
    "browser": "click",
    "linux": "run",
    "phone": "tap",
    "desktop": "click",
    "adb": "click",
    "gbox": "click",
    "gym": "click",
    "pods": "type",
}


def planned(env: str, word: str) -> Task:
    return Task(id="t", description="d", env=env, plan=({word: "a"},))


@pytest.mark.parametrize("env", KNOWN)
def test_a_plan_says_what_its_environment_knows(env: str) -> None:
    assert plan_problem(planned(env, KNOWN[env]).instantiate(0)) == ""
    assert "step 1 of the plan" in plan_problem(planned(env, "juggle").instantiate(0))


@pytest.mark.parametrize("env", UNPLANNED)
def test_a_plan_that_nobody_follows_is_refused(env: str) -> None:
    task = planned(env, "click")
    assert (
        plan_problem(task.instantiate(0)) == f"it has a plan, and the environment {env} can't follow one; leave it out"
    )
    assert plan_problem(task.model_copy(update={"plan": ()}).instantiate(0)) == ""
    with pytest.raises(TaskError, match=r"can't follow one.*\n  at: task t"):
        environments.backend(resolve(flags={"env": env}).config, [task], Settings())


def test_a_page_of_miniwob_has_an_oracle_already() -> None:
    task = planned("browser", "click").model_copy(update={"preset": {"page": "click-test"}})
    assert "solved by their own oracles" in plan_problem(task.instantiate(0))


def test_an_environment_of_ones_own_may_read_its_plan_itself() -> None:
    check_plans([planned("toy", "juggle")])


@pytest.mark.parametrize("suite", ["linux", "desktop_train", "phone_eval"])
def test_shipped_plans_are_read(suite: str) -> None:
    tasks = [task for task in load_suite(shipped_folder() / suite).tasks if task.plan]
    assert tasks
    check_plans(tasks)


def test_a_plan_for_boxes_may_be_for_those_of_either_type() -> None:
    assert plan_problem(planned("gbox", "run").instantiate(0)) == ""
    bad = planned("gbox", "open").instantiate(0)
    assert plan_problem(bad) == "step 1 of the plan: a box of type android has no open_app"
