"""Pages that replace themselves while they load, and while they are read: the one that is there in the end is shown and
judged."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest

from cuarl.env.browser import input as page_input
from cuarl.env.browser import tabs as tabs_module
from cuarl.env.browser.loading import load
from cuarl.env.browser.options import BrowserOptions, Fence, origin_of
from cuarl.env.browser.web import WebEnv
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key

pytestmark = pytest.mark.integration

OFTEN = 4
COUNTED = (
    f"<script>const n = Number(sessionStorage.n ?? 0); document.title = n; "
    f"if (n < {OFTEN}) {{{{ sessionStorage.n = n + 1; {{}} }}}}</script>"
)
NEXT = {
    "reload": COUNTED.format("location.reload()"),
    "reload on load": COUNTED.format("onload = () => location.reload()"),
    "href": "<script>location.href = '{next}'</script>",
    "href on load": "<script>onload = () => location.href = '{next}'</script>",
    "href elsewhere": "<script>location.href = '{elsewhere}'</script>",
    "replace, soon": "<script>setTimeout(() => location.replace('{elsewhere}'), 20)</script>",
    "refresh": "<meta http-equiv=refresh content='0; url={next}'>",
    "redirect": None,
}
"""By name the means by which a page replaces itself; {elsewhere} is at the site's other name, in another process."""
ENDLESS = {
    "endless reload": "<script>onload = () => setTimeout(() => location.reload(), 30)</script>",
    "endless replace": "<script>setTimeout(() => location.replace('{elsewhere}'), 60)</script>",
}


