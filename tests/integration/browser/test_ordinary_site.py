"""No episode fails for what ordinary sites do: a short visit in each test run, and a long one among the proofs."""

from __future__ import annotations

import random
import time
from collections import Counter

import anyio
import pytest

from cuarl.env.browser.browser import Browser
from cuarl.env.browser.options import BrowserOptions, Fence, origin_of
from cuarl.env.browser.web import WebEnv
from cuarl.env.leases import Ledger
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click, Key
from tests.integration.browser.ordinary_site import ELEMENTS, PAGES, SIDE, page, serving, visitor
from tests.integration.faults import Acting, roll_out

pytestmark = pytest.mark.integration

TURNS = 8
AT_ONCE = 4
EACH = 250


def visit(folder, episodes, *, settle):
    """That many episodes, each from the page of its number on."""

    async def work(addresses):
        fence = Fence((), frozenset(map(origin_of, addresses)))
        options = BrowserOptions(viewport=(SIDE, SIDE), fence=fence, settle=settle)
        browser = Browser(Ledger(folder))
        tasks = [
            TaskInstance(
                task_id=f"p{number % PAGES}",
                goal="g",
                env="browser",
                checks=(Check(path="tabs", op="ge", value=1),),
                preset={"url": f"{addresses[number % 2]}/p{number % PAGES}"},
            )
            for number in range(episodes)
        ]

        def agent(number, env):
            return Acting(env, visitor(random.Random(f"{settle}{number}"), TURNS))

        try:
            return await roll_out(
                tasks, lambda task: WebEnv(browser, options), agent, at_once=AT_ONCE, patience_s=60 + 10 * episodes
            )
        finally:
            await browser.close()

    with serving() as addresses:
        return anyio.run(work, addresses)


def test_every_element_of_the_site_is_on_some_page():
    pages = "".join(page(number, "http://localhost:1") for number in range(PAGES))
    assert all(text.partition("{")[0] in pages for text in ELEMENTS.values())


@pytest.mark.parametrize("settle", ["idle", "frame"])
def test_b01_episodes_on_an_ordinary_site_do_not_fail(settle, tmp_path):
    found = visit(tmp_path, 8, settle=settle)
    assert [t.failure for t in found if t.failure] == []
    assert all(t.verdict.success for t in found)


@pytest.fixture
def open_page(tmp_path):
    """Shows pages of the folder, each a body by its name, and has work done with an environment on the first."""

    def run(work, **bodies):
        for name, body in bodies.items():
            text = f"<!doctype html><title>{name}</title><body style='margin:0'>{body}"
            (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
        options = BrowserOptions(viewport=(SIDE, SIDE), fence=Fence((tmp_path.resolve(),)), settle="frame")

        async def play():
            browser = Browser(Ledger(tmp_path / "sessions"))
            env = WebEnv(browser, options)
            try:
                url = (tmp_path / f"{next(iter(bodies))}.html").as_uri()
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
                await work(env)
            finally:
                await env.close()
                await browser.close()

        anyio.run(play)

    return run


def test_where_the_only_tab_was_closed_there_is_an_empty_one(open_page):
    async def work(env):
        await env._tabs.page.close()
        assert (await env.state())["url"] == "about:blank"
        await env._tabs.page.close()
        left = await env.step(Click(x=20, y=20))
        assert (left.observation.text["url"], (await env.state())["tabs"]) == ("about:blank", 1)

    open_page(work, first="here")


def test_a_page_that_sends_its_visitors_on_is_shown_where_it_sends_them(open_page):
    async def work(env):
        assert (await env.state())["title"] == "second"

    open_page(work, first="<script>location.replace('second.html')</script>", second="here")


def test_a_tab_that_hangs_is_replaced_by_one_with_the_same_address_in_the_same_place(open_page):
    async def work(env):
        await env.step(Click(x=20, y=20))
        tabs = env._tabs
        with anyio.fail_after(30):
            while tabs.count < 2:
                await anyio.sleep(0.02)
        first, second = tabs._pages
        await tabs._reopen(first)
        assert (len(tabs._pages), tabs._pages[0].url, tabs._pages[1]) == (2, first.url, second)
        await env.step(Key(keys=("ctrl", "w")))
        assert (await env.state())["title"] == "first"

    button = "<button style='width:60px;height:60px' onclick='window.open(`second.html`)'>x</button>"
    open_page(work, first=button, second="here")


def what_failed(t):
    """In words, with the last thing that was done on the last address that was seen."""
    last = t.turns[-1] if t.turns else None
    said = t.failure.message if t.failure else f"{t.stop}, no verdict of success"
    return f"{said}, in turn {len(t.turns)} on {last.text['url'] if last else t.task_id}: {last and last.action}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_b01_none_of_500_episodes_on_an_ordinary_site_fails(tmp_path, capsys):
    rows, failed = [], Counter()
    for settle in ("idle", "frame"):
        started = time.monotonic()
        found = visit(tmp_path / settle, EACH, settle=settle)
        bad = [t for t in found if t.failure or not (t.verdict and t.verdict.success)]
        turns = [turn for t in found for turn in t.turns]
        addresses = {turn.text["url"].rpartition("/")[2].partition("?")[0] for turn in turns}
        slowest = max(turn.env_s for turn in turns)
        rows.append((settle, len(found), len(turns), len(addresses), len(bad), slowest, time.monotonic() - started))
        failed += Counter(map(what_failed, bad))
    with capsys.disabled():
        print("\nsettle  episodes  turns  addresses  failed  slowest turn, s  seconds")
        for row in rows:
            print("{:6}  {:8}  {:5}  {:9}  {:6}  {:15.1f}  {:7.0f}".format(*row))
        for message, count in failed.most_common():
            print(f"  {count} x {message}")
    assert not failed
