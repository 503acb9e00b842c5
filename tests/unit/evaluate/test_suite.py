from __future__ import annotations

from collections import Counter

import pytest
from PIL import Image

from cuarl.agent.base import Decision
from cuarl.env.base import Capabilities
from cuarl.errors import ConfigError
from cuarl.evaluate.suite import (
    Evaluation,
    evaluate,
    find_results,
    folder_for,
    folder_name,
    overruled,
    plan_evaluation,
    read_results,
    write_results,
)
from cuarl.evaluate.summary import Summary
from cuarl.monitor.metric_names import documented
from cuarl.rollout.seeds import EVAL_SEEDS
from cuarl.rollout.setup import Setup
from cuarl.tasks.task import Check, Task
from cuarl.types import Finish, Observation, Screenshot, StepResult

pytestmark = pytest.mark.anyio


def task(name, category="settings"):
    return Task(id=name, description="Turn it on", category=category, checks=(Check(path="on", value=True),))


TASKS = [task("a"), task("b"), task("c", "app")]


class Lamp:
    """A device that task ``c`` finds switched on."""

    capabilities = Capabilities(actions=frozenset(), state=True)
    volatile = ()

    async def reset(self, task, seed):
        self.on = task.task_id == "c"
        return Observation(Screenshot(Image.new("RGB", (4, 4))))

    async def step(self, action):
        return StepResult(Observation(Screenshot(Image.new("RGB", (4, 4)))))

    async def state(self):
        return {"on": self.on}

    async def close(self):
        pass


class Claims:
    name = "claims"

    async def act(self, task, observation, history, seed):
        return Decision(action=Finish(success=True))


def lamps():
    """Makes devices; the first for task ``b`` can't be made."""
    made = Counter()

    async def make_env(task):
        made[task.task_id] += 1
        if task.task_id == "b" and made["b"] == 1:
            raise OSError("no lamp")
        return Lamp()

    return make_env


def test_plan_gives_each_task_its_turn_and_every_instance_its_attempts():
    plan = plan_evaluation(TASKS, episodes=14, attempts=2, run_seed=3, prefix="e")
    assert len(plan) == 14
    assert Counter(s.task.task_id for s in plan) == {"a": 6, "b": 4, "c": 4}
    assert {s.seed in EVAL_SEEDS and s.purpose == "eval" for s in plan} == {True}
    assert len({(s.task.task_id, s.seed) for s in plan}) == 7
    assert len({s.sampling_seed for s in plan}) == len({s.episode_id for s in plan}) == 14


def test_instances_do_not_depend_on_what_else_is_evaluated():
    def seeds(tasks, episodes):
        plan = plan_evaluation(tasks, episodes=episodes, run_seed=3, prefix="e")
        return [s.seed for s in plan if s.task.task_id == "b"]

    assert seeds(TASKS, 9) == seeds(TASKS[1:], 6) == seeds([TASKS[1]], 3)
    assert seeds(TASKS, 9)[:2] == seeds(TASKS, 6)


async def test_c38_ten_tasks_give_ten_results_each_once():
    """However many processes train: the main one evaluates, so no batch is filled up with repeated tasks."""
    tasks = [task(str(i)) for i in range(10)]
    plan = plan_evaluation(tasks, episodes=10, run_seed=3, prefix="e")
    found = await evaluate(plan, Setup(make_env=lamps(), make_agent=lambda s, e: Claims()), label="lamps")
    assert found.overall.n + found.overall.failed == 10
    assert len({o.episode_id for o in found.outcomes}) == len({o.task_id for o in found.outcomes}) == 10


def test_fewer_episodes_than_tasks_is_a_sample_drawn_by_the_seed():
    tasks = [task(str(i)) for i in range(20)]
    drawn = [[s.task.task_id for s in plan_evaluation(tasks, episodes=6, run_seed=r, prefix="e")] for r in range(4)]
    assert all(len(set(ids)) == 6 for ids in drawn)
    assert len({tuple(ids) for ids in drawn}) == 4
    assert drawn[0] == [s.task.task_id for s in plan_evaluation(tasks, episodes=6, run_seed=0, prefix="e")]


