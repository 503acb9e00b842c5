"""The session server that runs in a pod: ``/act`` and ``/progress`` of the protocol, and what our own client asks besides.

    GET  /          text for people and readiness probes; needs no token
    GET  /act       action_type, x, y, text, keys, direction, delay (or action: any action as JSON) → PNG after it
    GET  /progress  num_correct_submissions, submitted_row_indices, num_incorrect_submissions
    POST /reset     {"task": JSON of a TaskInstance, "seed": n} → {}, once
    GET  /state     {"state": the device's, "volatile": globs of what in it changes by itself}
    GET  /oracle    the next action of a solution

Actions are one after another, and a request that arrives twice (the same Idempotency-Key, as proxies may send a GET again)
is carried out once and answered alike.
"""

from __future__ import annotations

import hmac
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import ValidationError

from cuarl.env.pods import words
from cuarl.env.pods.hosted import HostedSession, InUse, Refused
from cuarl.env.pods.session import TOKEN
from cuarl.errors import CuarlError, TaskError
from cuarl.tasks.task import TaskInstance

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

REMEMBERED = 16
"""Answers kept for requests that come again; a client sends one at a time."""
DELAY_S = 1.0
"""``delay`` where a request has none."""
Handler = Callable[["Request"], Awaitable["Response"]]


class SessionServer:
    """Serves ``session``. ``token`` is what requests must bear; None asks for none."""

    def __init__(self, session: HostedSession, session_type: str, token: str | None) -> None:
        self.session, self._session_type, self._token = session, session_type, token
        self._started = datetime.now(UTC)
        self._turn = anyio.Lock()
        self._answers: OrderedDict[str, Response] = OrderedDict()

    def app(self) -> Starlette:
        """The application; whoever serves it closes the session."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [
            Route("/", self._about),
            Route("/act", self._guarded(self._act)),
            Route("/progress", self._guarded(self._progress)),
            Route("/reset", self._guarded(self._reset), methods=["POST"]),
            Route("/state", self._guarded(self._state)),
            Route("/oracle", self._guarded(self._oracle)),
        ]
        return Starlette(routes=routes)

    def _guarded(self, handle: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            given = request.headers.get(TOKEN, "").encode()
            if self._token is not None and not hmac.compare_digest(given, self._token.encode()):
                return _json({"detail": f"the header {TOKEN} is missing or wrong"}, 401)
            async with self._turn:
                return await self._once(request.headers.get("idempotency-key", ""), request, handle)

        return guarded

    async def _once(self, key: str, request: Request, handle: Handler) -> Response:
        if key in self._answers:
            return self._answers[key]
        # a client that goes away must not leave an action half done and forgotten
        with anyio.CancelScope(shield=True):
            try:
                reply = await handle(request)
            except (Refused, TaskError) as error:
                reply = _json({"detail": str(error)}, 422)
            except CuarlError as error:
                reply = _json({"detail": str(error)}, 409 if isinstance(error, InUse) else 500)
        if key:
            self._answers[key] = reply
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        return reply

    async def _about(self, request: Request) -> Response:
        from starlette.responses import PlainTextResponse

        lasted = (datetime.now(UTC) - self._started).total_seconds()
        return PlainTextResponse(
            f"cuarl session\ntype: {self._session_type}\nstarted: {self._started.isoformat(timespec='seconds')}\n"
            f"duration: {lasted:.0f} s\n"
        )

    async def _act(self, request: Request) -> Response:
        from starlette.responses import Response

        with _understood():
            action = words.read(request.query_params)
            delay_s = float(request.query_params.get("delay", DELAY_S))
        shot = await self.session.act(action, delay_s)
        return Response(shot.png(), media_type="image/png")

    async def _progress(self, request: Request) -> Response:
        return _json(await self.session.progress())

    async def _reset(self, request: Request) -> Response:
        with _understood():
            body = await request.json()
            task, seed = TaskInstance.model_validate_json(body["task"]), int(body["seed"])
        await self.session.reset(task, seed)
        return _json({})

    async def _state(self, request: Request) -> Response:
        state = await self.session.state()
        return _json({"state": state, "volatile": self.session.volatile})

    async def _oracle(self, request: Request) -> Response:
        return _json((await self.session.oracle()).model_dump(mode="json"))


@contextmanager
def _understood() -> Iterator[None]:
    """A request that can't be read is refused, with the reason."""
    try:
        yield
    except ValidationError as error:
        said = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
        raise Refused("; ".join(said)) from error
    except KeyError as error:
        raise Refused(f"{error.args[0]} is missing") from error
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error


def _json(body: Any, status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(json.dumps(body), status, media_type="application/json")
