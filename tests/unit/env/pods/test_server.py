"""The session server of a pod, asked as any client of the protocol asks it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial

import anyio
import httpx
import pytest

pytest.importorskip("starlette", reason="the server needs the extra web")

from cuarl.env.limits import excess
from cuarl.env.pods import actions
from cuarl.env.pods.hosted import HostedSession
from cuarl.env.pods.server import REMEMBERED, SessionServer
from cuarl.env.sim.devices import make_sim
from cuarl.errors import EnvError
from cuarl.local.threads import served
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Screenshot, TypeText

TOKEN = "session-marker-31d0"
HEADERS = {"X-Session-Token": TOKEN}
TASK = TaskInstance(
    task_id="t",
    goal="g",
    env="phone",
    checks=(Check(path="network.nfc", value=True), Check(path="network.wifi.enabled", value=False)),
    preset={"network.nfc": False, "network.wifi.enabled": False},
)


phone = partial(make_sim, "phone", "small", clutter=0.0)


@asynccontextmanager
async def asking(make=phone):
    session = HostedSession(make)
    app = SessionServer(session, "phone", TOKEN).app()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers=HEADERS
    ) as client:
        yield client, session
    await session.close()


def asked(test):
    """Run a test's body with a client of a fresh session."""

    def run():
        async def body():
            async with asking() as (client, session):
                await test(client, session)

        anyio.run(body)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def picture(client, **query):
    reply = await client.get("/act", params={"delay": 0, **query})
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "image/png"
    return Screenshot.decode(reply.content)


@asked
async def test_actions_answer_with_the_screen_after_them(client, session):
    first = await picture(client, action_type="screenshot")
    assert (await picture(client, action_type="screenshot")).digest == first.digest
    x, y = first.width // 2, first.height - 20
    changed = await picture(client, action_type="left_click", x=x, y=y)
    assert (changed.width, changed.height) == (first.width, first.height)
    assert session.acted == 1


@asked
async def test_probe_needs_no_token_and_everything_else_does(client, session):
    probe = await client.get("/", headers={"X-Session-Token": ""})
    assert probe.status_code == 200 and "type: phone" in probe.text and "started: " in probe.text
    for path in ("/act?action_type=screenshot", "/progress", "/state", "/oracle"):
        for wrong in ("", "another", TOKEN + "x", "ä"):
            reply = await client.get(path, headers={"X-Session-Token": wrong.encode()})
            assert reply.status_code == 401 and TOKEN not in reply.text
    assert (await client.post("/reset", json={}, headers={"X-Session-Token": ""})).status_code == 401


@asked
async def test_request_that_comes_twice_is_carried_out_once(client, session):
    async def click(key):
        return await client.get(
            "/act", params={"action_type": "left_click", "x": 5, "y": 90, "delay": 0}, headers={"Idempotency-Key": key}
        )

    first, again = await click("a"), await click("a")
    assert session.acted == 1 and again.content == first.content
    await click("b")
    assert session.acted == 2
    replies = []
    async with anyio.create_task_group() as group:  # both under way at the same time
        for _ in range(2):
            group.start_soon(lambda: append(replies, click("c")))
    assert session.acted == 3 and replies[0].content == replies[1].content
    for i in range(REMEMBERED):
        await click(f"more-{i}")
    await click("a")
    assert session.acted == 3 + REMEMBERED + 1, "what was long ago is forgotten"


async def append(replies, coming):
    replies.append(await coming)


@asked
async def test_requests_that_mean_nothing_are_refused_with_the_reason(client, session):
    for query, says in (
        ({"action_type": "left_click", "x": 1}, "y is missing"),
        ({}, "action_type is missing"),
        ({"action_type": "left_click", "x": "a", "y": 1}, "x is a whole number, not 'a'"),
        ({"action_type": "fly"}, "no action_type 'fly'"),
        ({"action_type": "screenshot", "delay": "soon"}, "delay is 0 to 60 seconds, not 'soon'"),
        ({"action_type": "left_click", "x": 99999, "y": 1}, "outside"),
        ({"action_type": "click", "action": '{"kind": "click"}'}, "click.x: Field required"),
    ):
        reply = await client.get("/act", params=query)
        assert reply.status_code == 422 and says in reply.json()["detail"], reply.text
    assert session.acted == 0
    for body in ({}, {"task": "{}", "seed": 1}, {"task": TASK.model_dump_json(), "seed": "x"}):
        assert (await client.post("/reset", json=body)).status_code == 422
    assert (await client.post("/reset", json=[])).status_code == 400


