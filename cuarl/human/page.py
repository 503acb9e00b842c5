"""The page's server: files that anybody on this machine may have, and what they show, for those who know the token.

The token is in the part of the address behind ``#``, which browsers send to nobody; the page sends it as a bearer
token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cuarl.errors import AgentError
from cuarl.human.session import NotNow, Session, in_json
from cuarl.types import ACTION
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, detail, understood, whole
from cuarl.web.rules import Rules, Token
from cuarl.web.theme import ICON, stylesheet

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}  # fmt: skip
WAIT_S = 20.0
"""A request for news is answered after this time, with or without."""


def make_app(session: Session, token: str) -> ASGIApp:
    """The application. Whoever has ``token`` acts for the person."""
    pages = {"/": ("page.html", "text/html"), "/page.js": ("page.js", "text/javascript")}
    routes = [Route(path, _file(_static(name), kind)) for path, (name, kind) in pages.items()]
    routes += [
        Route("/page.css", _file(stylesheet() + _static("page.css"), "text/css")),
        Route("/icon.svg", _file(ICON, "image/svg+xml")),
        Route("/api/view", _view(session)),
        Route("/api/screens/{digest:str}", _screen(session)),
        Route("/api/act", _act(session), methods=["POST"]),
        Route("/api/skip", _about_turn(session.skip), methods=["POST"]),
        Route("/api/let-it", _about_turn(session.let_it), methods=["POST"]),
        Route("/api/walk", _walk(session), methods=["POST"]),
    ]
    rules = Rules(say=detail, token=Token(token), open=lambda path: not path.startswith("/api/"), linked=True)
    return application(routes, rules)


def _static(name: str) -> bytes:
    return (files("cuarl.human") / "static" / name).read_bytes()


def _file(body: bytes, kind: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return Response(body, headers=SECURITY, media_type=kind)

    return answer


def _view(session: Session) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        with understood():
            after = whole("after", request.query_params.get("after", "0"))
        return _json(await session.changed(after, WAIT_S))

    return answer


def _screen(session: Session) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        found = session.picture(request.path_params["digest"])
        if found is None:
            raise Refusal("there is no such screen in this episode", status=404)
        return Response(found.png(), headers=SECURITY, media_type="image/png")

    return answer


def _act(session: Session) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        body = await json_object(request)
        with understood(422):
            episode, turn = str(body["episode"]), int(body["turn"])
            action = ACTION.validate_python(body["action"])
        with _possible():
            words, said = session.act(episode, turn, action)
        return _json({"said": words, "action": in_json(said)})

    return answer


def _about_turn(do: Callable[[str, int], None]) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        body = await json_object(request)
        with understood(422):
            episode, turn = str(body["episode"]), int(body["turn"])
        with _possible():
            do(episode, turn)
        return _json({})

    return answer


def _walk(session: Session) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        body = await json_object(request)
        if not session.assist or not isinstance(body.get("stepwise"), bool):
            raise Refusal("stepwise is true or false, where a policy is assisted", status=422)
        session.walk(stepwise=body["stepwise"])
        return _json({})

    return answer


@contextmanager
def _possible() -> Iterator[None]:
    """Refuse what can't be done."""
    try:
        yield
    except NotNow as error:
        raise Refusal(str(error), status=409) from error
    except AgentError as error:
        raise Refusal(error.what, status=422) from error


def _json(body: object) -> Response:
    return json_response(body, headers=SECURITY)
