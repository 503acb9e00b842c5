"""A local server that speaks GBox's protocol over simulated devices, to try the ``gbox`` environment without an account.

    python -m cuarl.env.gbox.fake --port 28080 --key any-key

It can misbehave on purpose: ``--refuse 0.1`` answers a tenth of the requests with 429, ``--break 0.05`` with 500 (half of
those after the request was carried out), ``--drop 0.02`` closes the connection (likewise), ``--start-seconds`` lets boxes
take their time. Boxes end when ``expiresIn`` is over. ``/model`` points at what is described by the label that is drawn on
it, on the screen of whichever box looks like the picture. ``GET /fake`` counts: boxes made, boxes live, actions carried out, actions carried out twice.
"""

from __future__ import annotations

import argparse
import random
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cuarl.env.gbox.client import data_uri, screenshot_of
from cuarl.env.gbox.simulated import DEVICES, ROTATIONS, Invalid, SimulatedBox
from cuarl.web.listen import run

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

Fault = Literal["", "refuse", "break", "drop"]


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


class FakeGBox:
    """The server's boxes and counts, and its application."""

    def __init__(self, key: str, profile: str = "small", faults: Faults | None = None) -> None:
        self.key, self.profile, self.faults = key, profile, faults or Faults()
        self.boxes: dict[str, SimulatedBox] = {}
        self.most_pending = 0
        """Most boxes that were starting at the same time."""

    def counts(self) -> dict[str, int]:
        """Boxes made and live, actions carried out, and those carried out more than once."""
        acted = [key for box in self.boxes.values() for key in box.acted if key]
        live = sum(not box.ended for box in self.boxes.values())
        return {"made": len(self.boxes), "live": live, "actions": len(acted), "doubled": len(acted) - len(set(acted))}

    def app(self) -> Starlette:
        """The application, its interface below ``/api/v1``."""
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse
        from starlette.routing import Mount, Route

        async def counted(request: Request) -> Response:
            return JSONResponse(self.counts())

        api = [
            Route("/model", self._guarded(self._model), methods=["POST"]),
            Route("/boxes", self._guarded(self._list), methods=["GET"]),
            Route("/boxes/{type}", self._guarded(self._create), methods=["POST"]),
            Route("/boxes/{id}", self._guarded(self._get), methods=["GET"]),
            Route("/boxes/{id}/display", self._guarded(self._display), methods=["GET"]),
            Route("/boxes/{id}/commands", self._guarded(self._command), methods=["POST"]),
            Route("/boxes/{id}/terminate", self._guarded(self._terminate), methods=["POST"]),
            Route("/boxes/{id}/actions/screenshot", self._guarded(self._screenshot), methods=["POST"]),
            Route("/boxes/{id}/actions/{action}", self._guarded(self._act), methods=["POST"]),
        ]
        return Starlette(routes=[Route("/fake", counted), Mount("/api/v1", routes=api)])

    def _guarded(self, handle: Any) -> Any:
        from starlette.responses import JSONResponse

        async def guarded(request: Request) -> Response:
            if request.headers.get("authorization") != f"Bearer {self.key}":
                return JSONResponse({"message": "wrong key"}, 401)
            fault, carried_out = self.faults.draw()
            if carried_out:
                reply: Response = await handle(request)
            if fault == "refuse":
                return JSONResponse(
                    {"message": "too many requests"}, 429, {"Retry-After": f"{self.faults.retry_after_s:g}"}
                )
            if fault == "break":
                return JSONResponse({"message": "internal error"}, 500)
            return dropped() if fault == "drop" else reply

        return guarded

    def _box(self, request: Request) -> SimulatedBox | None:
        return self.boxes.get(request.path_params["id"])

    def _shown(self, box: SimulatedBox) -> dict[str, Any]:
        running = "running" if time.monotonic() >= box.runs_at else "pending"
        status = "terminated" if box.ended else running
        return {"id": box.id, "type": box.box_type, "status": status, "config": box.config, "reason": ""}

    async def _create(self, request: Request) -> Response:
        kind = request.path_params["type"]
        if kind not in DEVICES:
            return _refused(404, f"no boxes of type {kind}")
        body = await _body(request)
        runs_at = time.monotonic() + self.faults.random.random() * self.faults.start_s
        box = SimulatedBox(secrets.token_hex(8), kind, self.profile, body.get("config") or {}, runs_at)
        self.boxes[box.id] = box
        pending = sum(not one.ended and time.monotonic() < one.runs_at for one in self.boxes.values())
        self.most_pending = max(self.most_pending, pending)
        return _json(self._shown(box), 201)

    async def _list(self, request: Request) -> Response:
        page, size = int(request.query_params.get("page", 1)), int(request.query_params.get("pageSize", 10))
        boxes = [self._shown(box) for box in self.boxes.values()]
        start = (page - 1) * size
        return _json({"data": boxes[start : start + size], "page": page, "pageSize": size, "total": len(boxes)})

    async def _get(self, request: Request) -> Response:
        box = self._box(request)
        return _json(self._shown(box)) if box else _refused(404, "no such box")

    async def _display(self, request: Request) -> Response:
        box = self._running(request)
        if box is None:
            return _refused(409, "no such box, or it is not running")
        shot = await box.screenshot()
        way = ROTATIONS[box.turned] if box.box_type == "android" else "landscapeLeft"
        return _json({"orientation": way, "resolution": {"width": shot.width, "height": shot.height}})

    async def _screenshot(self, request: Request) -> Response:
        box = self._running(request)
        if box is None:
            return _refused(409, "no such box, or it is not running")
        uri = data_uri(await box.screenshot())
        if box.halves:
            box.halves -= 1
            return _json({"uri": uri[: len(uri) // 2]})
        return _json({"uri": uri})

    async def _act(self, request: Request) -> Response:
        box = self._running(request)
        if box is None:
            return _refused(409, "no such box, or it is not running")
        key = request.headers.get("idempotency-key", "")
        try:
            await box.act(request.path_params["action"], await _body(request), key)
        except Invalid as error:
            return _refused(422, str(error))
        return _json({"actionId": secrets.token_hex(8), "message": "done"})

    async def _command(self, request: Request) -> Response:
        box = self._running(request)
        if box is None:
            return _refused(409, "no such box, or it is not running")
        body = await _body(request)
        return _json(await box.command(str(body.get("command", "")), body.get("envs") or {}))

    async def _model(self, request: Request) -> Response:
        body = await _body(request)
        target = str((body.get("action") or {}).get("target", ""))
        try:
            shown = screenshot_of(str(body.get("screenshot", "")))
        except ValueError as error:
            return _refused(400, f"screenshot: {error}")
        alike = [box for box in self.boxes.values() if not box.ended and await box.shows(shown)]
        x, y = (await alike[0].find(target) if alike else None) or (-1, -1)
        response = {"type": "click", "coordinates": {"x": x, "y": y}}
        return _json({"id": secrets.token_hex(8), "model": body.get("model"), "response": response})

    async def _terminate(self, request: Request) -> Response:
        box = self._box(request)
        if box is None:
            return _refused(404, "no such box")
        box.terminated = True
        return _json(self._shown(box))

    def _running(self, request: Request) -> SimulatedBox | None:
        box = self._box(request)
        return box if box and not box.ended and time.monotonic() >= box.runs_at else None


def _json(body: Any, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(body, status)


def _refused(status: int, message: str) -> Response:
    return _json({"message": message}, status)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def dropped() -> Response:
    """An answer that breaks off, so that the server closes the connection."""
    from starlette.responses import Response

    class Dropped(Response):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})

    return Dropped()


def main() -> None:
    """Run the server on loopback until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m cuarl.env.gbox.fake", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=28080)
    parser.add_argument("--key", required=True, help="what clients must send as GBOX_API_KEY")
    parser.add_argument("--profile", choices=("small", "phone", "tall"), default="small")
    for name in ("--refuse", "--break", "--drop", "--start-seconds"):
        parser.add_argument(name, type=float, default=0.0)
    args = parser.parse_args()
    faults = Faults(args.refuse, getattr(args, "break"), args.drop, args.start_seconds)
    fake = FakeGBox(args.key, args.profile, faults)
    run(fake.app, args.port, f"export GBOX_BASE_URL=http://127.0.0.1:{args.port}/api/v1")


if __name__ == "__main__":
    main()
