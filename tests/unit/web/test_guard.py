"""The middleware of all servers: who may ask, how much, how long."""

from __future__ import annotations

import json
import logging
import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

pytest.importorskip("starlette", reason="a server needs the extra web")

from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute

from cuarl.local.threads import served
from cuarl.web import connection, refusal
from cuarl.web.guard import application, json_body, json_object, json_response
from cuarl.web.refusal import Refusal
from cuarl.web.rules import Rules, Token, is_loopback

RULES = Rules(say=refusal.detail, body_bytes=1000, body_s=0.3)
HERE = "http://127.0.0.1"


class Places:
    """Handlers that do what servers do, and what they noticed."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def app(self, rules=RULES):
        async def echo(request):
            return json_response(await json_body(request, empty=request.method == "GET"))

        async def thing(request):
            return json_response(await json_object(request))

        async def fail(request):
            raise ZeroDivisionError("a fault of the server's own, marker-71")

        async def refuse(request):
            raise Refusal("not here", status=409, param="x", code="c")

        async def wait(request):
            self.seen.append("began")
            try:
                await anyio.sleep(30)
            finally:
                self.seen.append("given up")

        async def large(request):
            self.seen.append("answered")
            return PlainTextResponse("x" * (64 << 20))

        async def talk(socket):
            await socket.accept()
            await socket.send_text("in")
            await socket.close()

        routes = [
            Route("/", echo),
            Route("/echo", echo, methods=["POST"]),
            Route("/thing", thing, methods=["POST"]),
            Route("/fail", fail),
            Route("/refuse", refuse),
            Route("/wait", wait),
            Route("/large", large),
            WebSocketRoute("/talk", talk),
        ]
        return application(routes, rules)


def ask(app, method, path, **options):
    async def body():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=options.pop("base_url", HERE)) as client:
            return await client.request(method, path, **options)

    return anyio.run(body)


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("localhost", True), ("localhost:80", True), ("a.localhost", True), ("127.0.0.1", True), ("127.9.9.9:1", True),
        ("[::1]:80", True), ("::1", True), ("LOCALHOST", True), ("0.0.0.0", False), ("", False), ("::", False),
        ("evil.com", False), ("127.0.0.1.evil.com", False), ("localhost.evil.com", False), ("192.168.1.5", False),
        ("evil.com@127.0.0.1", True), ("127.0.0.1@evil.com", False), ("[::", False), ("[evil]", False), ("a b", False),
    ],
)  # fmt: skip
def test_names_of_this_machine(host, inside):
    assert is_loopback(host) is inside


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.com"}, {"host": "127.0.0.1.evil.com"}, {"host": "0.0.0.0:80"}, {"origin": "http://evil.com"},
        {"origin": "null"}, {"origin": "http://localhost:3000"}, {"origin": "http://127.0.0.1:81"}, {"origin": ""},
        {"origin": "http://[", }, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
    ],
)  # fmt: skip
def test_pages_elsewhere_are_refused_whatever_they_ask_for(headers):
    for path in ("/", "/absent"):
        reply = ask(Places().app(), "GET", path, headers=headers)
        assert reply.status_code == 403 and "answers to" in reply.json()["detail"]
        assert "access-control-allow-origin" not in reply.headers


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def test_a_link_of_another_site_leads_to_pages_and_to_nothing_else():
    shown = Places().app(replace(RULES, linked=True))
    assert ask(shown, "GET", "/", headers=LINK).status_code == 200
    assert ask(Places().app(), "GET", "/", headers=LINK).status_code == 403
    for other in (
        {"sec-fetch-dest": "iframe"},
        {"sec-fetch-dest": "image"},
        {"sec-fetch-mode": "cors"},
        {"sec-fetch-mode": "no-cors"},
        {"origin": "http://evil.com"},
        {"origin": "null"},
        {"host": "evil.com"},
    ):
        assert ask(shown, "GET", "/", headers=LINK | other).status_code == 403, other
    assert ask(shown, "POST", "/echo", json=1, headers=LINK).status_code == 403
    assert ask(shown, "POST", "/echo", json=1, headers=LINK | {"origin": "null"}).status_code == 403


def test_own_pages_and_programs_are_let_in():
    for headers in ({}, {"origin": HERE}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}):
        assert ask(Places().app(), "GET", "/", headers=headers).status_code == 200
    named = replace(RULES, hosts=frozenset({"agents.example"}))
    assert ask(Places().app(named), "GET", "/", headers={"host": "agents.example:8000"}).status_code == 200
    assert ask(Places().app(named), "GET", "/", headers={"host": "other.example"}).status_code == 403
    open_ = replace(RULES, local=False, token=Token("t"))
    headers = {"host": "anything.example", "authorization": "Bearer t"}
    assert ask(Places().app(open_), "GET", "/", headers=headers).status_code == 200


@pytest.mark.parametrize("header", ["authorization", "x-key"])
def test_token_is_asked_for_everywhere_but_where_it_is_said(header):
    rules = replace(RULES, token=Token("sesame-84", header), open={"/"}.__contains__)
    right = "Bearer sesame-84" if header == "authorization" else "sesame-84"
    app = Places().app(rules)
    assert ask(app, "GET", "/").status_code == 200
    assert ask(app, "POST", "/echo", json=1, headers={header: right}).json() == 1
    for wrong in ("", "sesame", right + "x", "Basic sesame-84", "Bearer", "ä".encode(), b"\xff\xfe"):
        reply = ask(app, "POST", "/echo", json=1, headers={header: wrong})
        assert (
            reply.status_code == 401
            and "sesame" not in reply.text
            and header in reply.json()["detail"].lower() + header
        )


def test_every_error_is_json_in_the_words_of_the_protocol():
    for say, path in (
        (refusal.detail, ("detail",)),
        (refusal.message, ("message",)),
        (refusal.openai_error, ("error", "message")),
    ):
        app = Places().app(replace(RULES, say=say))
        for method, at, status in (
            ("GET", "/absent", 404),
            ("DELETE", "/echo", 405),
            ("OPTIONS", "/", 405),
            ("POST", "/thing", 415),
            ("GET", "/refuse", 409),
        ):
            reply = ask(app, method, at)
            found = reply.json()
            for name in path:
                found = found[name]
            assert reply.status_code == status and isinstance(found, str) and found


def test_fault_of_the_server_tells_its_client_nothing_of_the_inside(caplog):
    with (
        served(Places().app()) as url,
        httpx.Client(base_url=url) as client,
        caplog.at_level(logging.CRITICAL, "uvicorn"),
    ):
        reply = client.get("/fail")
        assert reply.status_code == 500 and reply.json() == {"detail": "the server failed; its log says why"}
        # the connection is given up with it: a client that kept it would have its next request reset
        assert reply.headers["connection"] == "close"
        assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": NaN}', b"[1e999]", b"1" * 900, b"[" * 900, b'{"a":' * 150, b'"\\ud800"', b"\xff\xfe", b"{", b"nul",
        json.dumps("x").encode("utf-16"),
    ],
)  # fmt: skip
def test_body_that_is_no_json_is_refused_by_name(body):
    reply = ask(Places().app(), "POST", "/echo", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400 and reply.json()["detail"].startswith("the body is no JSON: ")


def test_content_type_is_asked_for_since_forms_of_pages_have_another():
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
    ):
        assert ask(Places().app(), "POST", "/echo", content=b"1", headers={"content-type": kind}).status_code == 415
    assert (
        ask(
            Places().app(), "POST", "/echo", content=b"1", headers={"content-type": "Application/JSON; charset=utf-8"}
        ).json()
        == 1
    )
    assert ask(Places().app(), "POST", "/thing", json=[1]).status_code == 400


def test_bodies_are_bounded_however_they_are_sent():
    async def parts():
        for _ in range(3):
            yield b" " * 400

    kind = {"content-type": "application/json"}
    with served(Places().app()) as url, httpx.Client(base_url=url) as client:
        assert client.post("/echo", content=b" " * 1001, headers=kind).status_code == 413
        assert client.post("/echo", content=iter([b" " * 400] * 3), headers=kind).status_code == 413
        assert client.post("/echo", content=iter([b"[", b"1", b"]"]), headers=kind).json() == [1]
        assert client.post("/absent", content=b" " * 1001, headers=kind).status_code == 413
        assert client.get("/").status_code == 200


@contextmanager
def connected(url, sent):
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=20) as sock:
        sock.sendall(sent)
        yield sock


def everything(sock):
    found = b""
    while data := sock.recv(65536):
        found += data
    return found


HEAD = b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def test_body_that_does_not_come_is_not_waited_for():
    with served(Places().app()) as url:
        for head in (HEAD + b"Content-Length: 9\r\n\r\n1", HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"):
            with connected(url, head) as sock:
                assert sock.recv(65536).startswith(b"HTTP/1.1 408 ")


def test_headers_that_do_not_come_end_the_connection(monkeypatch):
    monkeypatch.setattr(connection, "HEADERS_S", 0.2)
    with served(Places().app()) as url:
        for begun in (b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
            with connected(url, begun) as sock:
                assert everything(sock) == b""
        # one byte after the other does not help
        with connected(url, b"GET ") as sock:
            sock.settimeout(0.02)
            with pytest.raises((ConnectionError, StopIteration)):
                for _ in range(2000):
                    sock.sendall(b"/")
                    try:
                        if not sock.recv(1):
                            raise StopIteration
                    except TimeoutError:
                        continue
        # after a whole request, a second one that does not come to its end
        with connected(url, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HT") as sock:
            sock.sendall(b"TP/1.1\r\nHos")
            assert everything(sock).count(b"HTTP/1.1") == 1


def test_body_that_goes_on_after_its_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(connection, "LINGER_S", 0.2)
    with served(Places().app()) as url, connected(url, HEAD + b"Content-Length: 99999999\r\n\r\n") as sock:
        assert sock.recv(65536).startswith(b"HTTP/1.1 413 ")
        with pytest.raises(OSError):
            for _ in range(100_000):
                sock.sendall(b" " * 1000)
                time.sleep(0.001)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n", b"GET / FTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 70_000, HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n1",
    ],
)  # fmt: skip
def test_what_is_no_http_is_answered_with_json_and_the_connection_ends(sent, caplog):
    with served(Places().app()) as url, connected(url, sent) as sock, caplog.at_level(logging.CRITICAL, "uvicorn"):
        head, _, body = everything(sock).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ") and json.loads(body) == {"detail": "Invalid HTTP request received."}


def test_what_is_done_for_a_client_ends_when_it_leaves():
    places = Places()
    with served(places.app()) as url:
        with connected(url, b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
            until(lambda: "began" in places.seen)
        until(lambda: "given up" in places.seen)
        assert httpx.get(url).status_code == 200


def test_client_that_does_not_read_is_as_good_as_gone(monkeypatch):
    monkeypatch.setattr(connection, "STALLED_S", 0.2)
    places = Places()
    with served(places.app()) as url, connected(url, b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as sock:
        until(lambda: "answered" in places.seen)
        time.sleep(1)
        assert len(everything(sock)) < 64 << 20
        assert len(httpx.get(f"{url}/large").content) == 64 << 20


def until(true):
    for _ in range(1000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("POST", "Content-Length: 2"),
        ("POST", "Transfer-Encoding: chunked"),
        ("DELETE", "X-Y: 1"),
        ("HEAD", "X-Y: 1"),
        ("GET", "Content-Length: 2"),
        ("GET", "Transfer-Encoding: chunked"),
        ("GET", "\r\n".join(f"X-{n}: 1" for n in range(200))),
        ("GET", f"X-Y: {'1' * 9000}"),
    ],
    ids=lambda value: value[:20],
)
def test_what_only_looks_like_the_opening_of_a_websocket_is_answered(method, more):
    pytest.importorskip("websockets")
    asked = f"{method} / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{more}\r\n\r\n[]"
    with served(Places().app(), websockets=True) as url, connected(url, asked.encode()) as sock:
        head, _, body = everything(sock).partition(b"\r\n\r\n")  # and then the connection ends
    assert head.split()[1] in (b"400", b"405") and (method == "HEAD" or body)


def test_websockets_obey_the_same_rules():
    connect = pytest.importorskip("websockets.sync.client").connect
    from websockets.exceptions import InvalidStatus

    rules = replace(RULES, token=Token("t"))
    with served(Places().app(rules), websockets=True) as url:
        where = url.replace("http", "ws") + "/talk"
        with connect(where, additional_headers={"Authorization": "Bearer t"}) as talk:
            assert talk.recv() == "in"
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer t", "Origin": "http://evil.com"}):
            with pytest.raises(InvalidStatus, match="403"), connect(where, additional_headers=headers):
                pass
