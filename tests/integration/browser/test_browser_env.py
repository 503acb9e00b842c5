"""Real pages in a real Chromium: the contract, what pages do by themselves, and what is done about faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import anyio
import pytest

from cuarl.env.browser.browser import Browser
from cuarl.env.browser.miniwob import MiniWoBEnv
from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.env.conformance import CHECKS
from cuarl.env.leases import Ledger, sweep
from cuarl.env.processes import marked
from cuarl.errors import EnvError
from cuarl.settings import Settings
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click, Drag, Finish, Key, Scroll, TypeText, Wait

pytestmark = pytest.mark.integration

SMALL = (200, 200)
COVERED = 6
"""A seed at which click-test-2 puts one button over the middle of the other."""


def miniwob(page):
    return TaskInstance(task_id=page, goal="g", env="browser", preset={"page": page}, checks=(Check(path="x"),))


def task(url, **preset):
    return TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url, **preset})


@pytest.fixture
def page(tmp_path):
    """Writes a page, and gives its address and the options to see it with."""

    def write(body, **options):
        path = tmp_path / "page.html"
        path.write_text(f"<!doctype html><title>Page</title><body style='margin:0'>{body}", encoding="utf-8")
        fence = Fence((tmp_path.resolve(),))
        return path.as_uri(), BrowserOptions(viewport=SMALL, fence=fence, settle="frame", **options)

    return write


def test_pages_keep_the_contract(with_browser, page):
    url, options = page("<button style='width:60px;height:60px'>x</button>")

    async def work(browser):
        async def make_miniwob():
            return MiniWoBEnv(browser, BrowserOptions())

        async def make_web():
            return WebEnv(browser, options)

        for check in CHECKS:
            await check(make_miniwob, miniwob("click-button"))
            await check(make_web, task(url))

    with_browser(work)


@pytest.mark.parametrize(
    ("page_name", "seed"),
    [(name, 3) for name in ("enter-text", "drag-box", "use-slider", "copy-paste", "choose-list", "click-menu")]
    + [("click-test-2", COVERED)],
)
def test_oracle_earns_the_pages_own_reward(with_browser, page_name, seed):
    async def work(browser):
        env = MiniWoBEnv(browser, BrowserOptions(scale=2))
        try:
            first = await env.reset(miniwob(page_name), seed)
            assert (first.screenshot.width, first.screenshot.height) == (320, 420)
            assert first.text["goal"]
            for _ in range(20):
                action = await env.ask_oracle()
                assert not isinstance(action, Finish)
                result = await env.step(action)
                if result.terminated:
                    break
            assert result.reward == 1
            assert (await env.state())["miniwob"]["reward"] == 1
            assert await env.ask_oracle() == Finish(success=True)
        finally:
            await env.close()

    with_browser(work)


def test_same_seed_same_pixels_and_instruction_can_be_masked(with_browser):
    async def work(browser):
        async def first(seed, **options):
            env = MiniWoBEnv(browser, BrowserOptions(), **options)
            try:
                shown = await env.reset(miniwob("click-button"), seed)
                return shown.text["goal"], shown.screenshot
            finally:
                await env.close()

        (goal, a), (same, b), (other, c) = await first(1), await first(1), await first(2)
        assert (goal, a.digest) == (same, b.digest)
        assert (goal, a.digest) != (other, c.digest)
        told, masked = await first(1, instruction=False)
        assert told == goal
        strip = masked.image.crop((0, 0, 160, 45))
        assert len(strip.getcolors()) == 1, "one colour: no letters"
        assert masked.image.crop((0, 60, 160, 210)).tobytes() == a.image.crop((0, 60, 160, 210)).tobytes()

    with_browser(work)


def test_a_kept_page_starts_anew_as_if_it_were_loaded(with_browser):
    """What was typed, selected or pointed at in one episode is not there in the next."""

    async def first(browser, page, seed, reset, *actions):
        env = MiniWoBEnv(browser, BrowserOptions(reset=reset))
        try:
            shown = await env.reset(miniwob(page), seed)
            for action in actions:
                await env.step(action)
            return shown.screenshot.digest, shown.text["goal"], (await env.state())["miniwob"]["done"], env._context
        finally:
            await env.close()

    async def work(browser):
        busy = (Click(x=40, y=70), TypeText(text="left over"), Key(keys=("ctrl", "a")), Click(x=120, y=150))
        for page in ("enter-text", "click-button"):
            *loaded, _ = await first(browser, page, 7, "load")
            *_, context = await first(browser, page, 5, "script", *busy)
            *kept, again = await first(browser, page, 7, "script")
            assert kept == loaded
            assert again is context, "the page was not loaded in a new context"

        *left, context = await first(browser, "click-test", 3, "script", Key(keys=("alt", "Left")))
        assert left[2], "the page was left"
        *kept, again = await first(browser, "click-test", 4, "script")
        *loaded, _ = await first(browser, "click-test", 4, "load")
        assert kept == loaded

    with_browser(work)


def test_a_page_that_died_while_it_waited_is_replaced_and_one_with_a_mishap_is_not_kept(with_browser):
    async def work(browser):
        def new():
            return MiniWoBEnv(browser, BrowserOptions(reset="script"))

        env = new()
        await env.reset(miniwob("click-test"), 1)
        context = env._context
        await env.close()
        await context.close()
        env = new()
        try:
            await env.reset(miniwob("click-test"), 1)
            assert env._context is not context
            assert (await env.step(await env.ask_oracle())).reward == 1
            context = env._context
            await env._tabs.page.evaluate("alert('mishap')")
        finally:
            await env.close()
        assert context.pages == [], "it was closed"

    with_browser(work)


def test_a_kept_page_is_closed_once_it_served_its_number(with_browser, monkeypatch):
    monkeypatch.setattr("cuarl.env.browser.miniwob.MOST_EPISODES", 2)

    async def work(browser):
        contexts = []
        for seed in range(3):
            env = MiniWoBEnv(browser, BrowserOptions(reset="script", scale=2))
            await env.reset(miniwob("click-test"), seed)
            contexts.append(env._context)
            await env.close()
        assert contexts[0] is contexts[1]
        assert contexts[1] is not contexts[2]
        assert contexts[1].pages == []

    with_browser(work)


def test_leaving_the_page_ends_the_episode_as_a_failure(with_browser):
    async def work(browser):
        env = MiniWoBEnv(browser, BrowserOptions())
        try:
            await env.reset(miniwob("click-test"), 1)
            left = await env.step(Key(keys=("alt", "Left")))
            assert (left.terminated, left.reward) == (True, -1)
            assert (await env.state())["miniwob"]["reason"] == "the page was left"
        finally:
            await env.close()

    with_browser(work)


def test_dialogs_tabs_and_downloads_are_told_and_do_not_block(with_browser, page):
    url, options = page(
        "<button style='width:50px;height:50px' onclick='document.title=confirm(`sure?`)'>a</button>"
        "<button style='width:50px;height:50px' onclick='window.open(`about:blank`)'>b</button>"
        "<a download='list.txt' href='data:text/plain,x' style='position:absolute;left:110px;top:10px'>file</a>"
    )

    async def work(browser):
        env = WebEnv(browser, options)
        try:
            await env.reset(task(url), 0)
            asked = await env.step(Click(x=20, y=20))
            assert asked.info["dialogs"] == ["confirm: sure?"]
            assert asked.observation.text["note"] == 'The page asked in a dialog, which was answered by OK: "sure?"'
            assert (await env.state())["title"] == "true"
            await env.step(Click(x=120, y=20))
            await env.step(Wait(seconds=0.3))
            assert (await env.state())["downloads"] == ["list.txt"]
            before = (await env.step(Wait(seconds=0))).observation.screenshot.digest
            told = [(await env.step(Click(x=70, y=20))).observation.text.get("note")]
            opened = await env.step(Wait(seconds=0.3))
            assert (await env.state())["tabs"] == 2
            told.append(opened.observation.text.get("note"))
            assert "A new tab was opened, and is shown; 2 are open." in told
            assert opened.observation.screenshot.digest != before
            told = [(await env.step(Key(keys=("ctrl", "w")))).observation.text.get("note")]
            back = await env.step(Wait(seconds=0.2))
            assert (await env.state())["tabs"] == 1
            assert "A tab was closed; 1 is open." in [*told, back.observation.text.get("note")]
            assert back.observation.text["url"] == url
        finally:
            await env.close()

    with_browser(work)


def test_unicode_is_typed_and_episodes_have_clipboards_of_their_own(with_browser, page):
    url, options = page("<input style='width:180px;height:30px'>")

    async def work(browser):
        envs = [WebEnv(browser, options) for _ in range(2)]
        try:
            for env, text in zip(envs, ("Grüße 你好 🙂", "other"), strict=True):
                await env.reset(task(url, read={"value": "document.querySelector('input').value"}), 0)
                for action in (
                    Click(x=20, y=15),
                    TypeText(text=text),
                    Key(keys=("ctrl", "a")),
                    Key(keys=("ctrl", "c")),
                ):
                    await env.step(action)
            await envs[0].step(Key(keys=("End",)))
            await envs[0].step(Key(keys=("ctrl", "v")))
            assert (await envs[0].state())["read"]["value"] == "Grüße 你好 🙂" * 2
        finally:
            for env in envs:
                await env.close()

    with_browser(work)


def test_wheel_and_drag_reach_the_page(with_browser, page):
    url, options = page(
        "<div style='height:900px' onmousedown='n=0' onmousemove='n++' onmouseup='document.title=`drag ${n>2}`'></div>"
    )

    async def work(browser):
        env = WebEnv(browser, options)
        try:
            await env.reset(task(url, read={"y": "scrollY"}), 0)
            await env.step(Drag(path=((10, 10), (100, 100))))
            assert (await env.state())["title"] == "drag true"
            await env.step(Scroll(direction="down", amount=150))
            await env.step(Wait(seconds=0.2))
            assert (await env.state())["read"]["y"] == 150
        finally:
            await env.close()

    with_browser(work)


def test_server_is_set_up_and_its_state_read(with_browser, site):
    shop = site()
    shop.shop["cart"] = ["left behind"]
    options = BrowserOptions(viewport=SMALL, fence=Fence((), frozenset({shop.url})), settle="frame")

    async def work(browser):
        env = WebEnv(browser, options)
        try:
            await env.reset(task(shop.url, reset=f"{shop.url}/reset", state_url=f"{shop.url}/state"), 0)
            assert shop.posts == ["/reset"]
            assert (await env.state())["app"] == {"cart": []}
        finally:
            await env.close()

    with_browser(work)


def test_pages_stay_inside_the_fence(with_browser, site):
    shop, elsewhere = site(), site()
    shop.elsewhere = f"{elsewhere.url}/stolen"
    options = BrowserOptions(viewport=SMALL, fence=Fence((), frozenset({shop.url})), settle="frame")

    async def work(browser):
        env = WebEnv(browser, options)
        try:
            await env.reset(task(shop.url), 0)
            tabs = env._ready()
            for script in (
                f"location.href = '{elsewhere.url}/direct'",
                f"fetch('{elsewhere.url}/fetch').catch(() => 0)",
                "location.href = 'file:///etc/passwd'",
            ):
                await tabs.run(f"() => {{ {script} }}")
                result = await env.step(Wait(seconds=0.2))
                assert result.observation.text["url"].startswith(shop.url)
            await tabs.run("() => { location.href = '/away' }")
            result = await env.step(Wait(seconds=0.3))
            assert result.observation.text["url"].startswith(shop.url)
            assert elsewhere.url in "".join((await env.state())["blocked"])
            assert [path for path in elsewhere.seen if path in ("/direct", "/fetch")] == []
        finally:
            await env.close()

    with_browser(work)


def test_hung_page_ends_within_its_time_and_siblings_go_on(with_browser, page):
    url, options = page("<button style='width:60px;height:60px' onclick='while(1);'>x</button>", answer_s=1.5)

    async def work(browser):
        hung, sibling = WebEnv(browser, options), MiniWoBEnv(browser, BrowserOptions())
        await hung.reset(task(url), 0)
        await sibling.reset(miniwob("click-test"), 1)
        with anyio.fail_after(30):
            with pytest.raises(EnvError, match="does not answer"):
                await hung.step(Click(x=20, y=20))
                await hung.step(Wait(seconds=0))
            await hung.close()
            assert (await sibling.step(await sibling.ask_oracle())).reward == 1
        await sibling.close()

    with_browser(work)


def test_killed_browser_is_an_environment_error_and_the_next_episode_has_a_new_one(with_browser):
    async def work(browser):
        env = MiniWoBEnv(browser, BrowserOptions())
        await env.reset(miniwob("click-test"), 1)
        before = browser.mark
        for pid in marked(before):
            os.kill(pid, signal.SIGKILL)
        with anyio.fail_after(30):
            with pytest.raises(EnvError):
                for _ in range(3):
                    await env.step(Click(x=1, y=1))
            await env.close()
        again = MiniWoBEnv(browser, BrowserOptions())
        await again.reset(miniwob("click-test"), 1)
        assert browser.mark != before
        assert (await again.step(await again.ask_oracle())).reward == 1
        await again.close()

    with_browser(work)


def test_closed_browser_starts_anew_with_the_next_episode(tmp_path):
    async def work():
        browser = Browser(Ledger(tmp_path))
        for _ in range(2):
            env = MiniWoBEnv(browser, BrowserOptions())
            await env.reset(miniwob("click-test"), 1)
            await env.close()
            await browser.close()
            await browser.close()

    anyio.run(work)
    assert list(tmp_path.iterdir()) == []


def test_browser_of_a_killed_process_is_found_and_ended(tmp_path):
    ledger = Ledger(tmp_path)
    script = f"""
        import anyio, sys, time
        from pathlib import Path
        from cuarl.env.browser.browser import Browser
        from cuarl.env.browser.options import BrowserOptions
        from cuarl.env.leases import Ledger
        async def main():
            browser = Browser(Ledger(Path({str(ledger.folder)!r})))
            await browser.context(BrowserOptions())
            print("up", flush=True)
            await anyio.sleep(600)
        anyio.run(main)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "up\n"
        child.kill()
    (lease,) = ledger.leases()
    assert lease.state == "orphaned"
    anyio.run(sweep, lease, Settings())
    assert ledger.leases() == []
    assert marked(lease.id) == []
    assert not os.path.exists(lease.detail["folder"])  # noqa: PTH110
