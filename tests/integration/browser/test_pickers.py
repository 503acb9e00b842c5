"""What a screenshot shows can be clicked: lists are part of the page wherever they stand, and pickers stay closed."""

from __future__ import annotations

import anyio
import pytest

from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key, SelectOption, TypeText, Wait

pytestmark = pytest.mark.integration

FRUITS = "<select style='width:120px;height:30px'><option>plum<option>fig<option>kiwi<option>lime</select>"
COMPONENT = (
    "<x-list style='display:block'></x-list><script>class L extends HTMLElement {{ connectedCallback() {{"
    "window.root = this.attachShadow({{mode:'{mode}'}}); root.innerHTML = `{fruits}`; {more} }} }}"
    "customElements.define('x-list', L)</script>"
)
SHEET = "const s = new CSSStyleSheet(); s.replaceSync('option {{color: red}}'); root.adoptedStyleSheets = [s];"
DECLARED = f"<div><template shadowrootmode=open>{FRUITS}</template></div>"
SIZES = ("", "0", "1", "01", "abc")
CHOSEN = "(window.root ?? document.querySelector('div')?.shadowRoot ?? document).querySelector('select').value"


@pytest.fixture
def act(with_browser, tmp_path):
    """Does actions on a page with this body; gives the value of a script, and whether the lower part changed on the
    way."""

    def run(body, actions, script):
        (tmp_path / "page.html").write_text(f"<!doctype html><body style='margin:0'>{body}", encoding="utf-8")
        url = (tmp_path / "page.html").as_uri()
        found = []

        async def work(browser):
            options = BrowserOptions(
                viewport=(400, 300), fence=Fence((tmp_path.resolve(),)), settle="idle", settle_ms=60
            )
            env = WebEnv(browser, options)
            try:
                preset = {"url": url, "read": {"it": script}}
                shots = [await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset=preset), 0)]
                shots += [(await env.step(action)).observation for action in actions]
                lower = {shot.screenshot.image.crop((0, 60, 400, 300)).tobytes() for shot in shots}
                found.extend(((await env.state())["read"]["it"], len(lower) > 1))
            finally:
                await env.close()

        with_browser(work)
        return tuple(found)

    return run


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(FRUITS, id="light"),
        pytest.param(COMPONENT.format(mode="open", fruits=FRUITS, more=""), id="open"),
        pytest.param(COMPONENT.format(mode="closed", fruits=FRUITS, more=""), id="closed"),
        pytest.param(COMPONENT.format(mode="open", fruits=FRUITS, more=SHEET.format()), id="own sheet"),
        pytest.param(DECLARED, id="declared"),
        pytest.param(f"<script>document.adoptedStyleSheets = []</script>{FRUITS}", id="page's sheets"),
        *(pytest.param(FRUITS.replace("<select", f"<select size='{size}'"), id=f"size {size}") for size in SIZES),
        pytest.param(f"<style>body select {{appearance: none}}</style>{FRUITS}", id="page's style"),
        pytest.param(f"<style>html body select {{appearance: menulist !important}}</style>{FRUITS}", id="important"),
        pytest.param(FRUITS.replace("style='", "style='appearance: none !important;"), id="inline important"),
        pytest.param(f"<style>@layer a {{select {{appearance: none !important}}}}</style>{FRUITS}", id="layer"),
    ],
)
def test_b03_a_row_of_a_list_is_chosen_by_a_click_wherever_the_list_stands(act, body):
    assert act(body, [Click(x=40, y=15), Click(x=40, y=95)], CHOSEN) == ("kiwi", True)


def test_b03_a_row_of_a_list_that_is_always_open_is_chosen_by_a_click(act):
    rows = FRUITS.replace("<select style='width:120px;height:30px'", "<select size=4 style='font:16px/20px serif'")
    middle = "(() => { const r = document.querySelector('select').getBoundingClientRect(); return r.height })()"
    height = act(rows, [], middle)[0]
    assert act(rows, [Click(x=10, y=round(height * 5 / 8))], CHOSEN)[0] == "kiwi"


@pytest.mark.parametrize(
    ("body", "option", "value"),
    [
        pytest.param(FRUITS, "kiwi", "kiwi", id="light"),
        pytest.param(FRUITS.replace("<select", "<select multiple"), "fig", "fig", id="multiple"),
        pytest.param(FRUITS.replace("<option>lime", "<option value=4>  green \n lime"), "green lime", "4", id="label"),
        pytest.param(COMPONENT.format(mode="open", fruits=FRUITS, more=""), "kiwi", "kiwi", id="open"),
        pytest.param(COMPONENT.format(mode="closed", fruits=FRUITS, more=""), "lime", "lime", id="closed"),
    ],
)
def test_an_option_is_chosen_by_its_text_and_the_page_hears_of_it(act, body, option, value):
    heard = "document.addEventListener('input', (e) => document.title += 'input')"
    body = f"<script>{heard}</script>{body}"
    chosen = f"{CHOSEN} + document.title"
    assert act(body, [SelectOption(x=40, y=15, option=option)], chosen)[0] == f"{value}input"


