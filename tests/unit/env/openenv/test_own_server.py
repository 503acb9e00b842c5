"""cuarl's OpenEnv client and server with each other: the contract, equal screens, verdicts, who may ask."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from cuarl.env.conformance import CHECKS
from cuarl.env.openenv.backend import listed_task, terms
from cuarl.env.openenv.client import Refused, Server
from cuarl.env.openenv.env import OpenEnvEnv
from cuarl.env.openenv.options import Options
from cuarl.env.sim.phone import SimEnv
from cuarl.errors import ConfigError, EnvError
from cuarl.rollout.driven import Driven
from cuarl.serve.openenv import EnvService
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.types import Answer, Finish
from cuarl.web.listen import serving

asked = pytest.importorskip("websockets.asyncio.client", reason="the extra openenv is not installed")

WIFI = Task(
    id="wifi",
    description="Turn {to} Wi-Fi.",
    params={"to": ("off",)},
    checks=(Check(path="network.wifi.enabled", value=False),),
    max_steps=12,
)
ASK = Task(id="ask", description="Say four.", checks=(Check(path="answer", value="four"),), max_steps=2)


async def begin(task: TaskInstance, seed: int) -> Driven:
    return Driven(SimEnv("small", clutter=0.0), task, max_turns=task.max_steps)


@asynccontextmanager
async def service(**options: Any) -> AsyncIterator[str]:
    how = options.pop("begin", begin)
    made = EnvService({"train": [WIFI, ASK], "test": [ASK]}, how, {"phone": SimEnv().capabilities}, **options)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    async with serving(made.app(), sock, websockets=True) as url:
        yield url


@asynccontextmanager
async def client(
    url: str, token: str | None = None
) -> AsyncIterator[tuple[Server, Callable[[str], Awaitable[OpenEnvEnv]], dict[str, TaskInstance]]]:
    server = Server(url, token)
    config = Options(url=url)
    schema = await server.schema()
    listed = await server.tasks("train")
    assert listed is not None
    tasks = {entry["id"]: listed_task(entry, config).instantiate(0) for entry in listed}

    async def make(name: str = "wifi") -> OpenEnvEnv:
        return OpenEnvEnv(server, terms(config, schema, tasks[name]))

    try:
        yield server, make, tasks
    finally:
        await server.close()


def test_keeps_the_contract() -> None:
    async def work() -> None:
        async with service() as url, client(url) as (_, make, tasks):
            for check in CHECKS:
                await check(make, tasks["wifi"])

    anyio.run(work)


def test_shows_what_the_device_shows_and_ends_with_its_verdict() -> None:
    async def work() -> None:
        here = SimEnv("small", clutter=0.0)
        shown = await here.reset(WIFI.instantiate(7), 7)
        async with service() as url, client(url) as (_, make, tasks):
            env = await make()
            seen = await env.reset(tasks["wifi"], 7)
            assert (seen.screenshot.digest, seen.text["goal"]) == (shown.screenshot.digest, "Turn off Wi-Fi.")
            while not isinstance(action := here.oracle_action(), Finish):
                mine, theirs = await here.step(action), await env.step(action)
                assert mine.observation.screenshot.digest == theirs.observation.screenshot.digest
            verdict = await env.judge(None, True)
            assert (verdict.success, verdict.claimed, verdict.checks[0].actual) == (True, True, False)
            await env.close()

    anyio.run(work)


def test_turns_run_out_there_and_answers_count() -> None:
    async def work() -> None:
        async with service() as url, client(url) as (_, make, tasks):
            env = await make("ask")
            await env.reset(tasks["ask"], 1)
            first, last = await env.step(Answer(text="three")), await env.step(Answer(text="four"))
            assert (first.reward, first.truncated, last.reward, last.truncated) == (0.0, False, 1.0, True)
            assert (await env.judge("four", None)).success
            await env.close()

    anyio.run(work)


def test_sessions_are_limited_and_say_so() -> None:
    async def work() -> None:
        async with service(most=1) as url, client(url) as (_, make, tasks):
            first, second, third = await make(), await make(), await make()
            await first.reset(tasks["wifi"], 1)
            with pytest.raises(EnvError, match="CAPACITY_REACHED"):
                await second.reset(tasks["wifi"], 1)
            await second.close()
            await first.close()
            with anyio.fail_after(10):  # the server notices that the first has gone
                while True:
                    try:
                        await third.reset(tasks["wifi"], 1)
                        break
                    except EnvError:
                        third = await make()
            await third.close()

    anyio.run(work)


def test_a_token_is_asked_for_and_pages_are_kept_out() -> None:
    async def work() -> None:
        async with service(token="canary") as url:
            async with httpx.AsyncClient(trust_env=False) as http:
                assert (await http.get(f"{url}/schema")).status_code == 401
            with pytest.raises(EnvError, match="can't be reached"):
                await Server(url, "wrong").session()
            async with client(url, "canary") as (server, _, _):
                session = await server.session()
                assert (await session.ask("state"))["step_count"] == 0
                await session.close()
        async with service() as url:
            with pytest.raises(asked.InvalidStatus):
                await asked.connect(url.replace("http", "ws") + "/ws", origin="http://elsewhere.example", proxy=None)

    anyio.run(work)


def test_lists_of_tasks() -> None:
    async def work() -> None:
        async with service() as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
            assert (await http.get("/list_environments")).json() == ["cuarl"]
            assert [s["name"] for s in (await http.get("/cuarl/splits")).json()] == ["train", "test"]
            assert (await http.post("/cuarl/num_tasks", json={"split": "train"})).json() == {"num_tasks": 2}
            one = (await http.post("/cuarl/task", json={"split": "train", "index": 1})).json()["task"]
            assert (one["id"], one["goal"], one["device"]) == ("ask", "Say four.", "phone")
            some = (await http.post("/cuarl/task_range", json={"split": "train", "start": 1, "stop": 2})).json()[
                "tasks"
            ]
            assert [task["id"] for task in some] == ["ask"]
            wrong = [
                ("/cuarl/task", {"split": "train", "index": 9}),
                ("/cuarl/tasks", {"split": "none"}),
                ("/cuarl/tasks", {}),
            ]
            for path, body in wrong:
                assert (await http.post(path, json=body)).status_code == 400, path
            assert (await http.post("/other/tasks", json={"split": "train"})).status_code == 404
            assert (await http.get("/health")).json() == {"status": "healthy"}

    anyio.run(work)


def test_what_is_no_message_is_answered_with_an_error() -> None:
    async def work() -> None:
        async with (
            service(idle_s=2) as url,
            asked.connect(url.replace("http", "ws") + "/ws", proxy=None) as line,
        ):
            told = []
            step = '{"type": "step", "data": '
            for text in ("{", "[]", '{"type": "dance"}', step + "[]}", step + '{"kind": "wait"}}'):
                await line.send(text)
                told.append(json.loads(await line.recv())["data"]["code"])
            assert told == ["INVALID_JSON", "INVALID_JSON", "UNKNOWN_TYPE", "EXECUTION_ERROR", "EXECUTION_ERROR"]
            # who asks nothing for long is let go
            assert json.loads(await line.recv())["data"]["code"] == "SESSION_ERROR"

    anyio.run(work)


@pytest.mark.parametrize(
    "message",
    [
        "[" * 100_000, '{"type":' * 100_000, '{"type": "reset", "data": {"task": ["a"]}}',
        '{"type": "reset", "data": {"task": {}}}',
        '{"type": "reset", "data": {"seed": -1}}', '{"type": "reset", "data": {"seed": 1.5}}',
        '{"type": "reset", "data": {"seed": NaN}}',
        '{"type": "reset", "data": {"seed": 1e999}}', '{"type": "reset", "data": {"episode_id": [1]}}',
        '{"type": {"a": []}}',
        '{"type": ["step"], "data": {}}', '{"type": "step", "data": {"kind": ["wait"]}}',
        '{"type": "step", "data": {"kind": "wait", "seconds": 61}}',
        '{"type": "step", "data": {"kind": "click", "x": ' + "1" * 5000 + ', "y": 1}}', '"\\ud800"', b"\xff\x00", "",
        "null",
        json.dumps({"type": "step", "data": {"kind": "type", "text": "x" * 10_001}}),
    ],
    ids=lambda message: str(message)[:70],
)  # fmt: skip
def test_odd_message_is_answered_and_the_session_goes_on(message: Any) -> None:
    async def work() -> None:
        async with service() as url, asked.connect(url.replace("http", "ws") + "/ws", proxy=None) as line:
            await line.send('{"type": "reset", "data": {"task": "wifi", "seed": 1}}')
            assert json.loads(await line.recv())["type"] == "observation"
            await line.send(message)
            told = json.loads(await line.recv())
            assert told["type"] == "error" and len(told["data"]["message"]) < 400
            await line.send('{"type": "step", "data": {"kind": "wait", "seconds": 0}}')
            assert json.loads(await line.recv())["type"] == "observation"

    anyio.run(work)


@pytest.mark.parametrize("last", ['{"type": "close"}', '{"type": "step", "data": {"kind": "wait"}}', ""])
@pytest.mark.parametrize("abruptly", [False, True])
def test_client_may_leave_at_any_time(last: str, abruptly: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with service() as url:
            line = await asked.connect(url.replace("http", "ws") + "/ws", proxy=None)
            await line.send('{"type": "reset", "data": {"task": "wifi", "seed": 1}}')
            await line.recv()
            await line.send(last)
            if abruptly:
                line.transport.abort()
            await line.close()

    anyio.run(work)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_step_of_a_client_that_left_is_given_up() -> None:
    stepping, closed = anyio.Event(), anyio.Event()

    class Stuck(SimEnv):
        async def step(self, action: Any) -> Any:
            stepping.set()
            await anyio.sleep_forever()

        async def close(self) -> None:
            closed.set()
            await super().close()

    async def stuck(task: TaskInstance, seed: int) -> Driven:
        return Driven(Stuck("small", clutter=0.0), task, max_turns=5)

    async def work() -> None:
        async with service(begin=stuck) as url:
            async with asked.connect(url.replace("http", "ws") + "/ws", proxy=None) as line:
                await line.send('{"type": "reset", "data": {"task": "wifi", "seed": 1}}')
                await line.recv()
                await line.send('{"type": "step", "data": {"kind": "wait"}}')
                await stepping.wait()
            with anyio.fail_after(60):
                await closed.wait()

    anyio.run(work)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/cuarl/task", b'{"split": "train", "index": 1e999}'), ("/cuarl/task", b"[" * 100_000),
        ("/cuarl/task", b'{"split": ["train"]}'),
        ("/cuarl/task", b'{"split": "train", "index": 1.5}'), ("/cuarl/task", b'{"split": "train", "index": -1}'),
        ("/cuarl/tasks", b"[]"),
        ("/cuarl/task_range", b'{"split": "train", "start": "a"}'), ("/cuarl/num_tasks", b'{"split": {}}'),
        ("/cuarl/tasks", b"\xff"),
    ],
    ids=lambda part: str(part)[:50],
)  # fmt: skip
def test_odd_question_about_tasks_is_refused(path: str, body: bytes) -> None:
    async def work() -> None:
        async with service() as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
            reply = await http.post(path, content=body, headers={"content-type": "application/json"})
            assert reply.status_code == 400 and reply.json()["detail"], reply.text
            assert (
                await http.post(path, content=b'{"split": "train"}', headers={"content-type": "text/plain"})
            ).status_code == 415
            assert (await http.get("/health", headers={"host": "evil.com"})).status_code == 403

    anyio.run(work)


def test_an_action_that_is_none_is_refused_and_the_session_goes_on() -> None:
    async def work() -> None:
        async with service() as url, client(url) as (server, _, _):
            session = await server.session()
            await session.ask("reset", {"task": "wifi", "seed": 1})
            with pytest.raises(Refused, match="teleport"):
                await session.ask("step", {"kind": "teleport"})
            assert (await session.ask("step", {"kind": "wait", "metadata": {}}))["done"] is False
            await session.close()

    anyio.run(work)


@pytest.mark.parametrize("url", ["ftp://host", "localhost:8000", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="no address"):
        Server(url)


def test_a_schema_that_does_not_tell_what_actions_are_needs_a_table() -> None:
    config = Options(url="http://localhost:1")
    task = TaskInstance(task_id="t", goal="g", env="openenv")
    with pytest.raises(ConfigError, match="its actions have code"):
        terms(config, {"action": {"properties": {"code": {}}}}, task)
    table = terms(config, {"action": {"properties": {"action_str": {}}}}, task).table
    assert table is not None
    assert table.rules["click"] == {"action_str": "$browsergym"}
