"""Boxes with Android's own shell alone: tasks in the seeds' own format, and those of the simulated phone."""

import json

import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.local.gbox import FakeGBox
from cuarl.local.threads import served
from tests.integration.rollout_place import Place, bare

KEY = "key-of-the-test"
SEEDS = [
    {"id": "wifi", "description": "Turn off Wi-Fi.", "validation_query": "wifi_enabled", "expected_result": False},
    {"id": "bright", "description": "Dim.", "validation_query": "brightness_level", "expected_result": 1},
]


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    boxes = FakeGBox(KEY, stock=True)
    with served(boxes.app()) as url:
        monkeypatch.setenv("GBOX_BASE_URL", f"{url}/api/v1")
        monkeypatch.setenv("GBOX_API_KEY", KEY)
        yield Place(tmp_path, capsys)


def rollout(place, *options):
    done = place.cuarl("rollout", "--env", "gbox", "--agent", "nothing", "--gbox-settle-ms", "1", *options, "--json")
    return done, {one.task_id: one for one in place.episodes()}


def test_tasks_in_the_seeds_format_are_judged_by_the_shell(place):
    (place.folder / "seeds.json").write_text(json.dumps([{**one, "env": "gbox"} for one in SEEDS]))
    done, found = rollout(place, "--tasks", "seeds.json")
    assert done.code == 0, done.err
    checks = {name: one.verdict.checks[0] for name, one in found.items()}
    assert (checks["wifi"].path, checks["wifi"].actual, checks["wifi"].passed) == ("network.wifi.enabled", True, False)
    assert not checks["bright"].passed


def test_tasks_of_the_simulated_phone_need_to_be_told_that_the_shell_judges(place):
    task = ("--tasks", "train_61_enable_dark_theme")
    done, _ = rollout(place, *task)
    assert done.code == 1 and "has no cuarl-device" in done.err and "--gbox-state shell" in done.err
    done, _ = rollout(place, *task, "--gbox-state", "shell", "--name", "shell")
    assert done.code == 0, done.err
    assert [one.verdict.success for one in place.episodes() if one.verdict] == [False]
    done, _ = rollout(place, "--tasks", "train_67_move_icon", "--gbox-state", "shell")
    assert done.code == 2 and "1 of 1 tasks need more than the device's shell" in done.err
