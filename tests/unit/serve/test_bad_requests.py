"""What a client may get wrong, or try: each is refused with a status of its own fault, and nothing is lost."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import anyio
import httpx
import pytest
from PIL import Image

from cuarl.errors import StoreError
from cuarl.local.threads import served
from cuarl.serve.sessions import Ending
from cuarl.types import StopReason
from tests.unit.serve.conftest import Place, Reciter
from tests.unit.serve.test_service import ask, chat, screen, user

HUGE = (1 << 64) - 1


def png(width: int, height: int) -> str:
    out = io.BytesIO()
    Image.new("1", (width, height)).save(out, "PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def picture(url: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [{"role": ["x"], "content": "a"}]}, "messages[0].role"),
        ({"messages": ["x"]}, "messages[0].role"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "tool_calls": 7}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}]},
         "messages[0].tool_calls[0].function.arguments"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": [], "function": {"name": "f"}}]}]},
            "messages[0].tool_calls[0].id"),
        ({"messages": [{"role": "user", "content": [{"type": {"a": []}, "text": "x"}]}]}, "messages[0].content[0]"),
        ({"stop": 7}, "stop"), ({"stop": [7]}, "stop"), ({"stop": ["a"] * 65}, "stop"), ({"stop": {"a": 1}}, "stop"),
        ({"seed": "x"}, "seed"), ({"seed": 1.5}, "seed"), ({"seed": [1]}, "seed"), ({"stream": "false"}, "stream"),
        ({"stream_options": 7}, "stream_options"), ({"stream_options": {"include_usage": "no"}}, "include_usage"),
        ({"logprobs": "yes"}, "logprobs"), ({"return_token_ids": 2}, "return_token_ids"),
        ({"model": ["small"]}, "model"),
        ({"tools": 7}, "tools"), ({"tools": {"a": 1}}, "tools"), ({"tools": [7]}, "tools[0]"),
        ({"tool_choice": [[]]}, "tool_choice"),
        ({"max_tokens": 1.5}, "max_tokens"), ({"max_tokens": HUGE}, "max_tokens"), ({"max_tokens": True}, "max_tokens"),
        ({"top_k": HUGE}, "top_k"), ({"top_p": 0}, "top_p"), ({"temperature": 1e-300}, "temperature"),
        ({"temperature": -1}, "temperature"),
        ({"logit_bias": {"1" * 5000: 1}}, "logit_bias"), ({"logit_bias": {"5": 100}}, "logit_bias"),
        ({"x" * 5000: [1]}, None),
        (picture("http://["), "image_url"), (picture("http://a:99999999/"), "image_url"),
        (picture("http://" + "a" * 5000), "image_url"),
        (picture("data:image/png;base64,AAAA"), "image_url"), (picture("data:image/png;base64,\u00e4"), "image_url"),
        (picture(png(8000, 1)), "messages"), (picture(png(3000, 5)), "messages"), (picture(png(1, 50_000)), "messages"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_field_that_is_wrong_is_named(place: Place, fields: dict[str, Any], param: str | None) -> None:
    reply = ask(place, place.service(), chat(user()) | fields)
    error = reply.json()["error"]
    assert reply.status_code == 400 and len(error["message"]) < 400, reply.text
    if param is not None:
        assert error["param"] == param
    assert not place.kept.episodes


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": ["x"]}, "previous_response_id"),
        ({"previous_response_id": {}}, "previous_response_id"),
        ({"include": 7}, "include"), ({"include": [["x"]]}, "include"), ({"instructions": 7}, "instructions"),
        ({"input": 7}, "input"),
        ({"input": [7]}, "input[0]"), ({"input": [{"type": ["x"]}]}, "input[0].type"),
        ({"input": [{"role": ["x"], "content": ""}]}, "input[0].role"),
        ({"input": [{"type": "function_call", "name": [1]}]}, "input[0].name"),
        ({"input": [{"type": "function_call"}]}, "input[0].name"),
        ({"input": [{"type": "function_call_output", "output": 7}]}, "input[0].output"), ({"stream": 1}, "stream"),
        ({"text": {"format": {"type": "json_object"}}}, "text"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_field_of_a_response_that_is_wrong_is_named(place: Place, fields: dict[str, Any], param: str) -> None:
    async def work(http: httpx.AsyncClient) -> httpx.Response:
        return await http.post("/v1/responses", json={"model": "small", "input": "hi"} | fields)

    reply = place.with_client(place.service(), work)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 5000, b'{"a":' * 5000, b'{"messages": NaN}', b'{"seed": 1e999}', b'{"seed": ' + b"1" * 5000 + b"}",
        b"\xff", b"[]",
        b'{"messages": [{"role": "user", "content": "\\ud800 x"}]}',
    ],
)  # fmt: skip
def test_body_that_is_no_json_is_refused(place: Place, body: bytes) -> None:
    async def work(http: httpx.AsyncClient) -> list[httpx.Response]:
        kind = {"content-type": "application/json"}
        paths = ("/v1/chat/completions", "/v1/responses", "/sessions/a/end", "/v1/load_lora_adapter")
        return [await http.post(path, content=body, headers=kind) for path in paths]

    for reply in place.with_client(place.service(), work):
        assert reply.status_code == 400 and "JSON" in reply.json()["error"]["message"]


def test_verdict_of_no_number_is_refused_and_the_session_can_still_be_ended(place: Place) -> None:
    """The verdict of one client's NaN was lost, and the whole run failed when the server ended."""
    kind = {"content-type": "application/json"}

    async def work(http: httpx.AsyncClient) -> None:
        await http.post("/sessions/a/v1/chat/completions", json=chat(user(screen(1))))
        for said in (
            b'{"reward": NaN}',
            b'{"reward": 1e999}',
            b'{"reward": -Infinity}',
            b'{"score": NaN}',
            b'{"info": {"a": [NaN]}}',
        ):
            reply = await http.post("/sessions/a/end", content=b'{"success": true, ' + said[1:], headers=kind)
            assert reply.status_code == 400 and "no number" in reply.text + "no number" * ("range" in reply.text)
        for said in (
            {"score": 2},
            {"success": "perhaps"},
            {"reward": "x"},
            {"info": 7},
            {"stop": "never"},
            {"other": 1},
        ):
            reply = await http.post("/sessions/a/end", json=said)
            assert reply.status_code == 400 and reply.json()["error"]["param"] == next(iter(said))
        assert (await http.get("/sessions/a")).json()["turns"] == 1
        assert (await http.post("/sessions/a/end", json={"success": True, "reward": 0.5})).status_code == 200

    place.with_client(place.service("hi"), work)
    (episode,) = place.kept.episodes.values()
    assert (
        episode.reward == 0.5
        and episode.verdict is not None
        and episode.verdict.success
        and episode.stop is StopReason.DONE
    )


