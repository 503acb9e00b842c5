"""Run by a Python that has the real ``openenv``: drive a server with its clients, and print what came as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.generic_client import GenericEnvClient


class Tap(Action):
    kind: str = "click"
    x: int
    y: int


class Screen(Observation):
    screenshot: str
    mime: str
    width: int
    height: int
    task: str
    goal: str
    turn: int
    text: dict[str, str]
    rejected: str | None = None


class Phone(EnvClient[Tap, Screen, State]):
    """A client with models of its own, as environments ship them."""

    def _step_payload(self, action: Tap) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Screen]:
        seen = Screen(**payload["observation"], reward=payload["reward"], done=payload["done"])
        return StepResult(observation=seen, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


async def generic(url: str, task: str, actions: list[dict[str, Any]]) -> dict[str, Any]:
    async with GenericEnvClient(base_url=url) as env:
        first = await env.reset(seed=5, task=task, episode_id="mine")
        steps = [await env.step(action) for action in actions]
        state = await env.state()
        again = await env.reset(seed=5, task=task)
    shown = first.observation
    return {
        "goal": shown["goal"],
        "size": [shown["width"], shown["height"]],
        "first": [first.reward, first.done],
        "same": again.observation["screenshot"] == shown["screenshot"],
        "steps": [[s.reward, s.done, s.observation["rejected"]] for s in steps],
        "state": state,
        "metadata": steps[-1].observation["metadata"],
    }


async def typed(url: str, task: str) -> dict[str, Any]:
    async with Phone(base_url=url) as env:
        await env.reset(seed=1, task=task)
        inside = await env.step(Tap(x=5, y=5))
        outside = await env.step(Tap(x=5000, y=5))
        state = await env.state()
    return {"turn": inside.observation.turn, "rejected": outside.observation.rejected, "steps": state.step_count}


async def wrong(url: str) -> list[str]:
    said = []
    async with GenericEnvClient(base_url=url) as env:
        for ask in (lambda: env.step({"kind": "wait"}), lambda: env.reset(task="nonsense")):
            try:
                await ask()
            except RuntimeError as error:
                said.append(str(error))
        await env.reset(seed=1)
        try:
            await env.step({"kind": "teleport"})
        except RuntimeError as error:
            said.append(str(error))
    return said


def in_turn(url: str, task: str) -> float:
    with GenericEnvClient(base_url=url).sync() as env:
        env.reset(seed=2, task=task)
        return float(env.step({"kind": "finish"}).reward or 0.0)


async def whole(url: str, task: str, actions: list[dict[str, Any]]) -> dict[str, Any]:
    return {"generic": await generic(url, task, actions), "typed": await typed(url, task), "wrong": await wrong(url)}


if __name__ == "__main__":
    url, task, actions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    told = asyncio.run(whole(url, task, actions))
    print(json.dumps({**told, "sync": in_turn(url, task)}))
