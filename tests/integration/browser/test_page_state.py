"""What checks read of a page: its text wherever it stands, and the values of scripts, or why there are none."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cuarl.env.browser.options import BrowserOptions, Fence, origin_of
from cuarl.env.browser.web import WebEnv
from cuarl.errors import RewardError
from cuarl.tasks.check import verdict
from cuarl.tasks.paths import Unreadable
from cuarl.tasks.task import Check, TaskInstance

pytestmark = pytest.mark.integration


@pytest.fixture
def state(with_browser, tmp_path):
    """The state of a page with this body."""

    def read(body, **preset):
        (tmp_path / "page.html").write_text(f"<!doctype html><title>Page</title><body>{body}", encoding="utf-8")
        url = (tmp_path / "page.html").as_uri()
        found = {}

        async def work(browser):
            env = WebEnv(browser, BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="frame"))
            try:
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url, **preset}), 0)
                found.update(await env.state())
            finally:
                await env.close()

        with_browser(work)
        return found

    return read


def shadow(mode, inner):
    return f"<div id=host></div><script>host.attachShadow({{mode:'{mode}'}}).innerHTML=`{inner}`</script>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>a</p><p>b <b>c</b></p>", "a\n\nb c"),
        (shadow("open", "<p>Order 4711 placed</p>"), "Order 4711 placed"),
        ("<div><template shadowrootmode=open>Order <b>4711</b> placed</template></div>", "Order 4711 placed"),
        ("Order <span><template shadowrootmode=open>4711</template></span> placed", "Order 4711 placed"),
        (
            "<div><template shadowrootmode=open>Order <slot></slot> <slot name=x>nothing</slot></template>4711</div>",
            "Order 4711 nothing",
        ),
        (
            "<div><template shadowrootmode=open><p>outer</p>"
            "<div><template shadowrootmode=open><p>inner</p></template></div></template></div><p>after</p>",
            "outer\ninner\nafter",
        ),
        ("<p>seen</p><div hidden><template shadowrootmode=open>hidden</template></div>", "seen"),
        ("<p style=visibility:hidden>no</p><p>" + shadow("open", "<p style=visibility:hidden>x</p>seen"), "seen"),
        ("<p>seen</p>" + shadow("open", "<style>p{color:red}</style><p style=display:none>x</p>"), "seen"),
        ("<p>outer</p><iframe srcdoc='<p>Order 4711 placed</p>'></iframe>", "outer\nOrder 4711 placed"),
        ("<p>outer</p><iframe style='display:none' srcdoc='hidden'></iframe>", "outer"),
        ("<iframe srcdoc='<iframe srcdoc=deep></iframe>'></iframe>", "deep"),
    ],
)
def test_b09_text_is_what_the_page_shows_wherever_it_stands(state, body, text):
    told = state(body)["text"]
    assert told.strip().replace("\n\n", "\n") == text.replace("\n\n", "\n")


def test_b09_a_check_holds_for_text_in_a_component_and_its_denial_does_not(state):
    found = state(shadow("open", "Order 4711 placed"))
    for op, value, holds in (("icontains", "order 4711 placed", True), ("not_contains", "Order 4711", False)):
        task = TaskInstance(task_id="t", goal="g", checks=(Check(path="text", op=op, value=value),))
        assert verdict(task, {}, found, volatile=("*",)).success is holds


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("document.title", "Page"),
        ("1 === 1", True),
        ("undefined", None),
        ("Promise.resolve([1, {a: undefined, b: 'x'}])", [1, {"b": "x"}]),
        ("const x = 3; x", 3),
    ],
)
def test_scripts_give_plain_values(state, script, value):
    assert state("", read={"it": script})["read"] == {"it": value}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("document.querySelector('#total').innerText", "TypeError"),
        ("nope + 1", "ReferenceError: nope is not defined"),
        ("1 +", "SyntaxError"),
        ("throw new Error('odd')", "odd"),
    ],
)
def test_a_script_with_an_error_gives_no_verdict_but_the_error(state, script, said):
    found = state("", read={"check0": script, "fine": "1"})
    assert found["read"]["fine"] == 1
    assert isinstance(found["read"]["check0"], Unreadable)
    for value in (True, None):
        task = TaskInstance(task_id="t", goal="g", checks=(Check(path="read.check0", value=value),))
        with pytest.raises(RewardError, match=said):
            verdict(task, {}, found, volatile=("*",))


class Strict(BaseHTTPRequestHandler):
    """A page that forbids eval, and shows a frame of its other name."""

    def do_GET(self):
        port = self.server.server_port
        inner = (
            "Order 4711 placed" if self.path == "/inner" else f"<iframe src='http://localhost:{port}/inner'></iframe>"
        )
        body = f"<title>Page</title><body>{inner}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Security-Policy", f"default-src 'self' http://localhost:{port}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_frames_of_other_sites_are_read_and_scripts_run_where_eval_is_forbidden(with_browser):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Strict)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    urls = [f"http://{name}:{server.server_port}" for name in ("127.0.0.1", "localhost")]

    async def work(browser):
        fence = Fence((), frozenset(map(origin_of, urls)))
        env = WebEnv(browser, BrowserOptions(fence=fence, settle="frame"))
        try:
            preset = {"url": urls[0], "read": {"first": "document.title", "second": "1 + 1"}}
            await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset=preset), 0)
            found = await env.state()
            assert found["read"] == {"first": "Page", "second": 2}
            assert "Order 4711 placed" in found["text"]
        finally:
            await env.close()

    try:
        with_browser(work)
    finally:
        server.shutdown()
        server.server_close()