def test_numbers_that_no_database_holds_are_refused_at_the_opening(place: Place) -> None:
    async def work(http: httpx.AsyncClient) -> None:
        for said in ({"seed": HUGE}, {"sampling_seed": HUGE}, {"attempt": HUGE}, {"attempt": -1}):
            reply = await http.put("/sessions/a", json=said)
            assert reply.status_code == 400 and reply.json()["error"]["param"] == next(iter(said))
        assert (await http.put("/sessions/a", json={"seed": -(1 << 63)})).status_code == 201

    place.with_client(place.service(), work)


def test_session_whose_record_can_not_be_kept_is_not_over(place: Place) -> None:
    service = place.service("hi")
    keep, refused = service.sessions._save, [True]

    async def save(trajectory: Any, pictures: Any) -> None:
        if refused[0]:
            raise StoreError("the disk is full")
        await keep(trajectory, pictures)

    service.sessions._save = save

    async def run() -> None:
        service.sessions.open("a")
        with pytest.raises(StoreError):
            await service.sessions.end("a", Ending(reward=1.0))
        refused[0] = False
        assert (await service.sessions.end("a", Ending(reward=0.25))).reward == 0.25

    anyio.run(run)


def test_foreign_page_ends_no_session(place: Place) -> None:
    async def work(http: httpx.AsyncClient) -> None:
        await http.put("/sessions/a", json={})
        page = {"origin": "http://evil.com"}
        for at in ("/sessions/a/end", "/v1/chat/completions"):
            assert (await http.post(at, headers=page)).status_code == 403
        assert (await http.get("/health", headers={"host": "evil.com"})).status_code == 403
        assert (await http.get("/sessions/a")).status_code == 200

    place.with_client(place.service(), work)


def test_turn_that_waited_for_the_end_of_its_session_is_refused(place: Place) -> None:
    service = place.service("hi")

    async def run() -> None:
        session = service.sessions.open("a")
        async with session.lock, anyio.create_task_group() as group:
            replies: list[httpx.Response] = []
            group.start_soon(post, service, replies)
            await anyio.wait_all_tasks_blocked()
            session.ending = Ending()
            group.start_soon(anyio.sleep, 0)
            session.lock.release()
            with anyio.fail_after(30):
                while not replies:
                    await anyio.sleep(0.01)
            await session.lock.acquire()
        assert replies[0].status_code == 409

    anyio.run(run)


async def post(service: Any, replies: list[httpx.Response]) -> None:
    transport = httpx.ASGITransport(service.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        replies.append(await http.post("/sessions/a/v1/chat/completions", json=chat(user())))


def test_client_that_leaves_before_its_answer_leaves_no_turn(place: Place) -> None:
    begun, left = [], []

    class Slow(Reciter):
        async def sample(self, request: Any) -> Any:
            if not begun:
                begun.append(1)
                try:
                    await anyio.sleep(60)
                finally:
                    left.append(1)
            return await super().sample(request)

    service = place.service("again")
    sampler = Slow(place.policy, "again")
    object.__setattr__(service.models.base, "sampler", sampler)
    with served(service.app()) as url, httpx.Client(base_url=url) as http:
        asked = chat(user(screen(1)))
        with pytest.raises(httpx.ReadTimeout):
            http.post("/sessions/a/v1/chat/completions", json=asked, timeout=1)
        reply = http.post("/sessions/a/v1/chat/completions", json=asked, timeout=30)
        assert reply.json()["choices"][0]["message"]["content"] == "again"
        assert http.get("/sessions/a").json()["turns"] == 1 and left


def test_call_that_the_policy_garbled_stays_text(place: Place) -> None:
    tools = [{"type": "function", "function": {"name": "tap"}}]
    for call in (
        '{"name": ["tap"]}',
        '{"name": {}}',
        '{"name": "tap", "arguments": ' + "[" * 5000,
        '{"name": "tap", "arguments": NaN}',
        "7",
    ):
        said = f"<tool_call>\n{call}\n</tool_call>"
        reply = ask(place, place.service(said), chat(user(), tools=tools))
        message = json.loads(reply.text)["choices"][0]["message"]
        assert message["content"] == said and "tool_calls" not in message
