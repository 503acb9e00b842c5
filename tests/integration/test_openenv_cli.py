"""``cuarl serve-env`` as a process, with cuarl itself as its client."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import warm
from tests.integration.rollout_place import Place, bare

pytest.importorskip("websockets", reason="the extra openenv is not installed")
pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


@pytest.fixture
def served(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("CUARL_SERVE_TOKEN", "serve-token-canary-7d10")
    monkeypatch.setenv("OPENENV_TOKEN", "serve-token-canary-7d10")
    words = ("serve-env", "--tasks", "tasks.json", "--port", "0", "--json")
    process = warm.Command(*words, cwd=place.folder, stdout=warm.PIPE, stderr=warm.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    told = json.loads(line)
    assert told["tasks"] == 2
    yield told["url"]
    process.send_signal(signal.SIGINT)
    assert (process.communicate(timeout=30)[1], process.returncode) == ("", 0)


def test_a_policy_acts_and_learns_through_the_server(place: Place, served: str) -> None:
    there = ["--env", "openenv", "--openenv-url", served, "--openenv-sessions", "2"]
    result = place.cuarl("rollout", *there, "--agent", "random", "--episodes", "4", "--max-turns", "3")
    assert result.code == 0, result.err
    with place.store() as store:
        stored = list(store.trajectories())
    assert {t.task_id for t in stored} == {"wifi_off", "dark_on"}
    assert all(t.verdict is not None and t.verdict.checks[0].path != "return" for t in stored)
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
    result = place.cuarl("train", *there, "--tasks", "wifi_*", *small, "--name", "through")
    assert result.code == 0, result.err
    unknown = place.cuarl("rollout", *there, "--tasks", "wifi_of", "--agent", "random")
    assert (unknown.code, 'did you mean "wifi_off"' in unknown.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--host", "0.0.0.0", "--port", "0"], 4, "CUARL_SERVE_TOKEN"),
        (["--env", "nonsense"], 2, "no environment"),
        (["--sessions", "0"], 2, "--sessions"),
    ],
)
def test_what_can_not_be_served_is_said(place: Place, options: list[str], code: int, said: str) -> None:
    result = place.cuarl("serve-env", "--tasks", "tasks.json", *options)
    assert (result.code, said in result.err) == (code, True), result.err


def test_a_dry_run_starts_nothing(place: Place) -> None:
    result = place.cuarl("serve-env", "--tasks", "tasks.json", "--eval-tasks", "tasks.json", "--dry-run", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out) == {"env": "sim", "train_tasks": 2, "test_tasks": 2, "address": "127.0.0.1:8000"}


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nowhere"])
def test_a_server_that_is_not_there_is_said(place: Place, url: str) -> None:
    result = place.cuarl("rollout", "--env", "openenv", "--openenv-url", url, "--agent", "random")
    assert (result.code, "openenv" in result.err.lower()) == (2 if url == "nowhere" else 4, True)
