"""``POST /api/ingest/batch``: where other trainers report, each with a token of its project."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from cuarl.errors import StoreError
from cuarl.monitor.ingest.batch import Unreadable, read_batch
from cuarl.monitor.ingest.records import Records, run_id
from cuarl.monitor.web.desk import Desk
from cuarl.monitor.web.templating import address
from cuarl.store.ingest import Ingest
from cuarl.web.guard import json_object, json_response
from cuarl.web.refusal import Refusal

PATH = "/api/ingest/batch"
BODY_BYTES = 64 << 20
"""Largest batch: screenshots are in it as base64."""


def routes(desk: Desk) -> list[BaseRoute]:
    """The path that takes batches, and the one that the seeds' trainers print: ``/NUMBER?project_id=PROJECT``."""
    return [Route(PATH, _batch(desk), methods=["POST"]), Route("/{training:int}", _training(desk))]


def _batch(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    ingest = Ingest(desk.store.engine)

    async def answer(request: Request) -> Response:
        if desk.read_only:
            raise Refusal("this monitor only shows, and takes no reports", status=403)
        try:
            project = await anyio.to_thread.run_sync(ingest.project_of, _secret(request))
            if project is None:
                raise Refusal("the project's token is missing, wrong or revoked", status=401, headers=_ASKED)
            body = await json_object(request)
            kept = await anyio.to_thread.run_sync(_keep, desk, ingest, project, body)
        except Unreadable as error:
            raise Refusal(error.what) from error
        except StoreError as error:
            raise Refusal(f"the store can't be written: {error.what}", status=503) from error
        return json_response(kept, headers={"cache-control": "no-store"})

    return answer


_ASKED = {"WWW-Authenticate": "Bearer"}


def _secret(request: Request) -> str:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def _keep(desk: Desk, ingest: Ingest, project: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a batch, and bring what is made of it up to date."""
    at = time.time()
    batch = read_batch(body, project, ingest, desk.store.blobs)
    ids = ingest.keep(project, batch.rows, at=at)
    Records(desk.store, ingest, project).refresh(batch.touched(ids), at=at)
    return batch.answer(ids)


def _training(desk: Desk) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        found = run_id(request.query_params.get("project_id", ""), request.path_params["training"])
        return RedirectResponse(address(desk.prefix, "runs", found), 303)

    return answer
