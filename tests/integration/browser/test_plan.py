"""Plans followed on real pages: the oracle points at what a screenshot shows, and at nothing else."""

from __future__ import annotations

import runpy
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from cuarl.agent.scripted import OracleAgent
from cuarl.env.backend import Backend
from cuarl.env.browser.backend import factory, fence_of
from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.errors import AgentError
from cuarl.tasks.files import load_file
from cuarl.tasks.task import Check, Task
from cuarl.types import Answer, Click, Finish, Scroll, TypeText, Wait
from cuarl.workflow.task_proofs import prove_live

pytestmark = pytest.mark.integration

PAGE = """<!doctype html><title>Page</title><body style="margin:0; height:1500px; font:16px sans-serif">
<style>body > * {position: absolute; box-sizing: border-box; height: 30px}
button {width: 80px; height: 30px; margin: 0}</style>
<button id=save style="left:0; top:0" onclick="out.textContent = 'saved ' + field.value">Save</button>
<label style="left:100px; top:0">Name <input id=field style="width:80px"></label>
<output id=out style="left:0; top:40px">nothing</output>
<button id=late style="left:100px; top:40px" onclick="setTimeout(() => this.textContent = 'Ready', 700)">Later</button>
<button style="left:0; top:80px; display:none">Ghost</button>
<button style="left:0; top:80px">Under</button><div class=cover style="left:0; top:80px; width:90px"></div>
<div style="left:100px; top:80px; width:40px; overflow:hidden"><button id=cut>Cut</button></div>
<i-s style="left:200px; top:80px"></i-s>
<iframe style="left:10px; top:120px; width:100px; height:60px; border:2px solid; padding:3px"
  srcdoc="<body style='margin:0'><button onclick='this.textContent=1'>Inner</button><p style='height:99px'>"></iframe>
<select id=list style="left:200px; top:120px"><option>Red<option>Blue</select>
<a href="#x" style="left:0; top:200px; width:120px; height:auto">A link over more than one line</a>
<button id=low style="left:0; top:700px" onclick="out.textContent = 'low'">Low</button>
<script>document.querySelector('i-s').attachShadow({mode: 'open'}).innerHTML = '<button>Shade</button>'</script>"""


@pytest.fixture
def address(tmp_path):
    (tmp_path / "page.html").write_text(PAGE, encoding="utf-8")
    return (tmp_path / "page.html").as_uri()


def options(tmp_path, **more):
    return BrowserOptions(viewport=(320, 300), settle_ms=40, fence=Fence((tmp_path.resolve(),)), **more)


def task(address, *lines, **more):
    return Task(id="t", description="d", env="browser", preset={"url": address}, plan=lines, **more)


async def played(browser, options, task):
    """What the oracle did, and why it stopped before the end if so."""
    env = factory(browser, options)(task.instantiate(0))
    done = []
    try:
        shown = await env.reset(task.instantiate(0), 0)
        agent = OracleAgent(env)
        while not (done and isinstance(done[-1], Finish)):
            done.append((await agent.act(task.instantiate(0), shown, (), 0)).action)
            if not isinstance(done[-1], Finish):
                result = await env.step(done[-1])
                assert "rejected" not in result.info
        return done, ""
    except AgentError as error:
        return done, error.what
    finally:
        await env.close()


def test_a_plan_becomes_the_policys_own_actions(with_browser, address, tmp_path):
    lines = [
        {"type": "{who}", "into": "Name"},
        {"click": {"role": "button", "name": "Save"}},
        {"answer": {"css": "#out"}},
        {"click": {"css": "#late"}},
        {"wait_for": "Ready"},
        {"scroll": "down", "until": "Low"},
        {"click": "Low"},
    ]

    async def work(browser):
        one = task(address, *lines, params={"who": ("Zoë",)})
        done, why = await played(browser, options(tmp_path), one)
        kinds = [type(action) for action in done if not isinstance(action, Wait)]
        assert kinds == [Click, TypeText, Click, Answer, Click, Scroll, Scroll, Click, Finish] and not why
        assert done[1] == TypeText(text="Zoë") and done[2] == Click(x=40, y=15) and done[3] == Answer(text="saved Zoë")
        waits = [action for action in done if isinstance(action, Wait)]
        assert waits and done.index(waits[0]) == 5, "the page is waited for by actions"
        assert done[-2] == Click(x=40, y=700 - 600 + 15)

    with_browser(work)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_places_are_pixels_of_the_screenshot(with_browser, address, tmp_path, scale):
    clicks = [
        ("Save", (40, 15)),
        ("Shade", None),
        ({"css": "#cut"}, (120, 95)),  # the part that is left of it
        ("Inner", None),
    ]

    async def work(browser):
        lines = [{"click": target} for target, _ in clicks]
        lines += [{"wait_for": "1"}, {"click": {"css": "#list"}}, {"click": "Blue"}, {"answer": {"css": "#list"}}]
        done, why = await played(browser, options(tmp_path, scale=scale), task(address, *lines))
        assert not why and done[-2] == Answer(text="Blue")
        for action, (_, place) in zip(done, clicks, strict=False):
            if place:
                assert (action.x, action.y) == tuple(int(v * scale) for v in place)

    with_browser(work)


