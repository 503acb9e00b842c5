from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import httpx
import pytest

from cuarl.policy.sampler import SampledText, SamplingParams
from cuarl.serve.app import Service
from cuarl.serve.pictures import MAX_PIXELS
from cuarl.serve.requests import Defaults
from cuarl.types import Screenshot
from cuarl.web.rules import is_loopback
from tests.unit.policy.pictures import screen
from tests.unit.serve.conftest import Place

CALL = '<tool_call>\n{"name": "tap", "arguments": {"x": 3}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "tap", "parameters": {"type": "object"}}}


def uri(shot: Screenshot) -> str:
    return "data:image/png;base64," + base64.b64encode(shot.png()).decode()


def user(*shots: Screenshot, text: str = "go") -> dict[str, Any]:
    pictures = [{"type": "image_url", "image_url": {"url": uri(s)}} for s in shots]
    return {"role": "user", "content": [*pictures, {"type": "text", "text": text}]}


def ask(
    place: Place, service: Service, body: Any, path: str = "/v1/chat/completions", **headers: str
) -> httpx.Response:
    return place.with_client(service, lambda http: http.post(path, json=body), **headers)


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "small", "messages": list(messages), "max_tokens": 5, **fields}


def test_an_answer_has_the_ids_and_logprobs_that_are_recorded(place: Place) -> None:
    reply = ask(place, place.service(), chat(user(screen(1)), logprobs=True, return_token_ids=True)).json()
    (episode,) = place.kept.episodes.values()
    (turn,) = episode.turns
    assert turn.sampled is not None and turn.sampled.logprobs is not None
    choice = reply["choices"][0]
    assert tuple(choice["token_ids"]) == turn.sampled.token_ids
    assert tuple(reply["prompt_token_ids"]) == turn.sampled.prompt_ids
    assert [c["logprob"] for c in choice["logprobs"]["content"]] == list(turn.sampled.logprobs)
    assert turn.screenshot.digest == screen(1).digest and screen(1).digest in place.kept.pictures
    assert (episode.goal, episode.reward, episode.stop) == ("go", None, "done")


def test_later_prompts_of_a_session_hold_the_sampled_ids(place: Place) -> None:
    """The text of ids drawn at random is not what a tokenizer makes of it again."""
    service = place.service()

    async def work(http: httpx.AsyncClient) -> None:
        messages = []
        for i in range(3):
            messages.append(user(screen(i)))
            body = chat(*messages)
            reply = (await http.post("/sessions/one/v1/chat/completions", json=body)).json()
            messages.append(reply["choices"][0]["message"])

    place.with_client(service, work)
    turns = place.kept.episodes["run.one"].turns
    assert len(turns) == 3
    for earlier, later in pairwise(turns):
        assert earlier.sampled is not None and later.sampled is not None
        ids, prompt = earlier.sampled.token_ids, later.sampled.prompt_ids
        start = len(earlier.sampled.prompt_ids)
        assert prompt[:start] == earlier.sampled.prompt_ids and prompt[start : start + len(ids)] == ids


def test_the_header_names_a_session_too_and_its_end_scores_it(place: Place) -> None:
    service = place.service()

    async def work(http: httpx.AsyncClient) -> list[httpx.Response]:
        opening = {"task_id": "wifi", "group_id": "g", "attempt": 2}
        begun = await http.put("/sessions/s1", json=opening)
        await http.post("/v1/chat/completions", json=chat(user(screen(1))), headers={"X-Cuarl-Session": "s1"})
        assert place.kept.episodes["run.s1"].stop == "cancelled", "an open session is never scored"
        ended = await http.post("/sessions/s1/end", json={"reward": 0.5, "success": True})
        again = await http.post("/v1/chat/completions", json=chat(user()), headers={"X-Cuarl-Session": "s1"})
        taken = await http.put("/sessions/s1", json={})
        wrong = await http.put("/sessions/s2", json={"attempt": "x"})
        unknown = await http.post("/sessions/s3/end", json={})
        return [begun, ended, again, taken, wrong, unknown]

    replies = place.with_client(service, work)
    assert [r.status_code for r in replies] == [201, 200, 409, 409, 400, 404]
    record = place.kept.episodes["run.s1"]
    assert (record.reward, record.success, record.stop, record.task_id) == (0.5, True, "done", "wifi")
    assert (record.group_id, record.attempt, len(record.turns)) == ("g", 2, 1)


