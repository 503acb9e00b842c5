"""Keys of all services at once, each a marker: none of them in a run, a database, a log, a trace, an export or on the
screen.

Services that answer with the key that they were sent, as some do in their errors, are among them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the local servers need the extra web")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cuarl.local.threads import served
from tests.fakes.gym_server import AGENT_KEY, BOX_KEY, GYM_KEY, field
from tests.fakes.kubernetes import TOKEN, cluster
from tests.integration.rollout_place import Place, Result, bare

pytestmark = pytest.mark.integration
SERVE, OPENAI, DATABASE = "serve-marker-27ab", "openai-marker-c19e", "database-marker-5d40"
OTHERS = {
    "TINKER_API_KEY": "tml-tinker-marker-8e71", "HF_TOKEN": "hf-marker-0b3c", "WANDB_API_KEY": "wandb-marker-6f52",
    "KUBE_TOKEN": TOKEN, "CUARL_SESSION_TOKEN": "session-marker-64cc", "AWS_SECRET_ACCESS_KEY": "blob-marker-7733",
}  # fmt: skip
MARKERS = (GYM_KEY, BOX_KEY, AGENT_KEY, SERVE, OPENAI, DATABASE, *OTHERS.values())
MINI = ("--gym-actor", "mini-agent", "--gym-poll-seconds", "0.02")


class Watched(Place):
    """Keeps everything that was printed."""

    def __init__(self, folder: Path, capsys: Any) -> None:
        super().__init__(folder, capsys)
        self.said = ""

    def cuarl(self, *args: str) -> Result:
        done = super().cuarl("-vv", "--debug", *args)
        self.said += done.out + done.err
        return done


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Watched]:
    bare(monkeypatch, tmp_path)
    further = {
        "CUARL_SESSIONS_DIR": str(tmp_path / "sessions"),
        "CUARL_SERVE_TOKEN": SERVE,
        "OPENAI_API_KEY": OPENAI,
        "POSTGRES_PASSWORD": DATABASE,
    }
    for name, value in {**OTHERS, **further}.items():
        monkeypatch.setenv(name, value)
    yield Watched(tmp_path, capsys)
    logging.getLogger("cuarl").setLevel(logging.WARNING)


def echoing() -> Starlette:
    """Refuses everything, and repeats in its answer what it was sent as a key."""

    async def refuse(request: Request) -> Response:
        return JSONResponse({"message": f"bad key: {request.headers.get('authorization')}"}, 403)

    return Starlette(routes=[Route("/{path:path}", refuse, methods=["GET", "POST", "PUT"])])


def kept(place: Watched) -> list[Path]:
    """Every file that anything was written to."""
    return [path for path in place.folder.rglob("*") if path.is_file()]


def assert_unseen(place: Watched) -> None:
    told = {
        (marker, str(path.relative_to(place.folder)))
        for path in kept(place)
        for data in [path.read_bytes()]
        for marker in MARKERS
        if marker.encode() in data
    }
    assert told == set()
    assert [marker for marker in MARKERS if marker in place.said] == []


def test_no_key_is_kept_or_shown(place: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    task = ("--tasks", "train_02_enable_wifi", "--max-turns", "1")
    with field(model_key=SERVE) as servers:
        for name, value in servers.variables.items():
            monkeypatch.setenv(name, value)
        ours = ("rollout", "--env", "gym", *task)
        assert place.cuarl(*ours, "--agent", "random", "--gym-settle-ms", "5", "--name", "own").code == 0
        mini = place.cuarl(*ours, *MINI, "--name", "mini", "--episodes", "2")
        assert mini.code == 0, mini.err
        assert servers.agent.runs, "the mini-agent acted"
        boxes = ("rollout", "--env", "gbox", "--agent", "random", *task, "--gbox-settle-ms", "5")
        assert place.cuarl(*boxes, "--name", "box").code == 0
    with cluster() as pods:
        monkeypatch.setenv("KUBE_API_URL", pods.url)
        sessions = ("rollout", "--env", "pods", "--agent", "random", *task, "--pods-settle-ms", "5")
        assert place.cuarl(*sessions, "--name", "pod").code == 0
        given = [one["value"] for pod in pods.fake.past for one in pod.manifest["spec"]["containers"][0]["env"]]
    assert given and not [path for path in kept(place) for token in given if token.encode() in path.read_bytes()]
    assert not any(token in place.said for token in given)
    files = kept(place)
    assert {"config.json", "manifest.json", "cuarl.db"} <= {path.name for path in files}
    for command in (
        ("db", "export", "out"),
        ("rollout", "show", "latest"),
        ("monitor", "tail", "mini"),
        ("config", "show"),
    ):
        place.cuarl(*command)
    assert_unseen(place)


def test_services_that_repeat_the_key_in_their_errors_are_masked(
    place: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ("--tasks", "train_02_enable_wifi")
    with field() as servers, served(echoing()) as echo:
        for name, value in servers.variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("GBOX_MINI_AGENT_BASE_URL", echo)
        assert place.cuarl("rollout", "--env", "gym", *MINI, *task, "--name", "mini").code != 0
        monkeypatch.setenv("GBOX_BASE_URL", f"{echo}/api/v1")
        assert place.cuarl("rollout", "--env", "gym", "--agent", "random", *task, "--name", "device").code != 0
        assert place.cuarl("rollout", "--env", "gbox", "--agent", "random", *task, "--name", "box").code != 0
        monkeypatch.setenv("KUBE_API_URL", echo)
        assert place.cuarl("rollout", "--env", "pods", "--agent", "random", *task, "--name", "pod").code != 0
        monkeypatch.setenv("GYM_BASE_URL", echo)
        assert place.cuarl("tasks", "gym").code != 0
        endpoint = ("rollout", "--model-base-url", f"{echo}/v1", "--tasks", "tasks.json", "--name", "endpoint")
        assert place.cuarl(*endpoint).code != 0
    stored = [one.failure for one in place.episodes()]
    assert len(stored) >= 3 and all(failure and "bad key: Bearer ***" in failure.message for failure in stored)
    assert "bad key: Bearer ***" in place.said
    assert_unseen(place)
