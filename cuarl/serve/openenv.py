"""Environments as an OpenEnv server: a session for each WebSocket, lists of tasks over HTTP (docs/guides/openenv.md).

Source of the protocol: OpenEnv 0.10. Over HTTP its ``/reset`` and ``/step`` keep no session, so that nothing could be
done with them, and they are left out.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream
from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from cuarl import __version__, strict_json
from cuarl.env.limits import excess
from cuarl.env.openenv.dialect import Seen, SessionState, action_schema, listed, read_action, seen
from cuarl.errors import CuarlError, RolloutError, TaskError
from cuarl.rollout.driven import Driven, Outcome
from cuarl.safe_text import loggable
from cuarl.suggest import did_you_mean
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Observation, Record
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, detail, understood
from cuarl.web.rules import Rules, Token

logger = logging.getLogger(__name__)

NAME = "cuarl"
_AHEAD = 4
"""Messages of a client that may wait for the answer to an earlier one."""

Begin = Callable[[TaskInstance, int], Awaitable[Driven]]
"""Makes the episode of an instance of a task at a seed; it has not begun."""


@dataclass(slots=True)
class EnvService:
    """What all sessions share."""

    splits: Mapping[str, Sequence[Task]]
    """Tasks by the name of their split; the first task is what a reset without a name means."""
    begin: Begin
    capabilities: Mapping[str, Any]
    """``Capabilities`` by what ``env`` of a task says."""
    most: int = 16
    """Most sessions at the same time."""
    idle_s: float = 3600.0
    token: str | None = None
    local: bool = True
    """Whether it listens on this machine alone: then it answers only to this machine's names, and to ``hosts``."""
    hosts: frozenset[str] = frozenset()
    seed: int = 0
    """Of the first reset that names none; each further one takes the next."""
    episodes: int = 0
    open: int = 0
    _tasks: dict[str, Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tasks = {task.id: task for tasks in self.splits.values() for task in tasks}

    def app(self) -> Starlette:
        """The ASGI application."""
        routes: list[tuple[str, Callable[[Request], Awaitable[Any]], str]] = [
            ("/health", self._health, "GET"), ("/metadata", self._metadata, "GET"), ("/schema", self._schema, "GET"),
            ("/list_environments", self._environments, "GET"), ("/{env}/splits", self._splits, "GET"),
            ("/{env}/tasks", self._list, "POST"), ("/{env}/num_tasks", self._count, "POST"),
            ("/{env}/task", self._one, "POST"), ("/{env}/task_range", self._range, "POST"),
        ]  # fmt: skip
        rules = Rules(say=detail, local=self.local, hosts=self.hosts, token=Token(self.token) if self.token else None)
        own = [Route(path, self._answering(handler), methods=[method]) for path, handler, method in routes]
        return application([*own, WebSocketRoute("/ws", self._converse)], rules)

    def task(self, name: str | None) -> Task:
        """The task of that name; without one the first. Raises TaskError."""
        if name is None:
            return next(iter(self._tasks.values()))
        if name not in self._tasks:
            raise TaskError(f'there is no task "{name[:80]}" here{did_you_mean(name, self._tasks)}')
        return self._tasks[name]

    # --- over HTTP -------------------------------------------------------------------------------------------------

    def _answering(self, handler: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            name = request.path_params.get("env", NAME)
            if name.lower() != NAME:
                raise Refusal(f"unknown environment {name[:80]!r}", status=404)
            return json_response(await handler(request))

        return answer

    async def _health(self, request: Request) -> Any:
        return {"status": "healthy"}

    async def _metadata(self, request: Request) -> Any:
        return {
            "name": NAME,
            "description": "Devices to be used by their screen: look at the picture, act on its pixels.",
            "version": __version__,
        }

    async def _schema(self, request: Request) -> Any:
        return {
            "action": action_schema(),
            "observation": Seen.model_json_schema(),
            "state": SessionState.model_json_schema(),
        }

    async def _environments(self, request: Request) -> Any:
        return [NAME]

    async def _splits(self, request: Request) -> Any:
        return [{"name": name, "type": name} for name in self.splits]

    async def _list(self, request: Request) -> Any:
        return {"tasks": [self._entry(task) for task in self._of_split(await json_object(request))], "env_name": NAME}

    async def _count(self, request: Request) -> Any:
        return {"num_tasks": len(self._of_split(await json_object(request)))}

    async def _one(self, request: Request) -> Any:
        body = await json_object(request)
        tasks, index = self._of_split(body), body.get("index")
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(tasks):
            raise Refusal(f"index is a whole number from 0 to {len(tasks) - 1}", param="index")
        return {"task": self._entry(tasks[index])}

    async def _range(self, request: Request) -> Any:
        body = await json_object(request)
        start, stop = body.get("start"), body.get("stop")
        if not all(one is None or (isinstance(one, int) and not isinstance(one, bool)) for one in (start, stop)):
            raise Refusal("start and stop are whole numbers", param="start")
        return {"tasks": [self._entry(task) for task in self._of_split(body)[start:stop]]}

    def _of_split(self, body: Mapping[str, Any]) -> Sequence[Task]:
        name = body.get("split")
        if not isinstance(name, str) or name not in self.splits:
            raise Refusal(f"split is one of {', '.join(self.splits)}", param="split")
        return self.splits[name]

    def _entry(self, task: Task) -> dict[str, Any]:
        """A task as lists show it. The goal is that of one instance: a reset draws its own."""
        return {
            "id": task.id,
            "goal": task.instantiate(0).goal,
            "category": task.category,
            "difficulty": task.difficulty,
            "max_steps": task.max_steps,
            **listed(self.capabilities[task.env]),
        }

    # --- sessions --------------------------------------------------------------------------------------------------

    async def _converse(self, socket: WebSocket) -> None:
        await socket.accept()
        if self.open >= self.most:
            told = {"active_sessions": self.open, "max_sessions": self.most}
            await _send(socket, error_message("CAPACITY_REACHED", f"all {self.most} sessions are in use", **told))
            await socket.close()
            return
        self.open += 1
        session = Session(self)
        try:
            async with anyio.create_task_group() as group:
                said, heard = anyio.create_memory_object_stream[str | None](_AHEAD)

                async def hear() -> None:
                    with suppress(WebSocketDisconnect):
                        while True:
                            await said.send(await _text(socket))
                    # whatever is being done for it is given up
                    group.cancel_scope.cancel()

                group.start_soon(hear)
                async with said, heard:
                    with suppress(WebSocketDisconnect):  # between a message and its answer
                        await self._answer_all(socket, session, heard)
                    group.cancel_scope.cancel()
        finally:
            self.open -= 1
            with anyio.CancelScope(shield=True):
                await session.close()

    async def _answer_all(self, socket: WebSocket, session: Session, heard: ObjectReceiveStream[str | None]) -> None:
        while True:
            with anyio.move_on_after(self.idle_s) as waiting:
                text = await heard.receive()
            if waiting.cancelled_caught:
                await _send(socket, error_message("SESSION_ERROR", f"nothing was asked for {self.idle_s:g} seconds"))
                await socket.close()
                return
            reply = await session.answer(text)
            if reply is None:
                await socket.close()
                return
            await _send(socket, reply)


class Reset(Record):
    """What a reset says; all of it may be left out."""

    task: str | None = None
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    episode_id: str | None = Field(default=None, max_length=200)


class Session:
    """One client's episodes, one after the other."""

    def __init__(self, service: EnvService) -> None:
        self._service = service
        self._driven: Driven | None = None
        self._state = SessionState()

    async def answer(self, text: str | None) -> dict[str, Any] | None:
        """The reply to a message (None for one that is no text); None if it ends the session."""
        try:
            message = strict_json.loads(text or "")
        except strict_json.NotJson as error:
            return error_message("INVALID_JSON", f"not an object of JSON: {error}")
        if not isinstance(message, dict):
            return error_message("INVALID_JSON", "not an object of JSON")
        kind, data = message.get("type"), message.get("data") or {}
        if not isinstance(data, dict):
            return error_message("VALIDATION_ERROR", "data is an object", errors=[])
        try:
            match kind:
                case "reset":
                    return {"type": "observation", "data": await self._reset(data)}
                case "step":
                    return {"type": "observation", "data": await self._step(data)}
                case "state":
                    return {"type": "state", "data": self._state.model_dump(mode="json")}
                case "close":
                    return None
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            return error_message(
                "VALIDATION_ERROR", "this is no action", errors=json.loads(json.dumps(errors, default=str))
            )
        except Refusal as refusal:
            return error_message("VALIDATION_ERROR", refusal.what, errors=[])
        except CuarlError as error:
            logger.warning("a session failed: %s", loggable(str(error)))
            return error_message("EXECUTION_ERROR", loggable(error.what))
        return error_message("UNKNOWN_TYPE", f"there are no messages of type {str(kind)[:80]!r}")

    async def close(self) -> None:
        """Close the device."""
        driven, self._driven = self._driven, None
        if driven is not None:
            await driven.close()

    async def _reset(self, data: Mapping[str, Any]) -> dict[str, Any]:
        service = self._service
        with understood():
            asked = Reset.model_validate({key: data[key] for key in Reset.model_fields if data.get(key) is not None})
        task = service.task(asked.task)
        await self.close()
        seed = service.seed + service.episodes if asked.seed is None else asked.seed
        service.episodes += 1
        self._driven = await service.begin(task.instantiate(seed), seed)
        self._state = SessionState(episode_id=asked.episode_id or f"{task.id}/{seed}", task=task.id)
        return self._told(self._driven, await self._driven.begin(seed))

    async def _step(self, data: Mapping[str, Any]) -> dict[str, Any]:
        driven = self._driven
        if driven is None:
            raise RolloutError("there is no episode yet: reset first")
        action = read_action(data)
        if too_much := excess(action):
            raise Refusal(too_much)
        outcome = await driven.act(action)
        self._state = self._state.model_copy(update={"step_count": driven.turns, "done": driven.over})
        return self._told(driven, outcome.observation, outcome)

    def _told(self, driven: Driven, observation: Observation, outcome: Outcome | None = None) -> dict[str, Any]:
        """An observation with OpenEnv's reward and flag.

        The reward is 1 at the end of an episode whose task is done, else 0.
        """
        metadata: dict[str, Any] = {}
        reward = None
        if outcome is not None:
            reward = float(outcome.verdict.success) if outcome.verdict else 0.0
            if outcome.reward is not None:
                metadata["env_reward"] = outcome.reward
            if outcome.verdict is not None:
                metadata |= {"truncated": outcome.truncated, "verdict": outcome.verdict.model_dump(mode="json")}
        rejected = outcome.info.get("rejected") if outcome else None
        shown = seen(
            observation,
            task=driven.task.task_id,
            goal=driven.task.goal,
            turn=driven.turns,
            rejected=None if rejected is None else str(rejected),
            metadata=metadata,
        )
        return {
            "observation": shown.model_dump(mode="json"),
            "reward": reward,
            "done": driven.over,
            **({"metadata": metadata} if metadata else {}),
        }


def error_message(code: str, message: str, **more: Any) -> dict[str, Any]:
    """An error as OpenEnv's clients read it."""
    return {"type": "error", "data": {"message": message, "code": code, **more}}


async def _text(socket: WebSocket) -> str | None:
    """The next message; None for one of bytes. Raises WebSocketDisconnect."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code") or 1000)
    return message.get("text")


async def _send(socket: WebSocket, message: Mapping[str, Any]) -> None:
    await socket.send_text(strict_json.dumps(message, ensure_ascii=False))
