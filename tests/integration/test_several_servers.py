"""Two servers of one policy, of which one is killed while the other's adapters are trained."""

import json
from contextlib import ExitStack

import pytest

from tests.integration.rollout_place import Place, bare
from tests.integration.test_serve_cli import TOKEN, Server
from tests.integration.test_train_cli import LUCK, lines
from tests.integration.when import once

pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "luck.py").write_text(LUCK)
    (tmp_path / "runs").mkdir()
    return Place(tmp_path, capsys)


@pytest.fixture
def servers(place):
    with ExitStack() as stack:
        found = []
        for name in ("one", "two"):
            found.append(Server(place.folder, "base", "--adapters", str(place.folder / "runs"), name=name))
            stack.callback(found[-1].stop)
        yield found


def test_training_goes_on_with_the_server_that_is_left_and_every_turn_is_proven(place, servers):
    run = place.folder / "runs" / "mine"
    # the second step's episodes have begun half a second after the first is over
    thread = once(lambda: len(lines(run / "metrics.jsonl")) >= 1, servers[1].process.kill, after_s=0.5)
    trained = place.cuarl(
        "train",
        "--tasks",
        "tasks.json",
        "--eval-tasks",
        "tasks.json",
        "--reward",
        "luck:luck",
        "--group-size",
        "3",
        "--groups-per-batch",
        "4",
        "--max-turns",
        "3",
        "--max-tokens",
        "24",
        "--max-steps",
        "3",
        "--eval-every",
        "0",
        "--eval-episodes",
        "2",
        "--skip-baseline",
        "--keep-adapters",
        "--name",
        "mine",
        "--model-base-url",
        ",".join(server.url for server in servers),
    )
    thread.join(30)
    assert trained.code == 0, trained.err
    rows = [row for row in lines(run / "metrics.jsonl") if row["step"] > 0]
    answers = [[row[f"sampler/{n}/answers"] for n in (0, 1)] for row in rows]
    assert min(answers[0]) > 0, "both have work"
    assert [row["sampler/1/gone"] for row in rows][::2] == [0.0, 1.0] and answers[2][1] == 0
    assert rows[2]["sampler/1/version_lag"] >= 1 and rows[2]["sampler/0/version_lag"] == 0
    assert max(abs(row["policy/kl_sampler"]) for row in rows) < 1e-6
    with place.store() as store:
        episodes = store.episodes(run=json.loads((run / "manifest.json").read_text())["run_id"], purpose="train")
        assert len(episodes) == 36 and {e.status for e in episodes} == {"completed"}
    proven = place.cuarl("rollout", "verify", "mine")
    assert proven.code == 0, proven.err
