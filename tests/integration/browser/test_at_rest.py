"""When a page is looked at: once it is at rest, and not before the page that an action leads to is there."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cuarl.env.browser.options import BrowserOptions, Fence, origin_of
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key

pytestmark = pytest.mark.integration

LATE_S = 0.6
RED, BLACK = (255, 0, 0), (0, 0, 0)
HERE = Click(x=20, y=20)
LINK = "<a href='{}' style='display:block;width:100px;height:100px'>go</a>"
PAGES = {
    "/": LINK.format("/late"),
    "/late": "<style>body{background:#f00}</style>",
    "/nowhere": LINK.format("/empty"),
    "/spinner": LINK.format("#")
    + "<script>n=0;setInterval(()=>document.body.style.background=`hsl(${n+=7} 80% 50%)`,10)</script>",
    "/black": LINK.format("#") + "<style>*{color:#000;background:#000}</style>",
    "/delayed": "<body onclick='setTimeout(() => document.body.style.background = `#f00`, 100)'>"
    "<p style='height:300px'>",
}


class Site(BaseHTTPRequestHandler):
    """A page that comes late, one that never comes, one that never rests."""

    def do_GET(self):
        if self.path == "/late":
            time.sleep(LATE_S)
        page = PAGES.get(self.path, "")
        body = f"<!doctype html><title>{self.path}</title><style>body{{margin:0}}</style>{page}".encode()
        self.send_response(204 if self.path == "/empty" else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if self.path != "/empty":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def visit(with_browser):
    """Has work done with an environment that shows a page of the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"

    def run(path, work):
        async def play(browser):
            fence = Fence((), frozenset({origin_of(url)}))
            env = WebEnv(browser, BrowserOptions(viewport=(200, 200), fence=fence))
            try:
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url + path}), 0)
                await work(env)
            finally:
                await env.close()

        with_browser(play)

    yield run
    server.shutdown()
    server.server_close()


def corner(result):
    return result.observation.screenshot.image.getpixel((150, 150))


def test_c42_the_picture_is_that_of_the_next_page_though_it_comes_late(visit):
    async def work(env):
        shown = await env.step(HERE)
        assert shown.observation.text["url"].endswith("/late")
        assert (corner(shown), shown.info["changed"]) == (RED, True)
        back = await env.step(Key(keys=("alt", "Left")))
        assert corner(back) != RED
        assert corner(await env.step(Key(keys=("alt", "Right")))) == RED

    visit("/", work)


def test_c42_a_page_that_reacts_late_is_waited_for(visit):
    async def work(env):
        assert corner(await env.step(HERE)) == RED

    visit("/delayed", work)


def test_c42_a_page_that_never_comes_is_not_waited_for_twice(visit):
    async def work(env):
        shown = await env.step(HERE)
        assert not shown.info["changed"]
        assert shown.observation.text["url"].endswith("/nowhere")
        assert not env._tabs.leaving

    visit("/nowhere", work)


def test_c42_a_page_that_never_rests_is_shown_as_it_is(visit):
    async def work(env):
        assert (await env.step(HERE)).info["settled"] is False

    visit("/spinner", work)


def test_c42_a_black_page_is_no_fault(visit):
    async def work(env):
        for _ in range(2):
            assert corner(await env.step(HERE)) == BLACK

    visit("/black", work)
