"""``cuarl serve`` as a process, with the real ``openai`` client and with cuarl itself as clients."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.integration.rollout_place import Place, bare
from tests.unit.policy.pictures import screen

openai = pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytestmark = pytest.mark.integration

TOKEN = "serve-token-canary-51c2"


class Server:
    """A running ``cuarl serve``, its run called ``name``."""

    def __init__(self, folder: Path, *options: str, name: str = "rec", **variables: str) -> None:
        words = ["serve", "--port", "0", "--name", name, "--json", *options]
        environment = {**os.environ, "CUARL_SERVE_TOKEN": TOKEN, "OMP_NUM_THREADS": "1", **variables}
        self.process = warm.Command(*words, cwd=folder, env=environment, stdout=warm.PIPE, stderr=warm.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.started: dict[str, Any] = json.loads(line)
        self.url: str = self.started["url"]

    def stop(self) -> str:
        """End it as Ctrl-C does; what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=120)[1]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


@pytest.fixture
def server(place: Place) -> Iterator[Server]:
    (place.folder / "runs").mkdir(exist_ok=True)
    made = Server(place.folder, "--adapters", str(place.folder / "runs"))
    yield made
    made.stop()


def uri(seed: int) -> str:
    return "data:image/png;base64," + base64.b64encode(screen(seed, 192, 384).png()).decode()


def test_a_session_of_the_openai_client_is_recorded_and_proven(place: Place, server: Server) -> None:
    session = server.url.removesuffix("/v1") + "/sessions/first/v1"
    client = openai.OpenAI(base_url=session, api_key=TOKEN, max_retries=0)
    assert [m.id for m in client.models.list()] == ["tiny"]
    messages: list[Any] = [{"role": "system", "content": "You act on a phone."}]
    for turn in range(3):
        content = [{"type": "image_url", "image_url": {"url": uri(turn)}}, {"type": "text", "text": "Turn Wi-Fi on"}]
        messages.append({"role": "user", "content": content})
        reply = client.chat.completions.create(model="tiny", messages=messages, max_tokens=12, logprobs=True)
        messages.append({"role": "assistant", "content": reply.choices[0].message.content})
    stream = client.chat.completions.create(model="tiny", messages=messages[:-1], max_tokens=12, stream=True)
    assert [c.choices[0].finish_reason for c in stream][-1] in ("stop", "length")
    picture = {"type": "input_image", "image_url": uri(7), "detail": "auto"}
    first = client.responses.create(model="tiny", input=[{"role": "user", "content": [picture]}], max_output_tokens=8)
    with client.responses.stream(
        model="tiny", input="Go on", previous_response_id=first.id, max_output_tokens=8
    ) as events:
        assert events.until_done().get_final_response().output_text is not None
    with pytest.raises(openai.BadRequestError, match="n=2"):
        client.chat.completions.create(model="tiny", messages=messages, n=2)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    said = server.stop()
    assert server.process.returncode == 0 and "recorded 6 turns of 1 sessions" in said and TOKEN not in said
    found = place.cuarl("rollout", "verify", "rec", "--json")
    assert found.code == 0, found.err
    (verified,) = json.loads(found.out)
    assert verified["turns"] == 6 and verified["largest"] < 1e-4


def test_cuarl_trains_what_cuarl_serves(place: Place, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step 1 trains with the server's base, and the adapter that step 1 trained, loaded into it, step 2."""
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    trained = place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        "--model-base-url",
        server.url,
        "--group-size",
        "2",
        "--groups-per-batch",
        "1",
        "--max-turns",
        "2",
        "--max-steps",
        "3",
        "--save-every",
        "3",
        "--skip-baseline",
        "--eval-episodes",
        "1",
        "--keep-adapters",
        "--name",
        "t1",
    )
    assert trained.code == 0, trained.err
    client = openai.OpenAI(base_url=server.url, api_key=TOKEN, max_retries=0)
    assert [m.id for m in client.models.list()] == ["tiny"], "the run's adapters are unloaded at its end"
    assert list((place.folder / "runs").glob(".adapter-*")) == []
    server.stop()
    for run in ("t1", "rec"):
        found = place.cuarl("rollout", "verify", run, "--json")
        assert found.code == 0, found.err
        versions = {v["policy_version"]: v for v in json.loads(found.out)}
        assert all(v["largest"] < 1e-4 for v in versions.values()), "each turn is proven, by what was handed over"
        # the last adapter is asked by the evaluation alone
        assert 0 in versions and len(versions) == 4


def test_cuarl_trains_beside_collecting_from_what_cuarl_serves(
    place: Place, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    trained = place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        "--model-base-url",
        server.url,
        "--group-size",
        "2",
        "--groups-per-batch",
        "1",
        "--max-turns",
        "2",
        "--max-steps",
        "3",
        "--save-every",
        "2",
        "--skip-baseline",
        "--eval-episodes",
        "1",
        "--keep-adapters",
        "--max-steps-off-policy",
        "1",
        "--name",
        "t1",
    )
    assert trained.code == 0, trained.err
    lines = [json.loads(x) for x in (place.folder / "runs" / "t1" / "metrics.jsonl").read_text().splitlines()]
    assert [x["async/staleness_max"] for x in lines if "async/staleness_max" in x] == [0, 1, 1]
    again = place.cuarl("train", "--resume", "t1", "--max-steps", "4")
    assert again.code == 0, again.err
    client = openai.OpenAI(base_url=server.url, api_key=TOKEN, max_retries=0)
    assert [m.id for m in client.models.list()] == ["tiny"], "the run's adapters are unloaded at its end"
    server.stop()
    found = place.cuarl("rollout", "verify", "t1", "--json")
    assert found.code == 0, found.err
    versions = {v["policy_version"]: v for v in json.loads(found.out)}
    assert all(v["largest"] < 1e-4 for v in versions.values())
    assert {0, 1, 2} <= versions.keys()


def test_server_that_takes_no_adapters_is_refused_before_a_step_is_collected(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    (place.folder / "runs").mkdir()
    closed = Server(place.folder)
    refused = place.cuarl(
        "train", "--tasks", "train_02_enable_wifi", "--model-base-url", closed.url, "--max-steps", "1", "--name", "t2"
    )
    closed.stop()
    assert refused.code == 4 and "does not load the adapter" in refused.err and "--adapters FOLDER" in refused.err
    assert not (place.folder / "runs" / "t2").exists()
    assert list((place.folder / "runs").glob(".adapter-*")) == []


def test_an_open_address_needs_a_token(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUARL_SERVE_TOKEN", raising=False)
    refused = place.cuarl("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 4 and "CUARL_SERVE_TOKEN" in refused.err


def test_a_server_that_is_killed_ends_the_run_with_its_address_and_how_to_go_on(
    place: Place, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    words = ["--model-base-url", server.url, "--group-size", "2", "--groups-per-batch", "1", "--max-turns", "2"]
    from cuarl.workflow.endpoint import Trained

    refresh = Trained.refresh

    async def then_killed(self: Trained, version: int) -> None:
        await refresh(self, version)
        if version == 1:
            server.process.kill()
            server.process.wait()

    monkeypatch.setattr(Trained, "refresh", then_killed)
    ended = place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        *words,
        "--max-steps",
        "2",
        "--save-every",
        "1",
        "--skip-baseline",
        "--eval-episodes",
        "1",
        "--name",
        "k1",
    )
    assert ended.code == 1
    assert f"{server.url} gave no answer" in ended.err
    assert "cuarl train --resume k1" in ended.err
