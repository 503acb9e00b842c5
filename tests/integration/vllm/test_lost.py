"""Real vLLMs that are killed while they sample for a training: the other goes on, or the run once it is back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.rollout_place import Place, bare
from tests.integration.test_train_cli import LUCK, lines
from tests.integration.vllm.server import COMMAND, Server
from tests.integration.when import once

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not COMMAND.is_file(), reason="vLLM is not installed (make vllm)"),
]
LARGEST = 1e-4
"""Nats; see ``test_vllm``."""
SMALL = (
    "train", "--tasks", "tasks.json", "--eval-tasks", "tasks.json", "--device", "cpu", "--reward", "luck:luck",
    "--group-size", "3", "--groups-per-batch", "4", "--max-turns", "3", "--max-tokens", "24", "--max-steps", "3",
    "--save-every", "1", "--eval-every", "0", "--eval-episodes", "2", "--skip-baseline", "--keep-adapters",
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "luck.py").write_text(LUCK)
    return Place(tmp_path, capsys)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    one, two = (Server(tmp_path_factory.mktemp(name)) for name in ("one", "two"))
    yield one, two
    one.stop()
    two.stop()


def up(*servers: Server) -> str:
    """They answer, those that are down anew; gives their URLs."""
    for server in servers:
        server.start()
    for server in servers:
        server.wait()
    return ",".join(server.url for server in servers)


def proven(place: Place, run: str) -> list[dict[str, Any]]:
    """Versions of the policy whose turns all had the log-probabilities that were recorded."""
    found = place.cuarl("rollout", "verify", run, "--json")
    assert found.code == 0, found.err
    versions: list[dict[str, Any]] = json.loads(found.out)
    assert all(one["largest"] is not None and one["largest"] < LARGEST for one in versions), found.out
    return versions


def sampled(place: Place) -> int:
    """Turns of training, all of them exact, of episodes that were all completed."""
    episodes = [one for one in place.episodes() if one.purpose == "train"]
    assert len(episodes) == 36 and not [one for one in episodes if one.failure]
    turns = [turn.sampled for one in episodes for turn in one.turns]
    assert all(turn is not None and turn.exact for turn in turns)
    return len(turns)


def test_training_goes_on_with_the_server_that_is_left(place: Place, both: tuple[Server, Server]) -> None:
    metrics = place.folder / "runs" / "two" / "metrics.jsonl"
    urls = up(*both)
    # the second step's episodes have begun half a second after the first is over
    thread = once(lambda: len(lines(metrics)) >= 1, both[1].kill, after_s=0.5)
    trained = place.cuarl(*SMALL, "--name", "two", "--model-base-url", urls)
    thread.join(30)
    assert trained.code == 0, trained.err
    rows = [row for row in lines(metrics) if row["step"] > 0]
    answers = [[row[f"sampler/{n}/answers"] for n in (0, 1)] for row in rows]
    assert min(answers[0]) > 0, "both have work"
    assert (rows[0]["sampler/1/gone"], rows[2]["sampler/1/gone"], answers[2][1]) == (0.0, 1.0, 0)
    turns = sampled(place)
    versions = proven(place, "two")
    assert [one["policy_version"] for one in versions] == [0, 1, 2, 3]
    assert sum(one["turns"] for one in versions) >= turns > 36


def test_a_run_goes_on_with_a_server_that_was_killed_and_started_again(
    place: Place, both: tuple[Server, Server]
) -> None:
    metrics, server = place.folder / "runs" / "again" / "metrics.jsonl", both[0]
    thread = once(lambda: len(lines(metrics)) >= 1, server.kill, after_s=0.5)
    ended = place.cuarl(*SMALL, "--name", "again", "--model-base-url", up(server))
    thread.join(30)
    assert ended.code == 1 and f"{server.url} gave no answer" in ended.err, ended.err
    assert "cuarl train --resume again" in ended.err
    refused = place.cuarl("train", "--resume", "again")
    assert refused.code == 4 and server.url.removesuffix("/v1") in refused.err, refused.err
    up(server)
    resumed = place.cuarl("train", "--resume", "again")
    assert resumed.code == 0, resumed.err
    assert [row["step"] for row in lines(metrics) if row["step"] > 0] == [1, 2, 3]
    assert [one["policy_version"] for one in proven(place, "again")] == [0, 1, 2, 3]
