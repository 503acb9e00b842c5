"""A local server that speaks GBox's protocol over simulated devices, to try ``--env gbox`` without an account.

    cuarl local gbox --port 28080 --key any-key

It can misbehave on purpose: ``--refuse 0.1`` answers a tenth of the requests with 429, ``--break 0.05`` with 500 (half
of those after the request was carried out), ``--drop 0.02`` closes the connection (likewise), ``--start-seconds`` lets
boxes take their time. Boxes end when ``expiresIn`` is over. ``/model`` points at what is described by the label that is
drawn on it, on the screen of whichever box looks like the picture. ``GET /fake`` counts: boxes made, boxes live,
actions carried out, actions carried out twice.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from cuarl.local.box import DEVICES, ROTATIONS, Invalid, SimulatedBox
from cuarl.local.faults import Faults
from cuarl.local.wire import picture_in, png_uri
from cuarl.types import Record
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, message, understood, whole
from cuarl.web.rules import Rules, Token

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY = 32 << 20
"""Largest request: one picture."""
PAGES = (("page", "1"), ("pageSize", "10"))


class Command(Record):
    """The body of a command, without what this server has no use for."""

    command: str = ""
    envs: Mapping[str, str] = Field(default_factory=dict)


class FakeGBox:
    """The server's boxes and counts, and its application."""

    def __init__(self, key: str, profile: str = "small", faults: Faults | None = None, *, stock: bool = False) -> None:
        """``stock`` boxes of Android have its own shell alone, and no ``cuarl-device``."""
        self.key, self.profile, self.faults, self.stock = key, profile, faults or Faults(), stock
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
        from starlette.routing import Mount, Route

        async def counted(request: Request) -> Response:
            return json_response(self.counts())

        api = [
            Route("/model", self.faults.around(self._model), methods=["POST"]),
            Route("/boxes", self.faults.around(self._list), methods=["GET"]),
            Route("/boxes/{type}", self.faults.around(self._create), methods=["POST"]),
            Route("/boxes/{id}", self.faults.around(self._get), methods=["GET"]),
            Route("/boxes/{id}/display", self.faults.around(self._display), methods=["GET"]),
            Route("/boxes/{id}/commands", self.faults.around(self._command), methods=["POST"]),
            Route("/boxes/{id}/terminate", self.faults.around(self._terminate), methods=["POST"]),
            Route("/boxes/{id}/actions/screenshot", self.faults.around(self._screenshot), methods=["POST"]),
            Route("/boxes/{id}/actions/screen-layout", self.faults.around(self._layout), methods=["GET"]),
            Route("/boxes/{id}/actions/elements/detect", self.faults.around(self._elements), methods=["POST"]),
            Route("/boxes/{id}/actions/{action}", self.faults.around(self._act), methods=["POST"]),
        ]
        rules = Rules(say=message, token=Token(self.key), open=frozenset({"/fake"}).__contains__, body_bytes=MAX_BODY)
        return application([Route("/fake", counted), Mount("/api/v1", routes=api)], rules)

    def _box(self, request: Request) -> SimulatedBox:
        box = self.boxes.get(request.path_params["id"])
        if box is None:
            raise Refusal("no such box", status=404)
        return box

    def _running(self, request: Request) -> SimulatedBox:
        box = self.boxes.get(request.path_params["id"])
        if box is None or box.ended or time.monotonic() < box.runs_at:
            raise Refusal("no such box, or it is not running", status=409)
        return box

    def _shown(self, box: SimulatedBox) -> dict[str, Any]:
        running = "running" if time.monotonic() >= box.runs_at else "pending"
        status = "terminated" if box.ended else running
        return {"id": box.id, "type": box.box_type, "status": status, "config": box.config, "reason": ""}

    async def _create(self, request: Request) -> Response:
        kind = request.path_params["type"]
        if kind not in DEVICES:
            raise Refusal(f"no boxes of type {kind[:80]}", status=404)
        body = await json_object(request, empty=True)
        runs_at = time.monotonic() + self.faults.random.random() * self.faults.start_s
        with understood():
            config = body.get("config") or {}
            box = SimulatedBox(secrets.token_hex(8), kind, self.profile, config, runs_at, stock=self.stock)
        self.boxes[box.id] = box
        pending = sum(not one.ended and time.monotonic() < one.runs_at for one in self.boxes.values())
        self.most_pending = max(self.most_pending, pending)
        return json_response(self._shown(box), 201)

    async def _list(self, request: Request) -> Response:
        with understood():
            page, size = (whole(name, request.query_params.get(name, default)) for name, default in PAGES)
        boxes = [self._shown(box) for box in self.boxes.values()]
        start = (page - 1) * size
        return json_response({"data": boxes[start : start + size], "page": page, "pageSize": size, "total": len(boxes)})

    async def _get(self, request: Request) -> Response:
        return json_response(self._shown(self._box(request)))

    async def _display(self, request: Request) -> Response:
        box = self._running(request)
        shot = await box.screenshot()
        way = ROTATIONS[box.turned] if box.box_type == "android" else "landscapeLeft"
        return json_response({"orientation": way, "resolution": {"width": shot.width, "height": shot.height}})

    async def _screenshot(self, request: Request) -> Response:
        box = self._running(request)
        uri = png_uri(await box.screenshot())
        if box.halves:
            box.halves -= 1
            return json_response({"uri": uri[: len(uri) // 2]})
        return json_response({"uri": uri})

    async def _layout(self, request: Request) -> Response:
        try:
            return json_response({"content": await self._running(request).layout()})
        except Invalid as error:
            raise Refusal(str(error), status=422) from error

    async def _elements(self, request: Request) -> Response:
        box = self._running(request)
        uri = png_uri(await box.screenshot())
        shots = {"source": {"uri": uri}, "marked": {"uri": uri}}
        return json_response({"elements": await box.elements(), "screenshot": shots})

    async def _act(self, request: Request) -> Response:
        box = self._running(request)
        key = request.headers.get("idempotency-key", "")
        body = await json_object(request, empty=True)
        try:
            await box.act(request.path_params["action"], body, key)
        except Invalid as error:
            raise Refusal(str(error)[:300], status=422) from error
        return json_response({"actionId": secrets.token_hex(8), "message": "done"})

    async def _command(self, request: Request) -> Response:
        box = self._running(request)
        body = await json_object(request, empty=True)
        with understood():
            asked = Command.model_validate(
                {key: body[key] for key in Command.model_fields if body.get(key) is not None}
            )
        return json_response(await box.command(asked.command, asked.envs))

    async def _model(self, request: Request) -> Response:
        body = await json_object(request, empty=True)
        with understood():
            target = str((body.get("action") or {}).get("target", ""))
            shown = picture_in(str(body.get("screenshot", "")))
        alike = [box for box in self.boxes.values() if not box.ended and await box.shows(shown)]
        x, y = (await alike[0].find(target) if alike else None) or (-1, -1)
        response = {"type": "click", "coordinates": {"x": x, "y": y}}
        return json_response({"id": secrets.token_hex(8), "model": body.get("model"), "response": response})

    async def _terminate(self, request: Request) -> Response:
        box = self._box(request)
        box.terminated = True
        return json_response(self._shown(box))
