"""Which tasks were proven is remembered by what they are."""

from __future__ import annotations

import json

import pytest

from cuarl.settings import Settings
from cuarl.tasks.suites import load_suite, shipped_folder
from cuarl.tasks.task import Check, Task
from cuarl.workflow.checks import tasks as check_of_tasks
from cuarl.workflow.proof_record import FILE, remember, said_of, unproven
from tests.integration.rollout_place import Place, bare


def task(name, value=1, env="phone"):
    return Task(id=name, description="Do it", env=env, checks=(Check(path="volume", value=value),))


@pytest.fixture
def settings(tmp_path):
    return Settings(sessions_dir=tmp_path / "state")


def test_a_task_is_proven_until_it_is_changed_or_a_proof_fails(settings):
    a, b = task("a"), task("b")
    assert unproven(settings, [a, b]) == [a, b]
    remember(settings, [(a, 3), (b, 0)])
    assert unproven(settings, [a, b]) == [b]
    assert unproven(settings, [task("a", value=2)]) == [task("a", value=2)]
    assert unproven(settings, [a.model_copy(update={"suite": "elsewhere"})]) == []
    remember(settings, [(a, 0), (b, 2)])
    assert unproven(settings, [a, b]) == [a]
    with (settings.sessions_folder / FILE).open("a") as file:
        file.write('{"digest": "cut o')
    assert unproven(settings, [a, b]) == [a]


def test_shipped_tasks_are_proven_and_what_cannot_be_proven_here_is_not_told(settings):
    shipped = load_suite(shipped_folder() / "recipe_train").tasks
    assert unproven(settings, [*shipped, task("g", env="gymnasium")]) == []
    assert said_of(settings, shipped, ["recipe_train"]) == ""


def test_one_line_has_the_command(settings):
    found = said_of(settings, [task("a"), task("b", env="gymnasium")], ["my tasks.yaml", '{"source": 1}'])
    assert found == ("1 of 2 tasks were never proven, such as a: cuarl tasks validate 'my tasks.yaml' --prove")
    assert said_of(settings, [task("a")], []).endswith("cuarl tasks validate a --prove")


def test_commands_say_it_until_the_proof_is_made(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "state"))
    place = Place(tmp_path, capsys)
    said = "2 of 2 tasks were never proven, such as wifi_off: cuarl tasks validate tasks.json --prove"
    asked = ("rollout", "--tasks", "tasks.json", "--agent", "oracle", "--dry-run")
    assert said in place.cuarl(*asked).err
    proven = place.cuarl("tasks", "validate", "tasks.json", "--prove", "--seeds", "1", "--jobs", "1")
    assert proven.code == 0, proven.err
    assert "never proven" not in place.cuarl(*asked).err


@pytest.mark.parametrize("env", ["phone", "adb", "gbox", "gym", "pods"])
def test_doctor_names_suites_of_ones_own(tmp_path, env):
    suite = tmp_path / "suites" / "mine"
    suite.mkdir(parents=True)
    (suite / "suite.yaml").write_text("role: train\n")
    (suite / "tasks.json").write_text(json.dumps([task("a", env=env).model_dump(mode="json", exclude_defaults=True)]))
    settings = Settings(sessions_dir=tmp_path / "state", tasks_dir=suite.parent)
    found = check_of_tasks(settings)
    assert (found.status, found.fix) == ("warn", "cuarl tasks validate mine --prove")
    assert "1 never proven" in found.detail
    assert check_of_tasks(Settings(sessions_dir=tmp_path / "state")).status == "ok"
