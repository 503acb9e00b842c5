"""The real ``openenv`` package against cuarl: its clients on our server, our client on its server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.integration.rollout_place import Place, bare
from tests.peers import FOLDER, OPENENV, needs_openenv

pytest.importorskip("websockets", reason="the extra openenv is not installed")
pytestmark = [pytest.mark.integration, needs_openenv]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    return Place(tmp_path, capsys)


@pytest.fixture
def served(place: Place) -> Iterator[str]:
    words = ("serve-env", "--tasks", "tasks.json", "--port", "0", "--json")
    process = warm.Command(*words, cwd=place.folder, stdout=warm.PIPE, stderr=warm.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    yield json.loads(line)["url"]
    process.send_signal(signal.SIGINT)
    assert "Traceback" not in process.communicate(timeout=30)[1]
    assert process.returncode == 0


@pytest.fixture
def board(request: pytest.FixtureRequest) -> Iterator[str]:
    with_tasks = {"WITH_TASKS": "1"} if getattr(request, "param", True) else {}
    process = subprocess.Popen(
        [OPENENV, FOLDER / "openenv_server.py"], env={**os.environ, **with_tasks}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.terminate()
    process.communicate(timeout=30)


def test_openenvs_clients_use_our_server(served: str) -> None:
    actions: list[dict[str, Any]] = [{"kind": "wait"}, {"kind": "click", "x": 9999, "y": 1}, {"kind": "finish"}]
    done = subprocess.run(
        [OPENENV, FOLDER / "openenv_client.py", served, "wifi_off", json.dumps(actions)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    generic = told["generic"]
    assert (generic["goal"], generic["size"], generic["first"], generic["same"]) == (
        "Do it",
        [192, 384],
        [None, False],
        True,
    )
    assert [step[:2] for step in generic["steps"]] == [[0.0, False], [0.0, False], [0.0, True]]
    assert "outside" in generic["steps"][1][2]
    assert generic["state"] == {"episode_id": "mine", "step_count": 3, "task": "wifi_off", "done": True}
    verdict = generic["metadata"]["verdict"]
    assert (verdict["success"], verdict["claimed"], verdict["checks"][0]["path"]) == (
        False,
        True,
        "network.wifi.enabled",
    )
    assert told["typed"]["turn"] == 1
    assert "outside" in told["typed"]["rejected"]
    assert ["EXECUTION_ERROR" in told["wrong"][0], "nonsense" in told["wrong"][1]] == [True, True]
    assert "VALIDATION_ERROR" in told["wrong"][2]
    assert told["sync"] == 0.0


def test_our_client_uses_openenvs_server_with_its_tasks(place: Place, board: str) -> None:
    table = "{click: {across: $u, down: $v}}"
    asked = ["rollout", "--env", "openenv", "--openenv-url", board, "--openenv-actions", table, "--reward", "env"]
    result = place.cuarl(
        *asked, "--tasks", "square_*", "--agent", "random", "--episodes", "6", "--openenv-sessions", "2"
    )
    assert result.code == 0, result.err
    with place.store() as store:
        stored = list(store.trajectories())
    assert sorted({t.task_id for t in stored}) == ["square_0", "square_1", "square_2"]
    for trajectory in stored:
        verdict = trajectory.verdict
        assert verdict is not None
        assert trajectory.goal == f"Hit row {trajectory.task_id[-1]}."
        rewards = [turn.reward for turn in trajectory.turns if turn.reward is not None]
        assert verdict.checks[0].actual == pytest.approx(sum(rewards))
        assert trajectory.reward == pytest.approx(sum(rewards))
        assert verdict.success == (sum(rewards) >= 1)


def test_a_policy_that_does_right_succeeds_there(place: Place, board: str) -> None:
    always = ["--openenv-actions", "{any: {down: 0.1}}", "--tasks", "square_0", "--agent", "random", "--episodes", "1"]
    result = place.cuarl("rollout", "--env", "openenv", "--openenv-url", board, *always)
    assert result.code == 0, result.err
    with place.store() as store:
        (trajectory,) = store.trajectories()
    assert (trajectory.success, trajectory.stop, len(trajectory.turns), trajectory.reward) == (True, "env_done", 2, 1.0)


@pytest.mark.parametrize("board", [False], indirect=True)
def test_a_server_without_tasks_needs_a_goal_and_may_send_lists_of_numbers(place: Place, board: str) -> None:
    asked = ["rollout", "--env", "openenv", "--openenv-url", board, "--agent", "random", "--episodes", "1"]
    refused = place.cuarl(*asked)
    assert (refused.code, "--openenv-goal" in refused.err) == (2, True)
    options = [
        "--openenv-goal-from",
        "observation.goal",
        "--openenv-reset",
        "task=square_2,lists=true",
        "--max-turns",
        "3",
    ]
    result = place.cuarl(*asked, *options)
    assert result.code == 0, result.err
    with place.store() as store:
        (trajectory,) = store.trajectories()
    # the words of BrowserGym are told by the server's schema, and came through
    assert trajectory.goal == "Hit row 2."
    assert trajectory.turns[0].screenshot.height == 90


def test_an_error_of_the_server_is_one_of_the_environment(place: Place, board: str) -> None:
    asked = ["rollout", "--env", "openenv", "--openenv-url", board, "--openenv-actions", "{any: {across: 2}}"]
    result = place.cuarl(*asked, "--agent", "random", "--episodes", "1")
    assert result.code == 1
    with place.store() as store:
        (trajectory,) = store.trajectories()
    assert trajectory.failure is not None
    assert (trajectory.failure.boundary, trajectory.reward) == ("env", None)
    assert "the arrow left the hall" in trajectory.failure.message