def test_an_option_of_a_list_in_a_frame_is_chosen(act):
    inner = f"<body style='margin:5px'>{FRUITS}"
    body = f'<iframe style="border:2px solid;width:200px;height:100px" srcdoc="{inner}"></iframe>'
    chosen = "frames[0].document.querySelector('select').value"
    assert act(body, [SelectOption(x=40, y=20, option="kiwi")], chosen)[0] == "kiwi"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("<p>none", "there is no list at (40, 15)"),
        (FRUITS, 'the list has no option "melon": plum, fig, kiwi, lime'),
        (FRUITS.replace("<select", "<select disabled"), "the list is disabled"),
        (FRUITS.replace("<option>lime", "<option disabled>melon"), 'no option "melon": plum, fig, kiwi'),
    ],
)
def test_why_an_option_can_not_be_chosen_is_told(with_browser, tmp_path, body, why):
    (tmp_path / "page.html").write_text(f"<!doctype html><body style='margin:0'>{body}", encoding="utf-8")

    async def work(browser):
        env = WebEnv(browser, BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="frame"))
        try:
            url = (tmp_path / "page.html").as_uri()
            await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
            assert why in (await env.step(SelectOption(x=40, y=15, option="melon"))).info["rejected"]
        finally:
            await env.close()

    with_browser(work)


@pytest.mark.parametrize("where", ["light", "closed"])
def test_b05_suggestions_are_not_shown_where_no_click_reaches_them(act, where):
    field = (
        "<input list=l style='width:180px;height:30px;display:block'><datalist id=l><option>fig<option>kiwi</datalist>"
    )
    body = field if where == "light" else COMPONENT.format(mode="closed", fruits=field, more="")
    opening = [
        Click(x=20, y=15),
        Key(keys=("Down",)),
        Click(x=170, y=15),
        Click(x=20, y=15, count=2),
        TypeText(text="f"),
    ]
    assert act(body, opening, "1") == (1, False)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        *((kind, "light") for kind in ("date", "datetime-local", "time", "month", "week", "color")),
        ("date", "closed"),
        ("color", "closed"),
    ],
)
def test_b05_no_picker_is_shown_that_no_click_reaches(act, kind, where):
    field = f"<input type={kind} style='width:180px;height:30px;display:block'>"
    body = field if where == "light" else COMPONENT.format(mode="closed", fruits=field, more="")
    opening = [
        Click(x=170, y=15), Key(keys=("F4",)), Key(keys=("alt", "Down")), Key(keys=("space",)), Click(x=20, y=15),
        *[Key(keys=("Tab",))] * 3, Key(keys=("Return",)), Key(keys=("Tab",)), Key(keys=("Return",)),
    ]  # fmt: skip
    assert act(body, opening, "1") == (1, False)


def test_b05_dates_are_typed_and_sent_by_enter_and_colours_keep_their_value(act):
    body = (
        "<form onsubmit='document.title=`sent`;return false'><input type=date style='width:150px;height:30px'>"
        "<button>go</button></form>"
    )
    actions = [Click(x=20, y=15), TypeText(text="03142027"), Key(keys=("Return",)), Wait(seconds=0.1)]
    script = "document.querySelector('input').value + document.title"
    assert act(body, actions, script)[0] == "2027-03-14sent"
    body = "<label><input type=color value=#112233 style='width:120px;height:30px'>colour</label>"
    assert act(
        body, [Click(x=60, y=15), Click(x=60, y=120), Click(x=140, y=15)], "document.querySelector('input').value"
    ) == ("#112233", False)


@pytest.mark.parametrize("where", ["light", "closed"])
@pytest.mark.parametrize(
    ("text", "value"), [("#ff8800", "#ff8800"), ("0a0B0c", "#0a0b0c"), ("#12#ff8800", "#ff8800"), ("#ff", "#112233")]
)
def test_b05_a_colour_is_typed(act, text, value, where):
    field = "<input type=color value=#112233 style='width:120px;height:30px;display:block'>"
    body = field if where == "light" else COMPONENT.format(mode="closed", fruits=field, more="")
    heard = "<script>document.addEventListener('input', () => document.title += 'heard')</script>"
    script = "(window.root ?? document).querySelector('input').value + document.title"
    changed = "heard" * (value != "#112233")
    assert act(heard + body, [Click(x=60, y=15), TypeText(text=text)], script)[0] == value + changed


def test_b30_a_file_field_does_not_hold_anything_up(act):
    body = (
        "<input type=file style='display:block;height:30px'><button style='width:60px;height:60px'"
        " onclick='document.title=`on`'>x</button>"
    )
    assert act(body, [Click(x=40, y=15), Click(x=30, y=60)], "document.title")[0] == "on"


def test_b30_that_a_file_can_not_be_chosen_is_told(with_browser, tmp_path):
    (tmp_path / "page.html").write_text("<body style='margin:0'><input type=file style='display:block;height:30px'>")

    async def work(browser):
        env = WebEnv(browser, BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="frame"))
        try:
            url = (tmp_path / "page.html").as_uri()
            await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
            told = await env.step(Click(x=40, y=15))
            with anyio.fail_after(20):
                while "note" not in told.observation.text:
                    told = await env.step(Wait(seconds=0.05))
            assert told.observation.text["note"] == "The page asked for a file, which can't be chosen here."
        finally:
            await env.close()

    with_browser(work)


@pytest.mark.parametrize(("default", "given"), [("nobody", "nobody"), ("", "")])
def test_b31_prompt_is_answered_by_its_default_and_told(with_browser, tmp_path, default, given):
    body = (
        "<body style='margin:0'><button style='width:60px;height:60px' "
        f"onclick='document.title=prompt(`Name?`,`{default}`)'>x"
    )
    (tmp_path / "page.html").write_text(body)

    async def work(browser):
        env = WebEnv(browser, BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="frame"))
        try:
            url = (tmp_path / "page.html").as_uri()
            await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
            told = await env.step(Click(x=20, y=20))
            with anyio.fail_after(20):
                while "dialogs" not in told.info:
                    told = await env.step(Wait(seconds=0.05))
            assert told.info["dialogs"] == ["prompt: Name?"]
            assert (await env.state())["title"] == given
        finally:
            await env.close()

    with_browser(work)
