"""The monitor's application: its paths, and what is sent with every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cuarl.errors import StoreError
from cuarl.monitor.web import api, ingest, openapi
from cuarl.monitor.web.desk import Desk
from cuarl.monitor.web.login import COOKIE, BrowserToken
from cuarl.monitor.web.pictures import SECURITY, film, screen
from cuarl.monitor.web.stream import Stream
from cuarl.monitor.web.templating import address, page, prepare
from cuarl.monitor.web.views import episodes, evaluations, runs
from cuarl.monitor.web.views.runs import View
from cuarl.web.guard import application
from cuarl.web.refusal import Refusal
from cuarl.web.rules import Rules
from cuarl.web.theme import ICON, stylesheet

_FILES = {"monitor.css": "text/css", "monitor.js": "text/javascript", "icon.svg": "image/svg+xml"}

PAGES: Mapping[str, Callable[[Desk, Request], View]] = {
    "/": runs.runs,
    "/runs/{run_id:str}": runs.run,
    "/runs/{run_id:str}/costs": runs.costs,
    "/runs/{run_id:str}/steps/{step:str}": runs.step,
    "/episodes": episodes.episodes,
    "/episodes/{episode_id:str}": episodes.episode,
    "/episodes/{episode_id:str}/turns/{turn:str}/prompt": episodes.prompt,
    "/evaluations": evaluations.evaluations,
    "/evaluations/{evaluation_id:str}": evaluations.evaluation,
    "/compare": evaluations.compare,
}
"""The view of each page."""


def make_app(desk: Desk, rules: Rules) -> ASGIApp:
    """The application, below the desk's path prefix."""
    prepare()
    token = rules.token if isinstance(rules.token, BrowserToken) else None
    routes: list[BaseRoute] = [Route(path, _page(desk, view)) for path, view in PAGES.items()]
    routes += [
        Route("/login", _login(desk, token), methods=["GET", "POST"]),
        Route("/events", _events(Stream(desk.pages))),
    ]
    routes += [
        Route("/files/{name:str}", _file),
        Route("/screens/{name:str}", _screen(desk)),
        Route("/episodes/{episode_id:str}/film.gif", _film(desk)),
        *api.routes(desk),
        *ingest.routes(desk),
        *openapi.routes(desk),
    ]
    made = application([Mount(desk.prefix, routes=routes)], rules)
    return made if token is None else SignIn(made, token, desk.prefix)


class SignIn:
    """Leads a browser that has no token to the form for it; everybody else is answered as usual."""

    def __init__(self, app: ASGIApp, token: BrowserToken, prefix: str) -> None:
        self._app, self._token, self._prefix = app, token, prefix
        self._open = open_paths(prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of ASGI."""
        if scope["type"] == "http" and scope["method"] == "GET" and not self._open(scope["path"]):
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            if "text/html" in headers.get("accept", "") and not self._token.borne_by(headers):
                query = scope.get("query_string", b"").decode("latin-1")
                wanted = scope["path"] + (f"?{query}" if query else "")
                answer = RedirectResponse(address(self._prefix, "login", next=wanted), 303, SECURITY)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)


def say(refusal: Refusal) -> Mapping[str, Any]:
    """A refusal in JSON, as the seeds' monitor says it."""
    return {"error": refusal.what}


def open_paths(prefix: str) -> Callable[[str], bool]:
    """Which paths don't need the monitor's token: its form, what that looks like, and reports, which have their own."""
    free = {f"{prefix}/login", f"{prefix}{ingest.PATH}", *(f"{prefix}/files/{name}" for name in _FILES)}
    return free.__contains__


# --- pages ---------------------------------------------------------------------------------------------------------


def _page(desk: Desk, view: Callable[[Desk, Request], View]) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        try:
            template, values = view(desk, request)
            status = 200
        except Refusal as refusal:
            template, values, status = "error.html", {"what": refusal.what}, refusal.status
        except StoreError as error:
            template, values, status = "error.html", {"what": f"the store can't be read: {error.what}"}, 503
        return html(desk, template, values, status)

    return answer


def html(desk: Desk, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    """A page, never kept by anybody on the way."""
    body = page(template, desk.prefix, {"read_only": desk.read_only, "still": desk.still, **values})
    return Response(
        body.encode("utf-8", "replace"),
        status,
        headers={**SECURITY, "cache-control": "no-store"},
        media_type="text/html",
    )


def _login(desk: Desk, token: BrowserToken | None) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        wanted = _local(request.query_params.get("next", ""), desk.prefix)
        if request.method == "POST":
            # a form's own encoding; a page elsewhere can't send it, since requests from other origins are refused
            given = parse_qs((await request.body()).decode("utf-8", "replace")).get("token", [""])[0]
            if token is None or token.is_(given):
                found = RedirectResponse(wanted, status_code=303, headers=SECURITY)
                if token is not None:
                    found.set_cookie(COOKIE, token.cookie, httponly=True, samesite="lax", path=desk.prefix or "/")
                return found
        return html(
            desk,
            "login.html",
            {"wrong": request.method == "POST", "next": wanted},
            401 if request.method == "POST" else 200,
        )

    return answer


def _local(path: str, prefix: str) -> str:
    """A path of ours to go on to; the start for any other."""
    parts = urlsplit(path) if path.startswith("/") and not path.startswith("//") and "\\" not in path else None
    return path if parts and not parts.netloc and not parts.scheme and path.startswith(prefix or "/") else f"{prefix}/"


# --- files, screens, news ------------------------------------------------------------------------------------------


def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        raise Refusal("there is no such file", status=404)
    body = ICON if name == "icon.svg" else (files("cuarl.monitor.web") / "static" / name).read_bytes()
    body = stylesheet() + body if name == "monitor.css" else body
    return Response(body, headers={**SECURITY, "cache-control": "no-cache"}, media_type=_FILES[name])


def _screen(desk: Desk) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        digest = request.path_params["name"].removesuffix(".png")
        return screen(desk, digest)

    return answer


def _film(desk: Desk) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return film(desk, request.path_params["episode_id"])

    return answer


def _events(stream: Stream) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        headers = {**SECURITY, "cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(stream.events(), headers=headers, media_type="text/event-stream")

    return answer
