"""AReaL's contract, by duck type: what its workflow wrapper calls, against a real server of ours as its proxy."""

from __future__ import annotations

import inspect
from typing import Any

import anyio
import httpx
import pytest

pytest.importorskip("starlette", reason="the extra web is not installed")

from cuarl.errors import ConfigError, RolloutError
from cuarl.integrations.areal import ScreenAgent, seed_of, task_of
from tests.unit.policy.conftest import qwen3, qwen3_folder, tokenizer  # noqa: F401
from tests.unit.serve.conftest import Place, client

DONE = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "terminate", "status": "success"}}\n</tool_call>'
TASK = {"id": "dark", "description": "Do it", "checks": [{"path": "display.dark_theme", "value": False}]}
KEY = "areal-session-key"


@pytest.fixture
def place(qwen3: Any) -> Place:  # noqa: F811
    return Place(qwen3)


def run(place: Place, data: dict[str, Any], *said: str, agent: ScreenAgent | None = None) -> float:
    service = place.service(*said, token=KEY)

    async def call() -> float:
        async with client(service) as http:
            found: float = await (agent or ScreenAgent(model="small", max_tokens=8)).run(
                data, base_url="http://127.0.0.1/v1", http_client=http, api_key=KEY, engine=object()
            )
            assert not http.is_closed, "the client is AReaL's"
            return found

    return anyio.run(call)


def test_it_is_what_areal_calls() -> None:
    run = ScreenAgent().run
    assert inspect.iscoroutinefunction(run)
    parameters = inspect.signature(run).parameters
    assert next(iter(parameters)) == "data" and {"base_url", "http_client", "api_key"} <= set(parameters)
    assert any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def test_an_episode_is_acted_through_the_proxy_and_rewarded(place: Place) -> None:
    assert run(place, {"task": {**TASK, "preset": {"display.dark_theme": False}}}, DONE) == 1.0
    assert run(place, {"task": {**TASK, "preset": {"display.dark_theme": True}}}, DONE) == 0.0
    (episode,) = place.kept.episodes.values()  # of the second server; its numbers start anew
    assert [t.sampled.text for t in episode.turns if t.sampled] == [DONE]


def test_no_verdict_is_no_reward() -> None:
    async def call() -> None:
        def down(request: httpx.Request) -> httpx.Response:
            return httpx.Response(500)

        async with httpx.AsyncClient(transport=httpx.MockTransport(down)) as http:
            await ScreenAgent().run({"task": TASK}, base_url="http://proxy/v1", http_client=http, api_key=KEY)

    with pytest.raises(RolloutError, match="no reward: the endpoint answered 500"):
        anyio.run(call)


def test_rows_name_or_hold_their_task() -> None:
    assert task_of({"task": "train_02_enable_wifi"}).id == "train_02_enable_wifi"
    assert seed_of({"task": "a"}) == seed_of({"task": "a"}) != seed_of({"task": "b"}) and seed_of({"seed": 7}) == 7
    with pytest.raises(ConfigError, match="no task"):
        task_of({"prompt": "x"})
