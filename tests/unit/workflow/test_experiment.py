"""What is done where a person has said less than everything."""

import pytest

from cuarl.config.load import resolve
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow.experiment import Experiment


def experiment(tmp_path, flags=None, **more):
    return Experiment(resolved=resolve(flags=flags or {}), settings=Settings(_env_file=None), **more)


def tasks(*envs):
    return [Task(id=f"t{n}", description="g", env=env) for n, env in enumerate(envs)]


def test_tasks_bring_their_environment(tmp_path):
    made = experiment(tmp_path, {"max_turns": 7}).for_tasks(tasks("linux", "linux"))
    assert (made.config.env.type, made.config.max_turns) == ("linux", 7)
    assert made.resolved.sources["env"] == "the tasks" and made.resolved.sources["max_turns"] == "--max-turns"


@pytest.mark.parametrize(
    ("flags", "envs"), [({}, ("phone",)), ({}, ("phone", "linux")), ({}, ()), ({"env": "browser"}, ("linux",))]
)
def test_what_was_said_or_is_not_the_same_for_all_stays(tmp_path, flags, envs):
    asked = experiment(tmp_path, flags)
    assert asked.for_tasks(tasks(*envs)) is asked


def test_a_run_that_is_resumed_keeps_its_environment(tmp_path):
    asked = experiment(tmp_path, resume=tmp_path)
    assert asked.for_tasks(tasks("linux")) is asked
