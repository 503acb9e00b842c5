"""A local gbox-mini-agent: runs agents in executions of the local gym, with whatever model a run names.

    cuarl local mini-agent --port 3000

It speaks the protocol of ``POST /runs`` and the events and steps of a run. Its agents really call ``model.baseUrl``
(chat completions, with the screenshot as a ``data:`` URI) and act in the execution's box.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cuarl import strict_json
from cuarl.agent.formats import Size, get
from cuarl.env.gbox.actions import refusal, request
from cuarl.env.gbox.client import GBox
from cuarl.env.http import trusted
from cuarl.errors import CuarlError
from cuarl.local.wire import png_uri
from cuarl.types import Action, Finish, Screenshot, Wait
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, message, understood, whole
from cuarl.web.rules import Rules, Token

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

SPAN = (("from", "0"), ("to", "inf"))
FORMAT = "qwen3-vl"
"""How this server's agents word their prompts and read answers, whatever they are called."""


class _Part(BaseModel):
    """Part of an order in the protocol's spelling; what this server has no use for is left aside."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class Execution(_Part):
    """Where the device is."""

    gym_base_url: str
    execution_id: str = Field(pattern=r"^[\w-]{1,100}$")


class Model(_Part):
    """Whom to ask."""

    base_url: str
    name: str


class Order(_Part):
    """What a run is asked for with."""

    task: str
    env: Execution
    model: Model
    max_steps: int = Field(ge=1, le=1000)
    max_run_s: float = Field(alias="maxRunTimeSec", gt=0, le=86_400)
    standard_action_space: str | None = None


@dataclass(slots=True)
class Run:
    """One run: what it was asked for, what happened, how it is."""

    id: str
    order: Order
    status: str = "running"
    reason: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def note(self, kind: str, **what: Any) -> None:
        """Add an event."""
        self.events.append({"type": kind, "ts": _ms(), **what})


class Device:
    """The box of an execution, as the local gym tells it."""

    def __init__(self, boxes: GBox, box: str) -> None:
        self._boxes, self._box = boxes, box

    @classmethod
    async def of(cls, env: Execution) -> Device:
        """Ask the gym for the device of an execution."""
        base = env.gym_base_url.rstrip("/")
        async with httpx.AsyncClient(timeout=30, verify=trusted()) as client:
            reply = await client.get(f"{base}/fake/executions/{env.execution_id}")
            reply.raise_for_status()
            told = strict_json.reply(reply.content)
        return cls(GBox(base + told["path"], told["key"]), told["box"])

    async def shoot(self) -> Screenshot:
        """The screen as it is."""
        return await self._boxes.screenshot(self._box)

    async def act(self, action: Action, shown: Screenshot) -> str:
        """Carry an action out; why not, if it can't be."""
        size = shown.width, shown.height
        reason = refusal(action, size, "android")
        wire = None if reason else request(action, (1.0, 1.0), size)
        if wire is not None:
            return await self._boxes.act(self._box, *wire)
        if isinstance(action, Wait):
            await asyncio.sleep(min(action.seconds, 0.1))
        return reason

    async def close(self) -> None:
        """Close the connections."""
        await self._boxes.close()


class FakeMiniAgent:
    """The server's runs, and its application. With ``key`` clients must send it as a bearer token."""

    def __init__(self, *, key: str | None = None, model_key: str = "-") -> None:
        self.key, self.model_key = key, model_key
        self.runs: dict[str, Run] = {}

    def app(self) -> Starlette:
        """The application."""
        from starlette.routing import Route

        one = "/runs/{id}"
        routes = [
            Route("/runs", self._start, methods=["POST"]),
            Route(one, self._status, methods=["GET"]),
            Route(f"{one}/events", self._events, methods=["GET"]),
            Route(f"{one}/steps", self._steps, methods=["GET"]),
            Route(f"{one}/steps/{{index}}", self._step, methods=["GET"]),
        ]
        return application(routes, Rules(say=message, token=Token(self.key) if self.key else None))

    async def _start(self, request: Request) -> Response:
        body = await json_object(request)
        with understood():
            order = Order.model_validate(body)
        run = Run(secrets.token_hex(8), order)
        self.runs[run.id] = run
        run.task = asyncio.create_task(self._play(run))
        return json_response({"runId": run.id}, 201)

    async def _status(self, request: Request) -> Response:
        run = self._run(request)
        return json_response({"runId": run.id, "status": run.status, "reason": run.reason})

    async def _events(self, request: Request) -> Response:
        run = self._run(request)
        with understood():
            since, until = (_moment(request.query_params.get(name, default)) for name, default in SPAN)
        return json_response({"events": [e for e in run.events if since <= e["ts"] < until]})

    async def _steps(self, request: Request) -> Response:
        return json_response({"steps": self._run(request).steps})

    async def _step(self, request: Request) -> Response:
        steps = self._run(request).steps
        with understood():
            index = whole("index", request.path_params["index"])
        if not 0 <= index < len(steps):
            raise Refusal("no such step", status=404)
        return json_response({"step": steps[index]})

    def _run(self, request: Request) -> Run:
        found = self.runs.get(request.path_params["id"])
        if found is None:
            raise Refusal("no such run", status=404)
        return found

    async def _play(self, run: Run) -> None:
        try:
            device = await Device.of(run.order.env)
            try:
                async with asyncio.timeout(run.order.max_run_s):
                    await self._steps_of(run, device)
            finally:
                await device.close()
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            CuarlError,
            LookupError,
            AttributeError,
            TypeError,
            ValueError,
            TimeoutError,
        ) as error:
            run.note("error", message=f"{type(error).__name__}: {error}")
            run.status, run.reason = "failed", "timeout" if isinstance(error, TimeoutError) else "error"
        run.note("run_end", ok=run.status == "completed", reason=run.reason)

    async def _steps_of(self, run: Run, device: Device) -> None:
        agent = _Agent(run.order, self.model_key)
        shown = await device.shoot()
        for number in range(1, run.order.max_steps + 1):
            run.note("step_start", step=number)
            finished, shown = await agent.step(run, device, shown, number)
            run.note("step_end", step=number)
            if finished:
                run.status, run.reason = "completed", "finished"
                return
        run.status, run.reason = "failed", "max steps reached"


