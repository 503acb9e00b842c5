"""Gymnasium environments from the command line: options, task files, training, a killed run."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from cuarl.env.leases import Ledger
from tests import warm
from tests.integration.rollout_place import Place, bare

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.integration

FAKES = "tests.fakes.gym_envs"
LAMPS = [
    "--env",
    "gymnasium",
    "--gymnasium-id",
    f"{FAKES}:cuarl-tests/Lamps-v0",
    "--gymnasium-goal",
    "Press {what} is lit",
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return Place(tmp_path, capsys)


def sessions(place: Place) -> list[str]:
    return [lease.state for lease in Ledger(place.folder / "sessions").leases()]


def test_options_make_a_task_whose_rewards_are_recorded(place: Place) -> None:
    asked = [*LAMPS, "--gymnasium-success", "return ge 1, steps ge 2", "--reward", "env", "--agent", "random"]
    result = place.cuarl("rollout", *asked, "--episodes", "4", "--max-turns", "6")
    assert result.code == 0, result.err
    with place.store() as store:
        stored = list(store.trajectories())
    assert len(stored) == 4
    for trajectory in stored:
        assert trajectory.goal == "Press {what} is lit"
        assert trajectory.verdict is not None
        total = sum(turn.reward or 0 for turn in trajectory.turns)
        first = trajectory.verdict.checks[0]
        assert (first.path, first.actual) == ("return", total)
        assert trajectory.reward == total
        (size,) = {(t.screenshot.width, t.screenshot.height) for t in trajectory.turns}
        assert size[1] > 48, "there are buttons below the picture"
    assert any(turn.reward for t in stored for turn in t.turns)
    assert sessions(place) == []


def test_task_files_name_environments_of_several_kinds(place: Place) -> None:
    board = {"id": f"{FAKES}:cuarl-tests/Board-v0", "goal_from": "observation.mission"}
    form = {"id": f"{FAKES}:Form", "kwargs": {"render_mode": "rgb_array"}, "actions": {"type": {"text": "$text"}}}
    own = {"id": f"{FAKES}:phone", "actions": {"any": {"kind": 8, "point": [0, 0], "to": [0, 0], "text": ""}}}
    tasks = [
        {"id": "board", "description": "Choose", "preset": board, "checks": [{"path": "terminated", "value": True}]},
        {
            "id": "form",
            "description": "Write lamp",
            "preset": form,
            "checks": [{"path": "return", "op": "ge", "value": 1}],
        },
        {
            "id": "own",
            "description": "Turn Wi-Fi off.",
            "preset": own,
            "checks": [{"path": "info.verdict.success", "value": True}],
        },
    ]
    (place.folder / "envs.json").write_text(
        json.dumps([{**task, "env": "gymnasium", "max_steps": 3} for task in tasks])
    )
    result = place.cuarl(
        "rollout", "--env", "gymnasium", "--tasks", "envs.json", "--agent", "random", "--episodes", "3"
    )
    assert result.code == 0, result.err
    with place.store() as store:
        found = {t.task_id: t for t in store.trajectories()}
    assert (found["board"].goal, found["board"].success) == ("choose the bright cell", True)
    assert (found["form"].stop, len(found["form"].turns)) == ("max_turns", 3)
    # a device of cuarl's, out through Gymnasium and in again: it finished at once, and that was not the task
    assert (found["own"].stop, found["own"].success) == ("env_done", False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "gymnasium"], "--gymnasium-id"),
        ([*LAMPS], "--gymnasium-success"),
        ([*LAMPS, "--gymnasium-success", "return gee 1"], 'did you mean "ge"?'),
        ([*LAMPS, "--gymnasium-success", "return ge 1", "--tasks", "settings"], "leave one of them out"),
        ([*LAMPS, "--gymnasium-success", "return ge 1", "--gymnasium-actions", "{clik: 0}"], 'did you mean "click"?'),
        ([*LAMPS, "--gymnasium-success", "return ge 1", "--gymnasium-kwargs", "needed"], "NAME=VALUE"),
        ([*LAMPS, "--gymnasium-success", "return ge 1", "--gymnasium-actions", "grid 2x3"], "does not fit"),
        (["--gymnasium-id", "CartPole-v1"], "no effect with env sim"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_clear_error(place: Place, options: list[str], said: str) -> None:
    result = place.cuarl("rollout", *options, "--agent", "random", "--episodes", "1")
    assert (result.code, said in result.err) == (2, True), result.err
    assert "Traceback" not in result.err


def test_training_learns_from_the_return(place: Place) -> None:
    asked = [*LAMPS, "--gymnasium-success", "return ge 1", "--gymnasium-scale", "3", "--gymnasium-device", "phone"]
    small = [
        "--max-steps",
        "1",
        "--groups-per-batch",
        "1",
        "--group-size",
        "2",
        "--max-turns",
        "2",
        "--eval-episodes",
        "2",
    ]
    result = place.cuarl("train", *asked, *small, "--reward", "env", "--name", "lamps")
    assert result.code == 0, result.err
    assert (place.folder / "runs" / "lamps" / "checkpoints" / "step-000001").is_dir()


def test_what_a_killed_run_leaves_hanging_is_listed_and_swept(place: Place) -> None:
    hangs = [
        "--gymnasium-id",
        f"{FAKES}:Faulty",
        "--gymnasium-kwargs",
        "render_mode=rgb_array",
        "--gymnasium-actions",
        "{click: 0}",
    ]
    words = ["rollout", "--env", "gymnasium", *hangs, "--gymnasium-goal", "Go",
             "--gymnasium-success", "return ge 1", "--agent", "random", "--episodes", "1"]  # fmt: skip
    process = warm.Command(*words, cwd=place.folder, stdout=warm.DEVNULL, stderr=warm.DEVNULL)
    end = time.monotonic() + 60
    while sessions(place) != ["live"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert sessions(place) == ["orphaned"]
    assert place.cuarl("sessions", "sweep").code == 0
    assert sessions(place) == []


@pytest.mark.parametrize("asked", [["rollout", "--agent", "oracle"], ["train", "--hint-turns", "2"]])
def test_an_oracle_that_is_not_there_is_told_before_anything_begins(place: Place, asked: list[str]) -> None:
    result = place.cuarl(asked[0], *LAMPS, "--gymnasium-success", "return ge 1", *asked[1:])
    assert result.code == 2, result.err
    assert "nothing tells how" in result.err