def test_what_no_screenshot_shows_is_not_clicked(with_browser, address, tmp_path):
    wrong = {
        "Ghost": "it is hidden",
        "Under": "it is covered by <div.cover>",
        "Low": "it lies below what is shown",
        "Nobody": "nothing on the page matches",
    }

    async def work(browser):
        for text, why in wrong.items():
            done, said = await played(browser, options(tmp_path), task(address, {"click": "Save"}, {"click": text}))
            assert [a.kind for a in done] == ["click"] and said == f'step 2 of the plan, click text "{text}": {why}'
        for css, why in (("button", "5 visible elements match"), ("b:foo(x)", "is not a valid selector")):
            _, said = await played(browser, options(tmp_path), task(address, {"click": {"css": css}}))
            assert said.startswith(f'step 1 of the plan, click css "{css}": ') and why in said
        _, said = await played(browser, options(tmp_path), task(address, {"wait_for": "Nobody", "seconds": 0.5}))
        assert said.endswith('wait_for text "Nobody": after 0.5 s nothing on the page matches')

    with_browser(work)


def test_plan_and_doing_nothing_are_proven_on_the_page(with_browser, address, tmp_path):
    saved, shown = (Check(path="text", op="contains", value="saved"),), (Check(path="title", value="Page"),)
    tasks = [
        task(address, {"click": "Save"}, checks=saved),
        task(address, {"click": "Low"}, checks=saved).model_copy(update={"id": "stuck"}),
        task(address, {"click": "Save"}, checks=shown).model_copy(update={"id": "solved"}),
        task(address, checks=saved).model_copy(update={"id": "planless"}),
    ]

    async def work(browser):
        make_env = factory(browser, options(tmp_path))

        async def make(instance):
            return make_env(instance)

        backend = Backend(make, at_most=4, may_solve=lambda task: bool(task.plan))
        count = []
        found = await prove_live(tasks, 1, backend, at_once=4, done=lambda: count.append(1))
        assert [proof.problem for (proof,) in found] == [
            "",
            'step 1 of the plan, click text "Low": it lies below what is shown',
            "solved by doing nothing",
            "it has no plan, so nothing shows that it can be solved",
        ]
        assert len(count) == 4

    with_browser(work)


def test_the_shop_of_the_start_page_is_proven(with_browser, tmp_path):
    shop = Path(__file__).parents[3] / "examples" / "shop"
    server = ThreadingHTTPServer(("127.0.0.1", 0), runpy.run_path(str(shop / "shop.py"))["Shop"])
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    text = (shop / "tasks.yaml").read_text(encoding="utf-8")
    (tmp_path / "tasks.yaml").write_text(text.replace(":8765", f":{server.server_port}"), encoding="utf-8")
    one = load_file(tmp_path / "tasks.yaml")[0].task

    async def work(browser):
        make_env = factory(browser, BrowserOptions(viewport=(320, 320), fence=fence_of([one], ())))

        async def make(instance):
            return make_env(instance)

        (proofs,) = await prove_live([one], 4, Backend(make), at_once=4, done=lambda: None)
        assert {proof.problem for proof in proofs} == {""}, proofs
        assert len({one.instantiate(seed).goal for seed in range(4)}) > 1

    try:
        with_browser(work)
    finally:
        server.shutdown()
        server.server_close()
