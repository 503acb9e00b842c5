"""``cuarl serve`` in front of policies that are elsewhere: another endpoint, and Tinker.

The real ``openai`` client asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cuarl.local.threads import served
from cuarl.trajectory import Turn
from tests.fakes.chat_server import ChatServer
from tests.integration.rollout_place import Place, bare
from tests.integration.test_serve_cli import TOKEN, Server, uri

openai = pytest.importorskip("openai", reason="the openai client is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # Tinker's SDK, at exit
]
ACT = "You act on a phone."
SAID = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "wait", "time": 1}}\n</tool_call>'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


@contextmanager
def serving(place: Place, *options: str, name: str, **variables: str) -> Iterator[Server]:
    server = Server(place.folder, *options, name=name, **variables)
    try:
        yield server
    finally:
        server.stop()


def converse(server: Server, session: str, **fields: Any) -> list[Any]:
    """Three turns with a picture each, earlier answers repeated as text."""
    client = openai.OpenAI(
        base_url=f"{server.url.removesuffix('/v1')}/sessions/{session}/v1", api_key=TOKEN, max_retries=0
    )
    model = fields.pop("model", None) or next(m.id for m in client.models.list())
    messages: list[Any] = [{"role": "system", "content": ACT}]
    replies = []
    for turn in range(3):
        content = [{"type": "image_url", "image_url": {"url": uri(turn)}}, {"type": "text", "text": "Turn Wi-Fi on"}]
        messages.append({"role": "user", "content": content})
        replies.append(client.chat.completions.create(model=model, messages=messages, max_tokens=40, **fields))
        messages.append({"role": "assistant", "content": replies[-1].choices[0].message.content})
    return replies


def turns_of(place: Place, run: str, policy_version: int = 0) -> Sequence[Turn]:
    """Of the one episode that began with this version."""
    run_id = json.loads((place.folder / "runs" / run / "manifest.json").read_text())["run_id"]
    episodes = place.episodes(run=run_id)
    (turns,) = (e.turns for e in episodes if e.turns[0].sampled.policy_version == policy_version)
    return turns


def verified(place: Place, run: str) -> list[dict[str, Any]]:
    found = place.cuarl("rollout", "verify", run, "--json")
    assert found.code == 0, found.err
    return list(json.loads(found.out))


def test_an_endpoint_that_gives_ids_is_recorded_token_by_token(place: Place) -> None:
    with serving(place, "base", name="back") as back:
        options = (back.url, "--model-name", "tiny")
        with serving(place, *options, name="front", OPENAI_API_KEY=TOKEN) as front:
            assert front.started["lacking"] == []
            replies = converse(front, "one", logprobs=True, extra_body={"return_token_ids": True})
            said = front.stop()
    assert front.process.returncode == 0 and "recorded 3 turns of 1 sessions" in said and TOKEN not in said
    turns = turns_of(place, "front")
    for reply, turn in zip(replies, turns, strict=True):
        choice, sampled = reply.choices[0], turn.sampled
        assert sampled is not None and sampled.exact
        assert tuple(choice.token_ids) == sampled.token_ids and tuple(reply.prompt_token_ids) == sampled.prompt_ids
        assert tuple(c.logprob for c in choice.logprobs.content) == sampled.logprobs
    (version,) = verified(place, "front")
    assert version["turns"] == 3 and version["largest"] < 1e-4


def test_an_endpoint_that_gives_text_only_is_recorded_as_such_and_not_trained_on(place: Place) -> None:
    with (
        served(ChatServer(SAID).app()) as upstream,
        serving(place, f"{upstream}/v1", "--model-name", "tiny", name="front") as front,
    ):
        assert front.started["lacking"] == ["token ids (return_token_ids)", "log-probabilities"]
        replies = converse(front, "one")
        assert [r.choices[0].message.content for r in replies] == [SAID] * 3
        with pytest.raises(openai.BadRequestError, match="no log-probabilities"):
            converse(front, "two", logprobs=True)
        httpx.post(
            f"{front.url.removesuffix('/v1')}/sessions/one/end",
            json={"success": True, "reward": 1.0},
            headers={"Authorization": f"Bearer {TOKEN}"},
        ).raise_for_status()
        said = front.stop()
    assert "can't be trained on exactly" in said
    turns = turns_of(place, "front")
    assert all(t.sampled is not None and not t.sampled.exact and t.sampled.logprobs is None for t in turns)
    assert all("not exact" in t.warnings[0] for t in turns)
    trained = place.cuarl("train", "--algorithm", "sft", "--sft-runs", "front", "--max-steps", "1")
    assert trained.code == 2 and "they need token ids" in trained.err


def test_what_is_elsewhere_needs_a_name_and_takes_no_adapters(place: Place) -> None:
    unnamed = place.cuarl("serve", "http://localhost:9/v1")
    assert unnamed.code == 2 and "--model-name" in unnamed.err
    adapters = place.cuarl("serve", "tinker", "--model-name", "tiny", "--adapters", ".")
    assert adapters.code == 2 and "in this process" in adapters.err
    keyless = place.cuarl("serve", "tinker", "--model-name", "tiny", "--port", "0")
    assert keyless.code == 4 and "TINKER_API_KEY" in keyless.err
    gone = place.cuarl("serve", "http://127.0.0.1:9/v1", "--model-name", "tiny", "--port", "0")
    assert gone.code == 4 and "no endpoint answers" in gone.err


def test_tinkers_policies_are_recorded_token_by_token(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base, whose record is proven here, and weights that were trained there, which nobody has here."""
    tinker = pytest.importorskip("tinker", reason="the extra tinker is not installed")
    from cuarl.local.tinker import running, served_base

    key = "tml-serve-canary-77d0"
    monkeypatch.setenv("TINKER_TELEMETRY", "0")
    monkeypatch.delenv("TINKER_API_KEY", raising=False)
    with running(served_base()) as url, ExitStack() as stack:
        service = tinker.ServiceClient(api_key=key, base_url=url)
        # its heart beats in this process until then, and warns in the tests that follow
        stack.callback(lambda: service.close("success").result())
        client = service.create_lora_training_client("tiny", rank=4, seed=0).result()
        weights = client.save_weights_for_sampler("kept").result().path
        checkpoint = place.folder / "step-000003"
        checkpoint.mkdir()
        (checkpoint / "tinker.json").write_text(json.dumps({"state": "tinker://s", "sampler": weights, "step": 3}))
        for name, target in (("base", "tinker"), ("kept", str(checkpoint))):
            options = (target, "--model-name", "tiny")
            with serving(place, *options, name=name, TINKER_API_KEY=key, TINKER_BASE_URL=url) as front:
                assert front.started["lacking"] == []
                replies = converse(front, "one", logprobs=True, temperature=1.0)
                if name == "base":
                    by_path = converse(front, "two", logprobs=True, temperature=1.0, model=weights)
                    with pytest.raises(openai.NotFoundError, match="can't be had"):
                        converse(front, "three", model="tinker://nobody/weights/x")
                said = front.stop()
            assert front.process.returncode == 0 and key not in said
            turns = turns_of(place, name, policy_version=0 if name == "base" else 3)
            for reply, turn in zip(replies, turns, strict=True):
                assert turn.sampled is not None and turn.sampled.exact
                assert tuple(c.logprob for c in reply.choices[0].logprobs.content) == turn.sampled.logprobs
    for reply, turn in zip(by_path, turns_of(place, "base", policy_version=1), strict=True):
        assert reply.model == weights
        assert tuple(c.logprob for c in reply.choices[0].logprobs.content) == turn.sampled.logprobs
    found = json.loads(place.cuarl("rollout", "verify", "base", "--json").out)
    base = next(version for version in found if version["policy_version"] == 0)
    assert base["turns"] == 3 and base["largest"] < 1e-4
    kept = place.cuarl("rollout", "verify", "kept", "--json")
    assert kept.code == 2 and "weights" in kept.err, "nobody has them here"
    (version,) = json.loads(kept.out)
    assert (version["policy_version"], version["turns"], version["largest"]) == (3, 3, None)
    measured = place.cuarl("eval", str(checkpoint))
    assert measured.code == 2 and "cuarl serve" in measured.err
