"""The calls of a session server, through whatever proxy leads to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
import httpx

from cuarl import strict_json
from cuarl.env.http import Service
from cuarl.env.picture import whole
from cuarl.env.pods import progress
from cuarl.env.pods.actions import SCREENSHOT, Query
from cuarl.errors import EnvError, TaskError
from cuarl.types import ACTION, Action, Screenshot

TOKEN = "X-Session-Token"
"""Header of the session's own token. API servers and proxies use ``Authorization`` themselves."""
POLL_S = 0.25
TIMEOUT_S = 30.0
"""How long an answer may take."""


class DeviceState(NamedTuple):
    """What our server tells of its device."""

    state: Mapping[str, Any]
    volatile: tuple[str, ...]
    """Globs of paths in it that have changed by themselves so far, or may."""


class Session:
    """One session below ``path`` of ``service``. Methods raise EnvError.

    ``own`` says that its server is ours: that one knows a request that comes twice (by its Idempotency-Key), so that
    every request may be sent again.
    """

    def __init__(self, service: Service, path: str, token: str, *, own: bool) -> None:
        self._service, self._path, self._own = service, path, own
        self._headers = {TOKEN: token}

    async def wait(self) -> None:
        """Wait until it answers: a proxy may take a moment longer than Kubernetes to know that it is there."""
        while True:
            # with the slash at its end: without one, some servers answer with a redirection that leads past the proxy
            reply = await self._service.send(
                "GET", f"{self._path}/", headers=self._headers, repeatable=True, accept=(httpx.codes.NOT_FOUND,)
            )
            if reply.is_success:
                return
            await anyio.sleep(POLL_S)

    async def screenshot(self) -> Screenshot:
        """The screen as it is; asked for again where half of the picture is missing."""

        async def ask() -> bytes:
            reply = await self._act({"action_type": SCREENSHOT}, repeatable=True)
            if reply.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
                raise EnvError(f"the session refuses a screenshot: {_detail(reply)}")
            return reply.content

        return await whole(ask, "the session")

    async def act(self, query: Query, *, takes_s: float = 0.0) -> str:
        """Carry out an action; the reason if it is refused as invalid (nothing was done then), else the empty string.

        ``takes_s`` is how long the action itself takes. The picture in the reply, which may be too early, is not looked
        at. Raises LostReply if it may have been carried out.
        """
        reply = await self._act(query, repeatable=self._own, takes_s=takes_s)
        return _detail(reply) if reply.status_code == httpx.codes.UNPROCESSABLE_ENTITY else ""

    async def _act(self, query: Query, *, repeatable: bool, takes_s: float = 0.0) -> httpx.Response:
        # no delay: waiting until the screen is still is better than a fixed time
        return await self._send(
            "GET",
            "act",
            params={**query, "delay": "0"},
            repeatable=repeatable,
            accept=(422,),
            timeout_s=TIMEOUT_S + takes_s,
        )

    async def progress(self) -> progress.Progress:
        """How far the task is."""
        return progress.read(await self._json("GET", "progress"))

    async def reset(self, task: str, seed: int) -> None:
        """Have our server set a task up (JSON of a ``TaskInstance``). Raises TaskError for one that it refuses."""
        reply = await self._send(
            "POST", "reset", json={"task": task, "seed": seed}, repeatable=self._own, accept=(422,)
        )
        if reply.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
            raise TaskError(f"the session refuses the task: {_detail(reply)}")

    async def state(self) -> DeviceState:
        """The device's state, where the server is ours."""
        body = await self._json("GET", "state")
        try:
            return DeviceState(dict(body["state"]), tuple(map(str, body["volatile"])))
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"the session tells no state: {body!r:.200}") from error

    async def oracle(self) -> Action:
        """The next action of a solution, where the server is ours and knows one."""
        return ACTION.validate_python(await self._json("GET", "oracle"))

    async def _json(self, method: str, path: str) -> dict[str, Any]:
        return _object(await self._send(method, path, repeatable=True))

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self._service.send(method, f"{self._path}/{path}", headers=self._headers, **options)


def _object(reply: httpx.Response) -> dict[str, Any]:
    try:
        body = strict_json.reply(reply.content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise EnvError(f"the session answered with something else than a JSON object: {reply.text[:200]}")
    return body


def _detail(reply: httpx.Response) -> str:
    """Why, in FastAPI's words or plain ones."""
    try:
        detail = strict_json.reply(reply.content).get("detail")
    except (ValueError, AttributeError):
        detail = None
    return str(detail or reply.text)[:300] or f"status {reply.status_code}"
