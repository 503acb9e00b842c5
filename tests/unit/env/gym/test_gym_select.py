"""Which of a gym's tasks a run trains or evaluates on: by names, by the seeds' JSON objects, by share."""

import anyio
import pytest
import stamina

from cuarl.config.load import resolve
from cuarl.env.gym.options import Options
from cuarl.env.gym.tasks import listed, select
from cuarl.errors import ConfigError, PrerequisiteError, TaskError
from cuarl.settings import Settings
from cuarl.tasks.gym import GymTask
from cuarl.tasks.task import Task

TASKS = [
    GymTask(Task(id=f"t{n}", description="d", env="gym", category="settings" if n < 6 else "app"), n) for n in range(10)
]
RANGE = Options(eval_number_range="002-003")


def picked(role, options=RANGE, **flags):
    config = resolve(flags={"env": "gym", **flags}).config
    return [task.id for task in select(TASKS, options, config, role).tasks]


def test_without_names_a_role_has_its_share():
    assert picked("eval") == ["t2", "t3"]
    assert picked("train") == [f"t{n}" for n in range(10) if n not in (2, 3)]
    half = Options(train_ratio=0.5)
    assert sorted(picked("train", half) + picked("eval", half)) == [f"t{n}" for n in range(10)]


def test_names_mean_those_tasks_whatever_their_role():
    assert picked("train", tasks=("t3",)) == picked("eval", tasks=("t3",)) == ["t3"]
    assert picked("eval", tasks=("t3",), eval_tasks=("t4",)) == ["t4"]


def test_a_file_says_in_its_own_words_what_is_to_be_done_in_tasks_of_the_gym(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("tasks:\n- {id: t7, description: Do it well, env: gym, plan: [{click: Save}]}\n")
    config = resolve(flags={"env": "gym", "tasks": (str(file), "t3")}).config
    named, written = select(TASKS, RANGE, config, "train").tasks
    assert named.id == "t3" and (written.description, written.plan) == ("Do it well", ({"click": "Save"},))
    file.write_text("tasks:\n- {id: t77, description: d, env: gym}\n")
    with pytest.raises(TaskError, match=r"the gym has no task t77 \(did you mean .*\n.*mine.yaml, line 2"):
        select(TASKS, RANGE, config, "train")


def test_a_source_that_trains_is_evaluated_on_its_other_share():
    source = '{"source_type": "gym", "split_type": "train", "category": "settings"}'
    assert picked("train", tasks=(source,)) == ["t0", "t1", "t4", "t5"]
    assert picked("eval", tasks=(source,)) == ["t2", "t3"]


def test_a_source_has_a_ratio_of_its_own():
    source = '{"source_type": "gym", "split_type": "train", "train_ratio": 0.3}'
    assert len(picked("train", tasks=(source,))) == 3


def test_what_names_no_task_of_the_gym_is_refused():
    with pytest.raises(ConfigError, match="names no tasks of a gym"):
        picked("train", tasks=('{"source_type": "demo_training"}',))
    with pytest.raises(TaskError, match="t33"):
        picked("train", tasks=("t33",))


def test_a_server_that_is_not_there_is_said_with_what_sets_it():
    with stamina.set_testing(True, attempts=1), pytest.raises(PrerequisiteError, match="can't be listed") as said:
        anyio.run(listed, Options(), Settings(gym_base_url="http://127.0.0.1:9"))
    assert said.value.hint == "export GYM_BASE_URL=URL"
