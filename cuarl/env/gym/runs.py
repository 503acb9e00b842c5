"""The calls of gbox-mini-agent's HTTP interface: runs of its agent, and the events that they leave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cuarl import strict_json
from cuarl.env.http import Service
from cuarl.errors import EnvError
from cuarl.settings import Settings

_RENAMED = "turn_"
"""How older servers begin the names of what is called ``step_…`` now."""


@dataclass(frozen=True, slots=True)
class Order:
    """What an agent is to do, with which model, in which execution, within which limits."""

    task: str
    model_url: str
    model_name: str
    gym_url: str
    gym_id: str
    execution: str
    agent: str = "mai-ui"
    action_space: str = "mobile"
    max_steps: int = 30
    max_run_s: float = 600.0
    max_step_s: float = 120.0

    def body(self) -> dict[str, Any]:
        """As ``POST /runs`` takes it."""
        return {
            "task": self.task,
            "agent": self.agent,
            "maxSteps": self.max_steps,
            "maxRunTimeSec": round(self.max_run_s),
            "maxStepTimeSec": round(self.max_step_s),
            "standardActionSpace": self.action_space,
            "model": {"baseUrl": self.model_url, "name": self.model_name, "provider": "openai"},
            "env": {"type": "genv", "gymBaseUrl": self.gym_url, "gymId": self.gym_id, "executionId": self.execution},
        }


@dataclass(frozen=True, slots=True)
class Status:
    """How a run is: ``completed``, ``failed``, or anything else while it goes on."""

    status: str
    reason: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ("completed", "failed")


class MiniAgent:
    """A gbox-mini-agent server. All methods raise EnvError."""

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.service = Service("gbox-mini-agent", base_url, headers, timeout_s=30.0)

    @classmethod
    def of(cls, settings: Settings) -> MiniAgent:
        """This machine's."""
        key = settings.mini_agent_api_key
        return cls(settings.mini_agent_base_url, key.get_secret_value() if key else None)

    async def start(self, order: Order) -> str:
        """Begin a run, once; its id."""
        reply = await self.service.json("POST", "runs", json=order.body())
        run = reply.get("runId")
        if not isinstance(run, str) or not run:
            raise EnvError("gbox-mini-agent began a run and told no runId")
        return run

    async def status(self, run: str) -> Status:
        """How a run is."""
        reply = await self.service.json("GET", f"runs/{quote(run, safe='')}", repeatable=True)
        return Status(str(reply.get("status", "")), str(reply.get("reason") or ""))

    async def events(self, run: str, since: str | None = None) -> list[dict[str, Any]]:
        """What happened from ``since`` (inclusive) on, in the words of newer servers; nothing while none is known."""
        reply = await self.service.send(
            "GET",
            f"runs/{quote(run, safe='')}/events",
            params={"from": since} if since else None,
            repeatable=True,
            accept=(404,),
        )
        if reply.status_code == 404:
            return []
        try:
            body = strict_json.reply(reply.content)
        except ValueError as error:
            raise EnvError(f"the events of run {run} are no JSON") from error
        listed = body.get("events") if isinstance(body, Mapping) else body
        if not isinstance(listed, list):
            raise EnvError(f"the events of run {run} are neither a list nor an object with events")
        return [_modern(event) for event in listed if isinstance(event, Mapping)]

    async def last_picture(self, run: str) -> str:
        """Address of the screenshot after a run's last action (a ``data:`` URI or a URL); empty if there is none."""
        reply = await self.service.send("GET", f"runs/{quote(run, safe='')}/steps", repeatable=True, accept=(404,))
        try:
            body = strict_json.reply(reply.content)
        except ValueError:
            return ""
        steps = body.get("steps") if isinstance(body, Mapping) else body
        for step in reversed(steps if isinstance(steps, list) else []):
            for action in reversed(_actions(step)):
                for shot in _screenshots(action):
                    if shot.get("name") == "screenshot_after" and isinstance(shot.get("url"), str):
                        return str(shot["url"])
        return ""

    async def close(self) -> None:
        """Close the connections."""
        await self.service.close()


def key_of(event: Mapping[str, Any]) -> str:
    """The same for the same event, however often it is told."""
    return json.dumps(event, sort_keys=True, default=str)


def _modern(event: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(event.get("type", ""))
    found = {**event, "type": kind.replace(_RENAMED, "step_", 1) if kind.startswith(_RENAMED) else kind}
    if "step" not in found and "turn" in found:
        found["step"] = found["turn"]
    return found


def _actions(step: Any) -> list[Mapping[str, Any]]:
    if not isinstance(step, Mapping):
        return []
    inner = step.get("step")
    found = (inner if isinstance(inner, Mapping) else step).get("actions")
    return [a for a in found if isinstance(a, Mapping)] if isinstance(found, list) else []


def _screenshots(action: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    seen = action.get("obs")
    found = seen.get("screenshots") if isinstance(seen, Mapping) else None
    return [s for s in found if isinstance(s, Mapping)] if isinstance(found, list) else []
