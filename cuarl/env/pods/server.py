"""The session server that runs in a pod.

``/act`` and ``/progress`` of the protocol, and what our own client asks besides.

    GET  /          text for people and readiness probes; needs no token
    GET  /act       action_type, x, y, text, keys, direction, delay (or action: any action as JSON) → PNG after it
    GET  /progress  num_correct_submissions, submitted_row_indices, num_incorrect_submissions
    POST /reset     {"task": JSON of a TaskInstance, "seed": n} → {}, once
    GET  /state     {"state": the device's, "volatile": globs of what in it changes by itself}
    GET  /oracle    the next action of a solution

Actions are one after another, and a request that arrives twice (the same Idempotency-Key, as proxies may send a GET
again) is carried out once and answered alike. Since a GET acts here, and any page that a browser shows may send one,
everything but the first line needs the token.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
from pydantic import Field

from cuarl.env.limits import excess
from cuarl.env.pods import actions
from cuarl.env.pods.hosted import LONGEST_DELAY_S, HostedSession, InUse, Refused
from cuarl.env.pods.session import TOKEN
from cuarl.errors import CuarlError, RewardError, TaskError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Record
from cuarl.web.refusal import Refusal, detail, understood
from cuarl.web.rules import Rules, Token

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

REMEMBERED = 16
"""Requests that are known again if they come twice; a client sends one at a time."""
DELAY_S = 1.0
"""``delay`` where a request has none."""
Handler = Callable[["Request"], Awaitable["Response"]]


class Setup(Record):
    """The body of ``/reset``."""

    task: str
    """JSON of a TaskInstance."""
    seed: int = Field(ge=0)


class SessionServer:
    """Serves ``session`` to whoever bears ``token``.

    With ``local`` only by the names of this machine, and by ``hosts``.
    """

    def __init__(
        self,
        session: HostedSession,
        session_type: str,
        token: str,
        *,
        local: bool = True,
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        self.session, self._session_type = session, session_type
        self._rules = Rules(
            say=detail,
            local=local,
            hosts=hosts,
            token=Token(token, TOKEN.lower()),
            open=frozenset("/").__contains__,
            body_bytes=4 << 20,
        )
        self._started = datetime.now(UTC)
        self._turn = anyio.Lock()
        self._answers: OrderedDict[str, Response | None] = OrderedDict()
        """By the key of a request; None for an action that was carried out while its client left."""

    def app(self) -> Starlette:
        """The application; whoever serves it closes the session."""
        from starlette.routing import Route

        from cuarl.web.guard import application

        acting = [
            Route("/act", self._once(self._act)),
            Route("/progress", self._once(self._progress)),
            Route("/reset", self._once(self._shielded(self._reset)), methods=["POST"]),
            Route("/state", self._once(self._state)),
            Route("/oracle", self._once(self._oracle)),
        ]
        for route in acting:  # what a HEAD asks for is the answer of an action, without the answer
            (route.methods or set()).discard("HEAD")
        return application([Route("/", self._about), *acting], self._rules)

    def _once(self, handle: Handler) -> Handler:
        async def once(request: Request) -> Response:
            async with self._turn:
                known = self._answers.get(_key(request))
                if known is not None:
                    return known
                try:
                    reply = await handle(request)
                except (Refusal, CuarlError, Refused) as error:
                    reply = _refusal(error)
                self._remember(request, reply)
                return reply

        return once

    def _remember(self, request: Request, reply: Response | None) -> None:
        if _key(request):
            self._answers[_key(request)] = reply
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)

    def _shielded(self, handle: Handler) -> Handler:
        """A client that goes away must not leave it half done and forgotten; the next request waits for it."""

        async def shielded(request: Request) -> Response:
            with anyio.CancelScope(shield=True):
                reply = await handle(request)
                self._remember(request, reply)
            return reply

        return shielded

    async def _about(self, request: Request) -> Response:
        from starlette.responses import PlainTextResponse

        lasted = (datetime.now(UTC) - self._started).total_seconds()
        return PlainTextResponse(
            f"cuarl session\ntype: {self._session_type}\nstarted: {self._started.isoformat(timespec='seconds')}\n"
            f"duration: {lasted:.0f} s\n"
        )

    async def _act(self, request: Request) -> Response:
        from starlette.responses import Response

        with understood(422):
            action = actions.read(request.query_params)
            delay_s = _delay(request.query_params.get("delay", str(DELAY_S)))
        if action is not None:
            await self._carry_out(request, action)
            await anyio.sleep(delay_s)
        shot = await self.session.screen(anew=action is None or delay_s > 0)
        return Response(shot.png(), media_type="image/png")

    async def _carry_out(self, request: Request, action: Action) -> None:
        """An action, unless its client comes again for the answer that it did not stay for."""
        if _key(request) in self._answers:
            return
        if too_much := excess(action):
            raise Refusal(too_much, status=422)
        with anyio.CancelScope(shield=True):
            await self.session.act(action)
            self._remember(request, None)

    async def _progress(self, request: Request) -> Response:
        return _json(await self.session.progress())

    async def _reset(self, request: Request) -> Response:
        from cuarl.web.guard import json_object

        body = await json_object(request)
        with understood(422):
            setup = Setup.model_validate(body)
            task = TaskInstance.read(setup.task)
        await self.session.reset(task, setup.seed)
        return _json({})

    async def _state(self, request: Request) -> Response:
        state = await self.session.state()
        return _json({"state": state, "volatile": self.session.volatile})

    async def _oracle(self, request: Request) -> Response:
        return _json((await self.session.oracle()).model_dump(mode="json"))


def _key(request: Request) -> str:
    return request.headers.get("idempotency-key", "")


def _delay(text: str) -> float:
    """Seconds. Raises ValueError."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", text) or float(text) > LONGEST_DELAY_S:
        raise ValueError(f"delay is 0 to {LONGEST_DELAY_S:g} seconds, not {text[:20]!r}")
    return float(text)


def _refusal(error: Exception) -> Response:
    """What a client is told; 500 says that the device failed."""
    status = 500
    if isinstance(error, Refusal):
        status = error.status
    elif isinstance(error, Refused | TaskError):
        status = 422
    elif isinstance(error, InUse | RewardError):
        status = 409
    return _json({"detail": str(error)}, status)


def _json(body: object, status: int = 200) -> Response:
    from cuarl.web.guard import json_response

    return json_response(body, status)