@asked
async def test_task_is_set_up_once_and_its_checks_are_the_rows(client, session):
    reply = await client.post("/reset", json={"task": TASK.model_dump_json(), "seed": 3})
    assert reply.status_code == 200
    assert (await client.post("/reset", json={"task": TASK.model_dump_json(), "seed": 3})).status_code == 409
    told = (await client.get("/progress")).json()
    assert told == {"num_correct_submissions": 1, "submitted_row_indices": [1], "num_incorrect_submissions": 0}
    told = (await client.get("/state")).json()
    assert told["state"]["network"]["nfc"] is False and "battery.level" in told["volatile"]
    for _ in range(20):
        action = (await client.get("/oracle")).json()
        if action["kind"] == "finish":
            break
        await picture(client, action_type=action["kind"], action=json.dumps(action))
    told = (await client.get("/progress")).json()
    assert told == {"num_correct_submissions": 2, "submitted_row_indices": [0, 1], "num_incorrect_submissions": 0}


@asked
async def test_task_that_the_device_refuses_leaves_the_session_unused(client, session):
    broken = TASK.model_copy(update={"preset": {"no.such.thing": 1}})
    reply = await client.post("/reset", json={"task": broken.model_dump_json(), "seed": 3})
    assert reply.status_code == 422 and "no.such.thing" in reply.json()["detail"]
    assert (await client.post("/reset", json={"task": TASK.model_dump_json(), "seed": 3})).status_code == 200


@asked
async def test_without_a_task_nothing_is_scored(client, session):
    nothing = {"num_correct_submissions": 0, "submitted_row_indices": [], "num_incorrect_submissions": 0}
    assert (await client.get("/progress")).json() == nothing
    assert (await client.get("/oracle")).status_code == 409


def test_device_that_fails_is_a_failure_of_the_server():
    class Broken:
        volatile = ()

        async def reset(self, task, seed):
            raise EnvError("the display has gone")

        async def close(self):
            pass

    async def body():
        async with asking(Broken) as (client, _):
            reply = await client.get("/act", params={"action_type": "screenshot"})
            assert reply.status_code == 500 and "the display has gone" in reply.json()["detail"]

    anyio.run(body)


@asked
async def test_head_of_an_action_does_not_act(client, session):
    query = {"action_type": "left_click", "x": 5, "y": 5, "delay": 0}
    for method in ("HEAD", "POST", "PUT", "OPTIONS"):
        assert (await client.request(method, "/act", params=query)).status_code == 405
    assert session.acted == 0 and (await client.head("/")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.com"}, {"origin": "http://evil.com"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"}, {"x-session-token": ""},
    ],
)  # fmt: skip
def test_page_of_a_browser_moves_nothing(headers):
    """As an image of a foreign page asks, or a page whose name was pointed at this machine."""

    async def body():
        async with asking() as (client, session):
            for path in (
                "/act?action_type=type&text=x&delay=0",
                '/act?action_type=x&action={"kind":"open_app","name":"Terminal"}',
            ):
                assert (await client.get(path, headers=headers)).status_code in (401, 403)
            assert (await client.get("/state", headers=headers)).status_code in (401, 403)
            assert session.acted == 0

    anyio.run(body)


@asked
async def test_what_one_request_may_take_is_bounded(client, session):
    for delay in ("nan", "inf", "-3", "1e9", "61", "1_0", "", "\uff11"):
        reply = await client.get("/act", params={"action_type": "left_click", "x": 5, "y": 5, "delay": delay})
        assert reply.status_code == 422 and "delay is 0 to 60 seconds" in reply.json()["detail"]
    for action, says in (
        ({"kind": "type", "text": "x" * 10_001}, "10001 characters"),
        ({"kind": "scroll", "direction": "up", "amount": 1 << 40}, "scroll"),
        ({"kind": "long_press", "x": 1, "y": 1, "duration_ms": 10**9}, "60000 ms"),
        ({"kind": "wait", "seconds": 61}, "seconds"),
        ({"kind": "drag", "path": [[1, 1], [2, 2]], "duration_ms": 60_001}, "60000 ms"),
    ):
        reply = await client.get("/act", params={"action_type": "x", "action": json.dumps(action), "delay": 0})
        assert reply.status_code == 422 and says in reply.json()["detail"], reply.text
    assert session.acted == 0


def test_client_that_leaves_does_not_lock_the_session_and_finds_its_action_done():
    session = HostedSession(phone)
    where = {"action_type": "left_click", "x": 5, "y": 90}
    with (
        served(SessionServer(session, "phone", TOKEN).app()) as url,
        httpx.Client(base_url=url, headers=HEADERS) as client,
    ):
        client.get("/state")
        with pytest.raises(httpx.ReadTimeout):
            client.get("/act", params={**where, "delay": 60}, headers={"Idempotency-Key": "k"}, timeout=1)
        assert client.get("/progress", timeout=20).status_code == 200
        again = client.get("/act", params={**where, "delay": 0}, headers={"Idempotency-Key": "k"}, timeout=20)
        assert again.status_code == 200 and session.acted == 1
    anyio.run(session.close)


def test_long_text_goes_to_our_own_server_in_pieces_that_it_takes():
    text = "abcde" * 4001
    pieces = [actions.read(query) for query in actions.queries(TypeText(text=text, submit=True), own=True)]
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.submit for piece in pieces] == [False] * (len(pieces) - 1) + [True] and not any(map(excess, pieces))
