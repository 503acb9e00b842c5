"""The servers of the project, each with its routes and requests that are right."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from starlette.middleware import Middleware

from cuarl.env.pods.hosted import HostedSession
from cuarl.env.pods.server import SessionServer
from cuarl.env.sim.devices import make_sim
from cuarl.env.sim.phone import SimEnv
from cuarl.local.adb import serve as serve_adb
from cuarl.local.adb_phone import FakePhone
from cuarl.local.gbox import FakeGBox
from cuarl.local.gym import FakeGym
from cuarl.local.kubernetes import FakeKubernetes
from cuarl.local.mini_agent import FakeMiniAgent
from cuarl.local.threads import served
from cuarl.rollout.driven import Driven
from cuarl.serve.app import Service
from cuarl.serve.models import Models, Served
from cuarl.serve.openenv import EnvService
from cuarl.serve.sessions import Sessions
from cuarl.tasks.task import Task, TaskInstance
from tests.fuzz import shapes as shapes_of
from tests.fuzz.requests import Shape, requests, resolved
from tests.fuzz.shapes import BEARER, TASK, TOKEN
from tests.fuzz.talk import block, messages_answered, spoken, told

BODY_S = 0.5
"""A body that is announced and does not come is waited for so long, that many requests can be asked in a minute."""
Names = Callable[[], Mapping[str, Sequence[str]]]


class Target:
    """A server to be asked."""

    name: str
    shapes: Sequence[Shape]
    headers: Mapping[str, str] = BEARER
    allowed: frozenset[int] = frozenset()
    """Statuses from 500 on that are part of its protocol, and not faults."""
    texts: tuple[bytes, ...] = ()
    """Errors that its protocol says in plain text."""
    makes: Sequence[tuple[Shape, str]] = ()
    """Right requests, and their paths, after which there is something to be asked for."""
    alive = "/"

    def app(self) -> tuple[Any, Names]:
        """A fresh application, and what its paths may name."""
        raise NotImplementedError

    @contextmanager
    def running(self) -> Iterator[tuple[str, Names]]:
        app, names = self.app()
        with served(hasty(app), websockets=self.name == "serve-env") as url:
            yield url, names

    def requests(self) -> Any:
        """What it is asked, as a strategy."""
        return requests(self.shapes, self.headers)

    def prepare(self, url: str) -> None:
        """Make something that can be asked for, as the right request does."""
        for shape, path in self.makes:
            httpx.request(shape.method, url + path, json=shape.body, headers=dict(self.headers), timeout=60)

    def judged(self, url: str, request: Any, names: Mapping[str, Sequence[str]]) -> tuple[str, str]:
        """Ask; what became of it, and what is wrong with that."""
        from tests.fuzz.run import judged

        return judged(url, replace(request, data=resolved(request.data, names)), self.allowed, self.texts)

    def after(self, url: str, count: int) -> list[str]:
        """What is wrong when all requests were made: it must still answer."""
        reply = httpx.get(url + self.alive, headers=dict(self.headers), timeout=60)
        return (
            []
            if reply.status_code == 200
            else [f"afterwards {self.alive} answers {reply.status_code}: {reply.text[:200]}"]
        )


def hasty(app: Any) -> Any:
    """The same application, which waits less long for bodies."""
    app.user_middleware = [
        Middleware(one.cls, *(replace(argument, body_s=BODY_S) for argument in one.args)) for one in app.user_middleware
    ]
    return app


class Serve(Target):
    """``cuarl serve`` with the shipped base."""

    name, alive = "serve", "/v1/models"
    shapes = shapes_of.SERVE
    makes = ((Shape("POST", "", {**shapes_of.CHAT, "stream": False}), "/sessions/s0/v1/chat/completions"),)
    _policy: Any = None

    def app(self) -> tuple[Any, Names]:
        from cuarl.policy.load import load_policy
        from cuarl.policy.sampling.local import LocalSampler
        from cuarl.policy.spec import ModelSpec

        async def kept(trajectory: Any, pictures: Any) -> None:
            json.dumps(trajectory.model_dump(mode="json"), allow_nan=False)

        Serve._policy = Serve._policy or load_policy(ModelSpec(model="tiny"))
        sessions = Sessions(kept, run_id="r", prefix="r")
        models = Models(
            Served("tiny", LocalSampler(Serve._policy), Serve._policy.decode),
            adapters=Path("/nowhere"),
            load=self._load,
        )
        service = Service(models, sessions, token=TOKEN)
        return service.app(), lambda: {
            "session": [*(s.id for s in sessions), *(f"s{i}" for i in range(4))],
            "model": ["tiny"],
        }

    async def _load(self, name: str, folder: Path, old: Any) -> Any:
        raise AssertionError("nothing lies in the folder of adapters")


class ServeEnv(Target):
    """``cuarl serve-env`` over simulated phones."""

    name, alive = "serve-env", "/health"
    texts = (b"Failed to open a WebSocket connection",)
    shapes = shapes_of.SERVE_ENV
    task = Task(id="wifi", description="Turn Wi-Fi off.", checks=TASK.checks)

    def app(self) -> tuple[Any, Names]:
        async def begin(task: TaskInstance, seed: int) -> Driven:
            return Driven(SimEnv("small", clutter=0.0), task, max_turns=5)

        service = EnvService({"train": [self.task]}, begin, {"phone": SimEnv().capabilities}, token=TOKEN)
        return service.app(), lambda: {"env": ["cuarl"]}

    def after(self, url: str, count: int) -> list[str]:
        return [
            *super().after(url, count),
            *messages_answered(url.replace("http", "ws") + "/ws", TOKEN, shapes_of.MESSAGES, count),
        ]


class SessionsServe(Target):
    """``cuarl sessions serve`` over a simulated phone."""

    name, headers = "sessions", {"X-Session-Token": TOKEN}
    shapes = shapes_of.SESSION

    def app(self) -> tuple[Any, Names]:
        session = HostedSession(lambda: make_sim("phone", "small", clutter=0.0))
        return SessionServer(session, "phone", TOKEN).app(), dict


class GBoxServer(Target):
    """The local GBox."""

    name, alive = "gbox", "/fake"
    shapes = shapes_of.GBOX
    makes = ((Shape("POST", "", {}), "/api/v1/boxes/android"), (Shape("POST", "", {}), "/api/v1/boxes/linux"))

    def app(self) -> tuple[Any, Names]:
        fake = FakeGBox(TOKEN)
        return fake.app(), lambda: {"id": list(fake.boxes)[-8:], "type": ["android", "linux"], "route": ["tap"]}


class GymServer(Target):
    """The local gym server, with its boxes."""

    name, alive = "gym", "/fake"
    shapes = shapes_of.GYM
    makes = ((Shape("POST", "", {}), "/api/v1/a-gym/tasks/train_02_enable_wifi"),)

    def app(self) -> tuple[Any, Names]:
        fake = FakeGym(key=TOKEN, box_key=TOKEN)
        return fake.app(), lambda: {"task": list(fake.tasks)[:5], "id": list(fake.executions)[-5:]}


class MiniAgentServer(Target):
    """The local gbox-mini-agent; its runs find no gym and fail."""

    name, alive = "mini-agent", "/runs/first"
    shapes = shapes_of.MINI_AGENT
    makes = ((shapes_of.MINI_AGENT[0], "/runs"),)

    def app(self) -> tuple[Any, Names]:
        fake = FakeMiniAgent(key=TOKEN)
        return fake.app(), lambda: {"id": list(fake.runs)[-5:], "index": ["0", "1"]}

    def after(self, url: str, count: int) -> list[str]:
        reply = httpx.post(f"{url}/runs", json=shapes_of.ORDER, headers=dict(BEARER), timeout=60)
        return [] if reply.status_code == 201 else [f"afterwards no run can be started: {reply.text[:200]}"]


class KubernetesServer(Target):
    """The local Kubernetes API server, its pods and their proxies."""

    name, alive, allowed = "kubernetes", "/version", frozenset({502, 503})
    texts = (b"Pod not found", b"Bad gateway")
    shapes = shapes_of.KUBERNETES
    makes = ((shapes_of.KUBERNETES[0], "/api/v1/namespaces/default/pods"),)

    def app(self) -> tuple[Any, Names]:
        fake = FakeKubernetes(TOKEN)
        return fake.app(), lambda: {
            "namespace": ["default"],
            "name": [name for _, name in fake.pods][-5:],
            "port": ["8000"],
            "session": ["0a1b2c3d"],
        }


class AdbServer(Target):
    """The local adb server; it speaks no HTTP, so it is told bytes."""

    name = "adb"

    @contextmanager
    def running(self) -> Iterator[tuple[str, Names]]:
        started, over = threading.Event(), asyncio.Event()
        place: dict[str, Any] = {}

        async def run() -> None:
            place["loop"] = asyncio.get_running_loop()
            async with serve_adb(FakePhone("one", clutter=0.0)) as port:
                place["port"] = port
                started.set()
                await over.wait()

        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        started.wait(60)
        try:
            yield f"tcp://127.0.0.1:{place['port']}", dict
        finally:
            place["loop"].call_soon_threadsafe(over.set)
            thread.join(60)

    def requests(self) -> Any:
        return spoken()

    def judged(self, url: str, request: Any, names: Mapping[str, Sequence[str]]) -> tuple[str, str]:
        return told(url, request)

    def after(self, url: str, count: int) -> list[str]:
        kind, fault = told(url, block("host:version"))
        return [] if kind == "2xx" else [f"afterwards it tells no version: {kind} {fault}"]


def tinker() -> Target:
    """The stand-in for Tinker's service; needs the extra tinker."""
    from tests.fuzz.tinker import TinkerTarget

    return TinkerTarget()


TARGETS: Mapping[str, Callable[[], Target]] = {
    **{
        one.name: one
        for one in (Serve, ServeEnv, SessionsServe, GBoxServer, GymServer, MiniAgentServer, KubernetesServer, AdbServer)
    },
    "tinker": tinker,
}
