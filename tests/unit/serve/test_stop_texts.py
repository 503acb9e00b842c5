"""Stop texts: cut from what clients are given, while the sampled ids stay whole in the record and in later prompts."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from cuarl.serve.tools import read_answer
from tests.unit.policy.pictures import screen
from tests.unit.serve.conftest import Place
from tests.unit.serve.test_service import CALL, TOOL, ask, chat, user

CLICK = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "click", "coordinate": [1, 2]}}\n</tool_call>'


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (["</tool_call>"], CLICK.removesuffix("</tool_call>")),
        (["coordinate"], CLICK[: CLICK.index("coordinate")]),
        ("coordinate", CLICK[: CLICK.index("coordinate")]),
        (["arguments", "name"], CLICK[: CLICK.index("name")]),
        (["never said"], CLICK),
        ([""], CLICK),
    ],
    ids=str,
)
def test_b20_text_ends_before_its_stop_text_and_the_ids_are_whole(stop: Any, text: str, place: Place) -> None:
    reply = ask(place, place.service(CLICK), chat(user(screen(1)), stop=stop, return_token_ids=True)).json()
    choice = reply["choices"][0]
    (turn,) = next(iter(place.kept.episodes.values())).turns
    assert choice["message"]["content"] == text
    assert choice["finish_reason"] == "stop"
    assert turn.sampled is not None
    assert (turn.sampled.text, list(turn.sampled.token_ids)) == (CLICK, choice["token_ids"])


@pytest.mark.parametrize(
    ("stop", "reason"), [(["coordinate", "action"], "action"), (["</tool_call>"], "</tool_call>"), (["no"], None)]
)
def test_b20_reply_says_which_stop_text_ended_it(stop: list[str], reason: str | None, place: Place) -> None:
    reply = ask(place, place.service(CLICK), chat(user(screen(1)), stop=stop)).json()
    assert reply["choices"][0].get("stop_reason") == reason


def test_b20_stream_holds_no_stop_text_and_all_of_the_ids(place: Place) -> None:
    body = chat(user(screen(1)), stop=["coordinate"], stream=True, return_token_ids=True)
    lines = ask(place, place.service(CLICK), body).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    choices = [chunk["choices"][0] for chunk in chunks]
    assert "".join(c["delta"].get("content") or "" for c in choices) == CLICK[: CLICK.index("coordinate")]
    (turn,) = next(iter(place.kept.episodes.values())).turns
    assert turn.sampled is not None
    assert [i for c in choices for i in c.get("token_ids") or ()] == list(turn.sampled.token_ids)


def test_b20_responses_are_cut_too(place: Place) -> None:
    body = {"model": "small", "input": "go", "stop": ["coordinate"]}
    reply = ask(place, place.service(CLICK), body, "/v1/responses").json()
    assert reply["output"][0]["content"][0]["text"] == CLICK[: CLICK.index("coordinate")]


def test_b20_call_that_its_closing_tag_stops_is_whole(place: Place) -> None:
    reply = ask(place, place.service(CALL), chat(user(screen(1)), stop=["</tool_call>"], tools=[TOOL])).json()
    message = reply["choices"][0]["message"]
    assert message["content"] is None
    assert [c["function"]["name"] for c in message["tool_calls"]] == ["tap"]


def test_b20_call_that_a_stop_text_cuts_off_is_no_call() -> None:
    assert read_answer(CALL + "ok", {"tap"}, ["arguments"]).calls == ()
    assert read_answer(CALL + "ok", {"tap"}, ["ok"]) == ("", read_answer(CALL, {"tap"}).calls, "ok")


def test_b20_answers_that_look_alike_once_cut_are_continued_with_their_own_ids(place: Place) -> None:
    """Two clicks at different places are one text before their coordinate; the prompt after them has both."""
    clicks = [CLICK, CLICK.replace("[1, 2]", "[3, 4]")]
    service = place.service(*clicks, "done")

    async def work(http: httpx.AsyncClient) -> None:
        messages = []
        for i in range(3):
            messages.append(user(screen(i)))
            body = chat(*messages, stop=["coordinate"])
            reply = (await http.post("/sessions/one/v1/chat/completions", json=body)).json()
            messages.append(reply["choices"][0]["message"])

    place.with_client(service, work)
    first, second, third = (turn.sampled for turn in place.kept.episodes["run.one"].turns)
    assert first and second and third
    assert first.token_ids != second.token_ids
    held = " ".join(map(str, third.prompt_ids))
    at = [held.find(" ".join(map(str, one.token_ids))) for one in (first, second)]
    assert -1 < at[0] < at[1]