class _Agent:
    """One run's agent: shows the screen, reads the answer, acts."""

    def __init__(self, order: Order, model_key: str) -> None:
        self._task, self._model = order.task, order.model
        kind: Any = "phone" if order.standard_action_space == "mobile" else "desktop"
        self._format, self._key = get(FORMAT, kind), model_key

    async def step(self, run: Run, device: Device, shown: Screenshot, number: int) -> tuple[bool, Screenshot]:
        """One call and its action; whether the agent is finished, and the screen then."""
        content = [{"type": "image_url", "image_url": {"url": png_uri(shown)}}, {"type": "text", "text": self._task}]
        system = {"role": "system", "content": self._format.system_prompt}
        messages: list[dict[str, Any]] = [system, {"role": "user", "content": content}]
        run.note("model_call", step=number, modelInput={"messages": len(messages)})
        output = await self._ask(messages)
        run.note("model_output", step=number, modelOutput=output)
        text = str(output["choices"][0]["message"].get("content") or "")
        action = self._format.parse(text, Size(shown.width, shown.height), strict=False).action
        step: dict[str, Any] = {"messages": [], "actions": [], "thinking": "", "text": text}
        run.steps.append(step)
        if action is None:
            return False, shown
        begin = _ms()
        trouble = "" if isinstance(action, Finish) else await device.act(action, shown)
        after = shown if isinstance(action, Finish) else await device.shoot()
        call = {"name": wire_name(action), "args": wire_args(action, shown), "callId": secrets.token_hex(4)}
        call |= {"rawFeedback": trouble or "ok", "rawResult": {}}
        run.note("action_executed", step=number, actionIndex=0, action=call, startTs=begin, endTs=_ms(), durationMs=0)
        shots = [{"name": f"screenshot_{when}", "url": png_uri(s)} for when, s in (("before", shown), ("after", after))]
        step["actions"].append({**call, "obs": {"screenshots": shots}})
        return isinstance(action, Finish), after

    async def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        url = self._model.base_url.rstrip("/")
        # a temperature of 0, as agents in the field ask for: whoever serves the model for training must know better
        body = {"model": self._model.name, "messages": messages, "temperature": 0.0, "max_tokens": 512}
        async with httpx.AsyncClient(timeout=120, verify=trusted()) as client:
            reply = await client.post(
                f"{url}/chat/completions", json=body, headers={"Authorization": f"Bearer {self._key}"}
            )
            reply.raise_for_status()
            found: dict[str, Any] = strict_json.reply(reply.content)
        return found


_NAMES = {
    "long_press": "longPress",
    "key": "pressKey",
    "button": "pressButton",
    "open_app": "openApp",
    "finish": "finished",
}


def wire_name(action: Action) -> str:
    """What the server calls an action."""
    return _NAMES.get(action.kind, action.kind)


def wire_args(action: Action, shown: Screenshot) -> dict[str, Any]:
    """Its arguments, points as shares of the screen."""

    def share(x: int, y: int) -> dict[str, float]:
        return {"x": (x + 0.5) / shown.width, "y": (y + 0.5) / shown.height}

    raw = action.model_dump(mode="json")
    args: dict[str, Any] = {}
    if raw.get("x2") is not None:
        args |= {"startPoint": share(raw["x"], raw["y"]), "endPoint": share(raw["x2"], raw["y2"])}
    elif raw.get("path"):
        args |= {"startPoint": share(*raw["path"][0]), "endPoint": share(*raw["path"][-1])}
    elif raw.get("x") is not None:
        args["point"] = share(raw["x"], raw["y"])
    renamed = {"text": "content", "message": "content", "duration_ms": "durationMs", "direction": "direction"}
    args |= {to: raw[name] for name, to in renamed.items() if raw.get(name) is not None}
    if action.kind == "finish":
        args["success"] = raw["success"]
    if action.kind == "key":
        args["key"] = "+".join(raw["keys"])
    elif action.kind == "button":
        args["key"] = raw["name"]
    elif action.kind == "wait":
        args["durationMs"] = round(1000 * raw["seconds"])
    return args


def _ms() -> float:
    return time.time() * 1000


def _moment(text: str) -> float:
    """Milliseconds since 1970. Raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{0,9})?|inf", text):
        raise ValueError(f"a moment is a number of milliseconds, not {text[:40]!r}")
    return float(text)