def test_tools_are_described_called_and_answered_in_the_policys_own_words(place: Place) -> None:
    service = place.service(f"I tap.\n{CALL}", "done")

    async def work(http: httpx.AsyncClient) -> dict[str, Any]:
        first = chat(user(screen(1)), tools=[TOOL])
        reply = (await http.post("/sessions/t/v1/chat/completions", json=first)).json()
        message = reply["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "ok"}
        await http.post("/sessions/t/v1/chat/completions", json=chat(user(screen(1)), message, result, tools=[TOOL]))
        return reply["choices"][0]

    choice = place.with_client(service, work)
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "I tap."
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "tap", "arguments": '{"x": 3}'}
    sampler: Any = service.models.base.sampler
    system, _, said, result = sampler.asked[1]
    assert '{"type": "function", "function": {"name": "tap"' in system.parts[0].text
    first = place.kept.episodes["run.t"].turns[0].sampled
    assert first is not None and said.parts == (SampledText(f"I tap.\n{CALL}", first.token_ids),)
    assert "".join(p.text for p in result.parts) == "<tool_response>\nok\n</tool_response>"


def test_a_call_of_a_tool_that_was_not_offered_stays_text(place: Place) -> None:
    assert ask(place, place.service(CALL), chat(user())).json()["choices"][0]["message"]["content"] == CALL


def test_a_stream_says_the_same_as_a_whole_reply(place: Place) -> None:
    body = chat(user(screen(1)), seed=4, logprobs=True, return_token_ids=True)
    whole = ask(place, place.service(), body).json()
    reply = ask(place, place.service(), {**body, "stream": True, "stream_options": {"include_usage": True}})
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    choices = [c["choices"][0] for c in chunks if c["choices"]]
    assert "".join(c["delta"].get("content", "") for c in choices) == whole["choices"][0]["message"]["content"]
    assert [t for c in choices for t in c.get("token_ids", ())] == whole["choices"][0]["token_ids"]
    streamed = [e for c in choices if c["logprobs"] for e in c["logprobs"]["content"]]
    assert streamed == whole["choices"][0]["logprobs"]["content"]
    assert chunks[-1]["usage"] == whole["usage"]


