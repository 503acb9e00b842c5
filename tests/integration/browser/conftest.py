"""A browser for tests, where there is one."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import pytest
from anyio.from_thread import start_blocking_portal

from cuarl.env.browser.browser import Browser, find_program
from cuarl.env.leases import Ledger
from cuarl.errors import PrerequisiteError


def why_not() -> str:
    """What a browser's tests lack here; empty if nothing."""
    missing = [name for name in ("playwright", "miniwob") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed: pip install 'cuarl[browser]'"
    try:
        find_program()
    except PrerequisiteError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def needs_browser():
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def portal():
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return Ledger(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(scope="module")
def shared(portal, ledger):
    browser = None if why_not() else Browser(ledger)
    yield browser
    if browser is not None:
        portal.call(browser.close)
        assert ledger.leases() == []


@pytest.fixture
def with_browser(portal, shared):
    """Runs a coroutine function with a browser, which starts once for all tests of a module."""

    def run(work: Callable[[Browser], Awaitable[None]]) -> None:
        portal.call(work, shared)

    return run


class Site(BaseHTTPRequestHandler):
    """A small shop with a state, and a page that leads away."""

    protocol_version = "HTTP/1.0"

    def do_GET(self):
        shop = self.server.shop
        if self.path == "/state":
            return self._answer(repr(shop).replace("'", '"'), "application/json")
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return None
        if self.path == "/buy":
            shop["cart"].append("lamp")
        return self._answer("<title>Shop</title><body style='margin:0'><h1>Lamps</h1>", "text/html")

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.shop["cart"] = []
        self.server.posts.append(self.path)
        self._answer("{}", "application/json")

    def _answer(self, text, kind):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        self.server.seen.append(self.path)


@pytest.fixture
def site():
    servers = []

    def start():
        server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
        server.shop, server.posts, server.seen, server.elsewhere = {"cart": []}, [], [], ""
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
