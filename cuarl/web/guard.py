"""The one middleware: a request is let through, read within bounds, and given up when its client leaves.

Needs the extra web; importing this does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from cuarl import strict_json
from cuarl.web.refusal import Refusal
from cuarl.web.rules import Rules

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY_VIOLATION = 1008


def application(routes: Sequence[BaseRoute], rules: Rules) -> Starlette:
    """An application of these routes behind ``rules``; its errors are JSON, in the words of its protocol."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return _response(error, rules)

    async def missed(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _response(Refusal(error.detail, status=error.status_code, headers=error.headers), rules)

    async def failed(request: Request, error: Exception) -> Response:
        # the server gives the connection up after a fault, so its client must not send the next request on it
        says_so = {"connection": "close"}
        return _response(Refusal("the server failed; its log says why", status=500, headers=says_so), rules)

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, rules)],
        exception_handlers={Refusal: refused, HTTPException: missed, Exception: failed},
    )


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer of strict JSON."""
    from starlette.responses import Response

    return Response(
        strict_json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
        status,
        headers=headers,
        media_type="application/json",
    )


async def json_body(request: Request, *, empty: bool = False) -> Any:
    """The request's JSON. Raises Refusal. ``empty``: a request without a body means an empty object.

    The content type is asked for, since a web page elsewhere can't send it unasked.
    """
    data = await request.body()
    if not data and empty:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal("the content type must be application/json", status=415)
    try:
        return strict_json.loads(data)
    except strict_json.NotJson as error:
        raise Refusal(f"the body is no JSON: {error}") from None


async def json_object(request: Request, *, empty: bool = False) -> dict[str, Any]:
    """The same for a JSON object."""
    body = await json_body(request, empty=empty)
    if not isinstance(body, dict):
        raise Refusal("the body must be a JSON object")
    return body


class Guard:
    """Puts ``rules`` before an application.

    What it reads of a body is at hand as a whole, so handlers never wait for more.
    """

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of ASGI."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.rules.admit(scope)
            body = await self._body(scope, receive)
        except Refusal as refusal:
            await _response(refusal, self.rules)(scope, receive, send)
            return
        if body is None:  # its client is gone
            return
        left = anyio.Event()
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                left.set()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await self.app(scope, _given(body, left), send)
            group.cancel_scope.cancel()

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None if the client leaves meanwhile. Raises Refusal."""
        most = self.rules.most_bytes(scope)
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        data = bytearray()
        # the header is compared as text first: Python reads no number of 5000 digits
        too_long = not length.isdigit() or len(length) > 15 or int(length) > most
        with anyio.move_on_after(self.rules.body_s):
            while not too_long:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                data += message.get("body", b"")
                too_long = len(data) > most
                if not message.get("more_body", False) and not too_long:
                    return bytes(data)
        if too_long:
            raise Refusal(f"the request has more than {_size(most)}", status=413)
        raise Refusal(f"the request's body did not come within {self.rules.body_s:g} s", status=408)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self.rules.admit(scope)
        except Refusal as refusal:
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": refusal.what[:120]})
            return
        await self.app(scope, receive, send)


def _given(body: bytes, left: anyio.Event) -> Receive:
    """What an application receives: the body, and then that the client has left, as soon as it has."""
    told = False

    async def receive() -> Message:
        nonlocal told
        if not told:
            told = True
            return {"type": "http.request", "body": body, "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    return receive


def _response(refusal: Refusal, rules: Rules) -> Response:
    return json_response(rules.say(refusal), refusal.status, refusal.headers)


def _size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