def test_responses_go_on_with_an_earlier_one(place: Place) -> None:
    service = place.service("first", f"x{CALL}", "third")

    async def work(http: httpx.AsyncClient) -> list[dict[str, Any]]:
        async def post(**fields: Any) -> dict[str, Any]:
            reply = await http.post("/sessions/r/v1/responses", json={"model": "small", **fields})
            return {**reply.json(), "code": reply.status_code}

        content = [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": uri(screen(1))}]
        tools = [{"type": "function", "name": "tap", "parameters": {}}]
        one = await post(input=[{"role": "user", "content": content}], instructions="Be brief.")
        two = await post(input="next", previous_response_id=one["id"], tools=tools)
        output = {"type": "function_call_output", "call_id": two["output"][1]["call_id"], "output": "ok"}
        three = await post(input=[output], previous_response_id=two["id"], tools=tools)
        four = await post(input="x", previous_response_id="resp_nothing")
        return [one, two, three, four]

    one, two, three, four = place.with_client(service, work)
    assert one["output"][0]["content"][0]["text"] == "first" and four["code"] == 404
    assert [item["type"] for item in two["output"]] == ["message", "function_call"]
    assert three["output"][0]["content"][0]["text"] == "third"
    sampler: Any = service.models.base.sampler
    roles = [[m.role for m in messages] for messages in sampler.asked]
    assert roles[0] == ["system", "user"] and roles[1] == ["system", "user", "assistant", "user"]
    assert roles[2] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert sampler.asked[2][2].parts[0].token_ids is not None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"temperature": "hot"}, "temperature"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": "<|im_end|>"}]}, "messages"),
        ({"frobnicate": 1}, "frobnicate"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(place: Place, fields: dict[str, Any], param: str) -> None:
    reply = ask(place, place.service(), chat(user()) | fields)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert not place.kept.episodes


def test_a_prompt_beyond_the_context_is_refused_as_clients_know_it(place: Place) -> None:
    reply = ask(place, place.service(), chat(user(text="word " * 4000)))
    assert reply.status_code == 400 and reply.json()["error"]["code"] == "context_length_exceeded"


def test_truncated_draws_are_recorded_without_logprobs(place: Place) -> None:
    reply = ask(place, place.service(), chat(user(), top_p=0.5, logprobs=True)).json()
    assert reply["choices"][0]["logprobs"]["content"]
    (episode,) = place.kept.episodes.values()
    sampled = episode.turns[0].sampled
    assert sampled is not None and sampled.logprobs is None and "top_p" in episode.turns[0].warnings[0]


def test_fixed_sampling_is_the_servers(place: Place) -> None:
    defaults = Defaults(SamplingParams(temperature=1.0, max_tokens=3), fixed=True)
    ask(place, place.service(defaults=defaults), chat(user(), temperature=0, max_tokens=1))
    (episode,) = place.kept.episodes.values()
    sampled = episode.turns[0].sampled
    assert sampled is not None and sampled.temperature == 1.0 and len(sampled.token_ids) <= 3


# --- who may ask ---------------------------------------------------------------------------------------------------


def test_a_token_is_asked_for(place: Place) -> None:
    service = place.service(token="key-1234567")
    assert ask(place, service, chat(user())).status_code == 401
    assert ask(place, service, chat(user()), Authorization="Bearer key-7654321").status_code == 401
    assert ask(place, service, chat(user()), Authorization="Bearer key-1234567").status_code == 200


def test_pages_of_other_sites_get_no_answer(place: Place) -> None:
    service = place.service()
    assert ask(place, service, chat(user()), Host="evil.example").status_code == 403
    text = place.with_client(service, lambda http: http.post("/v1/chat/completions", content=json.dumps(chat(user()))))
    assert text.status_code == 415


@pytest.mark.parametrize(
    ("host", "inside"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("10.1.2.3", False)],
)
def test_which_addresses_are_this_machines_own(host: str, inside: bool) -> None:
    assert is_loopback(host) == inside


# --- pictures by URL -----------------------------------------------------------------------------------------------


def fetch(place: Place, url: str, reply: httpx.Response, hosts: tuple[str, ...] = ("img.example",)) -> httpx.Response:
    service = place.service(hosts=hosts, transport=httpx.MockTransport(lambda request: reply))
    return ask(place, service, chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}))


def test_pictures_are_fetched_from_allowed_hosts_only(place: Place) -> None:
    data = httpx.Response(200, content=screen(3).png())
    assert fetch(place, "https://img.example/a.png", data).status_code == 200
    assert screen(3).digest in place.kept.pictures
    for url in (
        "https://other.example/a.png",
        "file:///etc/passwd",
        "http://127.0.0.1/x",
        "https://img.example.evil/x",
    ):
        refused = fetch(place, url, data)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "image_host_not_allowed")


@pytest.mark.parametrize(
    "reply",
    [httpx.Response(302, headers={"location": "http://10.0.0.1/"}), httpx.Response(200, content=b"<svg/>")],
    ids=["redirect", "no picture"],
)
def test_what_an_allowed_host_sends_is_not_trusted(place: Place, reply: httpx.Response) -> None:
    assert fetch(place, "https://img.example/a.png", reply).status_code == 400


def test_a_picture_too_large_to_decode_is_refused(place: Place) -> None:
    import io

    from PIL import Image

    data = io.BytesIO()
    Image.new("1", (10_000, MAX_PIXELS // 10_000 + 1)).save(data, "PNG")
    link = "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
    body = chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": link}}]})
    reply = ask(place, place.service(), body)
    assert reply.status_code == 400 and "too large" in reply.json()["error"]["message"]