async def test_evaluation_counts_verdicts_and_keeps_failures_apart(tmp_path):
    plan = plan_evaluation(TASKS, episodes=6, run_seed=3, prefix="e", step=8)
    found = await evaluate(
        plan,
        Setup(make_env=lamps(), make_agent=lambda s, e: Claims()),
        label="lamps",
        run_seed=3,
        settings={"env": "lamp"},
    )
    overall = found.overall
    assert (overall.n, overall.failed, overall.tasks, overall.success_rate) == (5, 1, 3, 0.4)
    assert overall.false_completion_rate == 0.6
    assert (found.by_category["app"].success_rate, found.by_category["settings"].n) == (1.0, 3)
    assert (found.agent, found.step, found.seed) == ("claims", 8, 3)
    path = write_results(tmp_path / folder_name(found.label, found.step), found)
    assert path.parent.name == "lamps-step-000008"
    assert read_results(path) == read_results(path.parent) == found


async def test_tasks_that_say_what_is_new_in_them_have_a_figure_for_each_of_that():
    tasks = [
        task("a").model_copy(update={"split": "app"}),
        task("c").model_copy(update={"split": "wording"}),
        task("d"),
    ]
    plan = plan_evaluation(tasks, episodes=6, run_seed=3, prefix="e")
    found = await evaluate(plan, Setup(make_env=lamps(), make_agent=lambda s, e: Claims()), label="lamps")
    assert {name: (s.n, s.success_rate) for name, s in found.by_split.items()} == {"app": (2, 0.0), "wording": (2, 1.0)}
    said = {o.episode_id: True for o in found.outcomes if o.split == "app"}
    assert overruled(found, said).by_split["app"].success_rate == 1
    plain = await evaluate(plan[2:3], Setup(make_env=lamps(), make_agent=lambda s, e: Claims()), label="lamps")
    assert plain.by_split == {}


async def test_metrics_have_documented_names_and_come_with_their_n():
    plan = plan_evaluation(TASKS, episodes=3, prefix="e")
    found = await evaluate(plan, Setup(make_env=lamps(), make_agent=lambda s, e: Claims()), label="lamps")
    metrics = found.metrics()
    assert metrics["eval/lamps/n"] == 2
    assert {name: documented(name) is not None for name in metrics} == dict.fromkeys(metrics, True)


def measured(**fields):
    return Evaluation(label="lamps", step=8, overall=Summary(n=0, tasks=0), **fields)


def test_an_evaluation_never_takes_the_folder_of_one_made_with_other_settings(tmp_path):
    first = measured(settings={"episodes": 200, "temperature": 0.5})
    others = [
        measured(settings={"episodes": 50, "temperature": 0.5}),
        measured(settings={"episodes": 200, "temperature": 1.0}),
        measured(settings=first.settings, seed=1),
        measured(settings=first.settings, limited="a sample"),
    ]
    plain = tmp_path / "lamps-step-000008"
    assert folder_for(tmp_path, first, own=False) != plain, "the plain name is left to the run itself"
    assert folder_for(tmp_path, first, own=True) == plain
    write_results(plain, first)
    assert folder_for(tmp_path, first, own=False) == plain
    for own in (True, False):
        places = {folder_for(tmp_path, other, own=own) for other in others}
        assert len(places) == len(others) and plain not in places
    for other in others:
        write_results(folder_for(tmp_path, other, own=False), other)
    assert [find_results(tmp_path, "lamps", 8, e.key) for e in (first, *others)] == [first, *others]
    assert find_results(tmp_path, "lamps", 16, first.key) is None


def test_a_damaged_evaluation_is_left_where_it_is(tmp_path):
    (tmp_path / "lamps-step-000008").mkdir()
    (tmp_path / "lamps-step-000008" / "results.json").write_text("{")
    one = measured(settings={"episodes": 1})
    assert folder_for(tmp_path, one, own=True).name == f"lamps-step-000008-{one.key}"


def test_file_that_is_no_evaluation_is_refused(tmp_path):
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(ConfigError, match="no evaluation"):
        read_results(tmp_path)
    with pytest.raises(ConfigError, match="no evaluation"):
        read_results(tmp_path / "nowhere")