class Site(BaseHTTPRequestHandler):
    """``/NAME/N``: the N-th page, which replaces itself until the last; one that reloads counts for itself."""

    def do_GET(self):
        name, number = self.path.strip("/").replace("%20", " ").split("/")
        self.server.asked.append(self.path)
        port, following = self.server.server_port, f"/{name}/{int(number) + 1}".replace(" ", "%20")
        other = "localhost" if self.headers["Host"].startswith("127") else "127.0.0.1"
        goes_on = name in ENDLESS or int(number) < OFTEN
        script = {**NEXT, **ENDLESS}[name] if goes_on else ""
        self.send_response(302 if script is None else 200)
        if script is None:
            self.send_header("Location", following)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        filled = (script or "").replace("{next}", following).replace("{elsewhere}", f"http://{other}:{port}{following}")
        self.wfile.write(f"<!doctype html><title>{number}</title>{filled}<body><p>page {number}</p>".encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def visit(with_browser):
    """Has work done with an environment that was sent to the first page of that name."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.asked = []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    addresses = [f"http://{name}:{server.server_port}" for name in ("127.0.0.1", "localhost")]

    def run(name, work, **options):
        async def play(browser):
            fence = Fence((), frozenset(map(origin_of, addresses)))
            env = WebEnv(browser, BrowserOptions(viewport=(200, 200), fence=fence, settle="frame", **options))
            try:
                url = f"{addresses[0]}/{name.replace(' ', '%20')}/0"
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
                await work(env)
            finally:
                await env.close()

        with_browser(play)
        return server.asked

    yield run
    server.shutdown()
    server.server_close()


async def until(env, title):
    """The state, once the page of that title is there."""
    with anyio.fail_after(30):
        while (state := await env.state())["title"] != title:
            await anyio.sleep(0.02)
    return state


@pytest.mark.parametrize("name", NEXT)
def test_b01_the_last_page_is_read_and_acted_on(visit, name):
    reloads = name.startswith("reload")
    last = "0" if reloads else str(OFTEN)

    async def work(env):
        state = await until(env, str(OFTEN))
        assert (state["url"].rpartition("/")[2], state["text"].strip()) == (last, f"page {last}")
        assert (await env.step(Click(x=20, y=20))).observation.text["url"] == state["url"]

    # each page was asked for once: what is asked again is the page, not its server
    asked = [path.rpartition("/")[2] for path in visit(name, work) if path.count("/") == 2]
    assert asked == ["0"] * (OFTEN + 1) if reloads else list("01234")


@pytest.mark.parametrize("name", ENDLESS)
def test_b01_a_page_that_replaces_itself_for_ever_is_read_between(visit, name):
    async def work(env):
        for _ in range(3):
            state = await env.state()
            # address, title and text are those of one page
            assert state["url"].rpartition("/")[2] == state["title"]
            assert state["text"].strip() == f"page {state['title']}"
            await env.step(Click(x=20, y=20))

    visit(name, work)


class Deaf:
    """A page of which some calls are never answered, though they are carried out."""

    def __init__(self, page, *deaf):
        self._page, self._deaf = page, deaf

    def __getattr__(self, name):
        call = getattr(self._page, name)
        if name not in self._deaf:
            return call

        async def unanswered(*args, **kwargs):
            await call(*args, **kwargs)
            await anyio.sleep_forever()

        return unanswered


def test_b01_a_page_is_loaded_when_it_says_so_itself(visit):
    async def work(env):
        page = env._tabs.page
        with anyio.fail_after(30):
            await load(Deaf(page, "goto"), page.url.replace("/href/4", "/refresh/4"))
        assert (page.url.rpartition("/")[0].rpartition("/")[2], await page.title()) == ("refresh", "4")

    assert visit("href", work)[-1] == "/refresh/4"


def test_a_page_that_can_not_be_reached_is_not_loaded(visit):
    async def work(env):
        page = env._tabs.page
        with pytest.raises(EnvError, match="ERR_"):
            await env._tabs.go(page.url.rpartition(":")[0] + ":9/")
        with anyio.move_on_after(1) as waited:
            await load(Deaf(page, "goto"), "about:blank")
        assert waited.cancelled_caught

    visit("href", work)


def test_b01_what_a_page_did_not_answer_it_is_asked_again(visit):
    async def work(env):
        calls = []

        async def read(page):
            calls.append(page)
            return await Deaf(page, *(["title"] if len(calls) < 3 else [])).title()

        assert await env._tabs.reading(read, what="reading") == str(OFTEN)
        assert len(calls) == 3

    visit("href", work)


def test_a_page_that_answers_nothing_is_an_error_within_the_bound(visit):
    async def work(env):
        async def read(page):
            await anyio.sleep_forever()

        with pytest.raises(EnvError, match="does not answer within 3 s"):
            await env._tabs.reading(read, what="reading")

    visit("redirect", work, answer_s=3)


def test_a_tab_that_can_not_be_closed_is_shown_no_more(visit, monkeypatch):
    monkeypatch.setattr(tabs_module, "NAVIGATION_S", 0.3)

    async def work(env):
        tabs, first = env._tabs, env._tabs.page
        await first.evaluate("void window.open(location.href)")
        with anyio.fail_after(30):
            while tabs.count < 2:
                await anyio.sleep(0.02)
        tabs._pages[-1] = Deaf(tabs._pages[-1], "close")
        await env.step(Key(keys=("ctrl", "w")))
        assert (tabs.count, tabs.page) == (1, first)

    visit("href", work)


def test_b01_an_action_that_is_never_acknowledged_is_not_repeated_and_the_step_says_so(visit, monkeypatch):
    act, silent = page_input._act, [True, False, True, True]

    async def unanswered(*args):
        await act(*args)
        if silent.pop(0):
            await anyio.sleep_forever()

    monkeypatch.setattr(page_input, "_act", unanswered)

    async def work(env):
        await env._tabs.page.evaluate("n = 0, addEventListener('click', () => n += 1), 1")
        for unknown in (True, False, True):
            step = await env.step(Click(x=20, y=20))
            assert step.info.get("unknown_outcome", False) is unknown
        assert await env._tabs.page.evaluate("n") == 3
        with pytest.raises(EnvError, match="two actions in a row"):
            await env.step(Click(x=20, y=20))

    visit("href", work, answer_s=3)
