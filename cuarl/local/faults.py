"""How the local servers that stand in for services misbehave on purpose."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cuarl.web.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send


Fault = Literal["", "refuse", "break", "drop"]
Handler = Callable[["Request"], Awaitable["Response"]]


@dataclass
class Faults:
    """Shares of requests that go wrong, drawn from ``seed``, and how long boxes take to start at most."""

    refuse: float = 0.0
    breaks: float = 0.0
    drop: float = 0.0
    start_s: float = 0.0
    retry_after_s: float = 0.05
    """What a refusal asks clients to wait."""
    seed: int = 0
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def draw(self) -> tuple[Fault, bool]:
        """What happens to the next request, and whether it is carried out before."""
        at, carried_out = self.random.random(), self.random.random() < 0.5
        if at < self.refuse:
            return "refuse", False
        if at < self.refuse + self.breaks:
            return "break", carried_out
        return ("drop", carried_out) if at < self.refuse + self.breaks + self.drop else ("", True)

    def around(self, handle: Handler) -> Handler:
        """A handler that these faults befall."""

        async def faulty(request: Request) -> Response:
            fault, carried_out = self.draw()
            if carried_out:
                reply = await handle(request)
            if fault == "refuse":
                wait = {"Retry-After": f"{self.retry_after_s:g}"}
                raise Refusal("too many requests, please try again later", status=429, headers=wait)
            if fault == "break":
                raise Refusal("an error on the server has prevented the request from succeeding", status=500)
            return dropped() if fault == "drop" else reply

        return faulty


def dropped() -> Response:
    """An answer that breaks off, so that the server closes the connection."""
    from starlette.responses import Response

    class Dropped(Response):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})

    return Dropped()
