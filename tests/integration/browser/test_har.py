"""Recorded HTTP in the place of servers, a sign-in that is reused, and browsers that run elsewhere."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from cuarl.env.browser.har import read_folder
from cuarl.env.browser.options import BrowserOptions, Fence, TrafficOptions
from cuarl.env.browser.replay import Missing, Recordings
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Wait

pytestmark = pytest.mark.integration

SIZE = (320, 240)
PAGE = """<!doctype html><title>Shop</title><link rel="stylesheet" href="/style.css">
<h1>Shop</h1><form method="post" action="/buy?s={s}"><button>Buy</button></form>
<a href="/terms?s={s}">Terms</a><a href="/secret?s={s}">Secret</a><p>Cart: {cart}</p><p id="price"></p><p id="year"></p>
<script>
fetch('/price?s={s}', {{method: 'POST', body: ['item', 'lamp'].join('=')}})
  .then((r) => r.text()).then((t) => price.innerText = t);
year.innerText = new Date().getFullYear() + (new Date(0) instanceof Date ? '' : '?');</script>"""
STYLE = """body {margin: 0; font: 16px sans-serif} h1 {display: none}
a, button {position: absolute; left: 0; width: 100px} button {top: 0; height: 40px}
a {top: 50px; height: 40px} a + a {top: 100px} p {margin-left: 120px}"""


class Shop(BaseHTTPRequestHandler):
    """A cart for each session; buying is a POST that sends on to the page. Prices are another each time."""

    protocol_version = "HTTP/1.0"

    def do_GET(self):
        url = urlsplit(self.path)
        session = parse_qs(url.query).get("s", [""])[0]
        self.server.asked.append(self.path)
        cart = self.server.carts.setdefault(session, [])
        if url.path == "/state":
            return self._answer(json.dumps({"cart": cart, "session": session}), "application/json")
        if url.path == "/style.css":
            return self._answer(STYLE, "text/css")
        if url.path in ("/terms", "/secret"):
            links = f'<link rel="stylesheet" href="/style.css"><a>-</a><a href="/secret?s={session}">Secret</a>'
            return self._answer(f"<title>{url.path}</title>{links}<p>{len(cart)} bought</p>", "text/html")
        return self._answer(PAGE.format(s=session, cart=", ".join(cart) or "nothing"), "text/html")

    def do_POST(self):
        url = urlsplit(self.path)
        session = parse_qs(url.query).get("s", [""])[0]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.path == "/reset":
            self.server.carts.pop(session, None)
            return self._answer("{}", "application/json")
        if url.path == "/price":
            self.server.prices += 1
            return self._answer(f"{self.server.prices} Euro", "text/plain")
        self.server.carts.setdefault(session, []).append("lamp")
        self.send_response(303)
        self.send_header("Location", f"/?s={session}")
        self.send_header("Set-Cookie", "token=hidden-secret; HttpOnly")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _answer(self, text, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def shop():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.carts, server.prices, server.asked = {}, 0, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop():
        server.shutdown()
        server.server_close()

    server.stop = stop
    yield server
    server.server_close()


def task(shop, **more):
    preset = {
        "url": f"{shop.url}/?s=$SESSION",
        "reset": f"{shop.url}/reset?s=$SESSION",
        "state_url": f"{shop.url}/state?s=$SESSION",
    }
    return TaskInstance(task_id="shop/buy", goal="g", env="browser", preset=preset | more)


def options(shop, **traffic):
    return BrowserOptions(viewport=SIZE, fence=Fence((), frozenset({shop.url})), traffic=TrafficOptions(**traffic))


def replaying(shop, folder, after="writes", **more):
    return options(shop, recordings=Recordings(read_folder(folder), after), **more)


BUY, TERMS, SECRET = Click(x=20, y=20), Click(x=20, y=60), Click(x=20, y=110)


async def play(browser, options, instance, *actions, seed=3):
    """Digests of all screens, and the state at the end."""
    env = WebEnv(browser, options)
    try:
        screens = [(await env.reset(instance, seed)).screenshot.digest]
        await env.state()
        for action in actions:
            await env.step(action)
            # the price comes by a request of the page's own, and on a busy machine late
            screens.append((await env.step(Wait(seconds=0.3))).observation.screenshot.digest)
        return screens, await env.state()
    finally:
        await env.close()


def test_a_recorded_episode_is_the_same_with_the_server_off(with_browser, shop, tmp_path):
    async def work(browser):
        recorded, state = await play(browser, options(shop, record_to=tmp_path), task(shop), BUY, BUY, TERMS)
        assert state["app"]["cart"] == ["lamp", "lamp"]
        shop.stop()
        for _ in range(3):
            again, seen = await play(browser, replaying(shop, tmp_path), task(shop), BUY, BUY, TERMS)
            assert again == recorded
            assert seen["text"] == state["text"]
            assert seen["app"]["cart"] == ["lamp", "lamp"]
            assert seen["app"]["session"] in seen["url"], "the episode's own session"
            assert seen["app"]["session"] != state["app"]["session"]

    with_browser(work)


def test_a_verdict_is_of_what_the_episode_did_and_what_was_not_recorded_is_an_error(with_browser, shop, tmp_path):
    async def work(browser):
        await play(browser, options(shop, record_to=tmp_path), task(shop), BUY, TERMS)
        shop.stop()
        _, state = await play(browser, replaying(shop, tmp_path), task(shop), Wait(seconds=0))
        assert state["app"]["cart"] == [], "nothing was bought, although the recording bought something later"
        with pytest.raises(Missing, match=r"no answer to GET http://127.0.0.1:\d+/secret\?s=\$SESSION\n") as told:
            await play(browser, replaying(shop, tmp_path), task(shop), SECRET)
        assert str(tmp_path) in told.value.where
        with pytest.raises(Missing, match="after what this episode has done"):
            await play(browser, replaying(shop, tmp_path), task(shop), TERMS)
        with pytest.raises(Missing, match="no recording begins as this episode"):
            await play(browser, replaying(shop, tmp_path), task(shop, set={"stock": 0}), seed=3)
        with pytest.raises(Missing, match="no recording begins as this episode"):
            await play(browser, replaying(shop, tmp_path), task(shop), seed=4)

    with_browser(work)


def test_what_was_not_recorded_can_be_refused_or_asked_for(with_browser, shop, tmp_path):
    async def work(browser):
        await play(browser, options(shop, record_to=tmp_path), task(shop))
        env = WebEnv(browser, replaying(shop, tmp_path, unrecorded="block"))
        try:
            await env.reset(task(shop), 3)
            refused = await env.step(SECRET)
            assert "can't be reached from here" in refused.observation.text["note"]
        finally:
            await env.close()
        shop.asked.clear()
        seen = (await play(browser, replaying(shop, tmp_path, unrecorded="network"), task(shop), SECRET))[1]
        assert seen["title"] == "/secret"
        assert [path.partition("?")[0] for path in shop.asked] == ["/secret"]

    with_browser(work)


def test_loads_tell_states_apart_that_a_get_changes(with_browser, shop, tmp_path):
    async def work(browser):
        await play(browser, options(shop, record_to=tmp_path), task(shop), TERMS, SECRET)
        shop.stop()
        with pytest.raises(Missing, match="/secret"):
            await play(browser, replaying(shop, tmp_path, "loads"), task(shop), SECRET)
        assert (await play(browser, replaying(shop, tmp_path), task(shop), SECRET))[1]["title"] == "/secret"

    with_browser(work)


def test_a_recording_guards_what_was_sent_and_hidden(with_browser, shop, tmp_path):
    async def work(browser):
        await play(browser, options(shop, record_to=tmp_path), task(shop), BUY)

    with_browser(work)
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "hidden-secret" not in written
    assert "item=lamp" not in written, "what was sent is there as a digest"
    (file,) = tmp_path.glob("*.har")
    log = json.loads(file.read_text())["log"]
    assert {tuple(entry["request"]["headers"]) for entry in log["entries"]} == {()}
    assert file.name.startswith("shop_buy-seed3-")
