"""Copy, cut and paste: within an episode by every usual chord and by a page's own buttons, and never into another
episode."""

from __future__ import annotations

import anyio
import pytest

from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key, TypeText, Wait

pytestmark = pytest.mark.integration

A, B, THIRD = Click(x=40, y=15), Click(x=40, y=55), Click(x=40, y=95)
FIELDS = "<input id=a style='{0}'><input id=b style='{0}'>".format(
    "display:block;width:180px;height:40px;margin:0;box-sizing:border-box"
)
VALUES = "[a, b].map((field) => field.value)"
ALL = Key(keys=("CTRL", "A"))


def key(*names):
    return Key(keys=names)


@pytest.fixture
def episodes(with_browser, tmp_path):
    """Plays episodes one after the other in one browser, each a page's body, actions, and a script whose values are
    given."""

    def run(*played):
        found = []

        async def work(browser):
            options = BrowserOptions(viewport=(300, 200), fence=Fence((tmp_path.resolve(),)), settle="frame")
            for number, (body, actions, script) in enumerate(played):
                path = tmp_path / f"{number}.html"
                path.write_text(f"<!doctype html><body style='margin:0'>{body}", encoding="utf-8")
                env = WebEnv(browser, options)
                try:
                    preset = {"url": path.as_uri(), "read": {"it": script}}
                    await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset=preset), 0)
                    for action in actions:
                        told = await env.step(action)
                        assert "rejected" not in told.info
                    found.append((await env.state())["read"]["it"])
                finally:
                    await env.close()

        with_browser(work)
        return found

    return run


COPY = [("ctrl", "c"), ("CTRL", "C"), ("ctrl", "Insert")]
CUT = [("CTRL", "X"), ("shift", "Delete")]
PASTE = [("ctrl", "v"), ("CTRL", "V"), ("shift", "Insert"), ("ctrl", "shift", "V"), ("SHIFT", "CTRL", "v")]


@pytest.mark.parametrize("take", COPY + CUT, ids="+".join)
def test_b06_what_is_copied_in_one_episode_is_pasted_there_and_in_no_other(episodes, take):
    """Whichever chords: all contexts of a browser share the system's clipboard."""
    typed = [A, TypeText(text="secret-1"), ALL, key(*take), B]
    pasted = [action for chord in PASTE for action in (key(*chord), key("End"))]
    (first, second) = episodes((FIELDS, typed + pasted, VALUES), (FIELDS, [A, *pasted], VALUES))
    assert first == ["" if take in CUT else "secret-1", "secret-1" * len(PASTE)]
    assert second == ["", ""]


def test_b06_capitals_reload_and_close_as_small_letters_do(with_browser, tmp_path):
    (tmp_path / "page.html").write_text("<script>sessionStorage.n = 1 + Number(sessionStorage.n ?? 0)</script>")

    async def work(browser):
        env = WebEnv(browser, BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="frame"))
        try:
            preset = {"url": (tmp_path / "page.html").as_uri(), "read": {"n": "sessionStorage.n"}}
            await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset=preset), 0)
            loads = int((await env.state())["read"]["n"])
            for chord in (("CTRL", "R"), ("ctrl", "shift", "r")):
                await env.step(Key(keys=chord))
                # a page that is being replaced may be asked to load again more than once
                with anyio.fail_after(20):
                    while (now := int((await env.state())["read"]["n"] or 0)) <= loads:
                        await env.step(Wait(seconds=0.05))
                loads = now
        finally:
            await env.close()

    with_browser(work)


def test_b06_capitals_close_a_tab(with_browser, tmp_path):
    (tmp_path / "page.html").write_text(
        "<body onclick='window.open(`about:blank`)' style='margin:0'><p style='height:99px'>"
    )

    async def work(browser):
        env = WebEnv(browser, BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="frame"))
        try:
            url = (tmp_path / "page.html").as_uri()
            await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
            await env.step(Click(x=20, y=20))
            for chord, left in ((None, 2), (("CTRL", "W"), 1)):
                if chord:
                    await env.step(Key(keys=chord))
                with anyio.fail_after(20):
                    while (await env.state())["tabs"] != left:
                        await env.step(Wait(seconds=0.05))
        finally:
            await env.close()

    with_browser(work)


FRAME = (
    "<iframe {} style='display:block;border:0;width:200px;height:40px' srcdoc=\"<body style='margin:0'><input "
    'value=inside>{}"></iframe>'
)
HEARD = (
    "<script>addEventListener('input', () => parent.postMessage(document.querySelector('input').value, '*'))</script>"
)
IN_FRAME = FIELDS.replace("id=a", "id=a hidden") + "<script>onmessage = (e) => a.value = e.data</script>"


@pytest.mark.parametrize("frame", ["", "sandbox=allow-scripts"], ids=["same origin", "another origin"])
@pytest.mark.parametrize(("take", "left"), [(("ctrl", "c"), ""), (("ctrl", "x"), "cut")])
def test_b08_text_in_a_frame_is_copied_and_cut(episodes, frame, take, left):
    body = FRAME.format(frame, HEARD) + IN_FRAME.replace("display:block", "", 1)
    script = "[a.value, b.value]"
    if left:  # the frame tells its field's value once it changes
        body = body.replace("a.value = e.data", "a.value = e.data || `cut`")
    assert episodes((body, [A, key("ctrl", "a"), key(*take), B, key("ctrl", "v")], script)) == [[left, "inside"]]


@pytest.mark.parametrize(
    ("body", "select"),
    [
        ("<div style='height:40px' contenteditable>inside</div>", [A, ALL]),
        (
            "<x-y></x-y><script>document.querySelector('x-y').attachShadow({mode:'open'}).innerHTML="
            "`<input value=inside style='display:block;height:40px;margin:0;box-sizing:border-box'>`</script>",
            [A, ALL],
        ),
        ("<textarea style='display:block;height:40px;margin:0;box-sizing:border-box'>inside</textarea>", [A, ALL]),
    ],
    ids=["contenteditable", "component", "textarea"],
)
def test_b08_text_elsewhere_is_copied_too(episodes, body, select):
    field = "<input id=b style='display:block;width:180px;height:40px;margin:0'>"
    assert episodes((body + field, [*select, key("ctrl", "c"), B, key("ctrl", "v")], "b.value")) == ["inside"]


def test_a_page_has_its_say_in_what_is_copied_and_pasted(episodes):
    own = (
        "<script>document.oncopy = (e) => { e.clipboardData.setData('text/plain', 'own'); e.preventDefault() }</script>"
    )
    takes = (
        "<script>b.onpaste = (e) => { b.value = `got ${e.clipboardData.getData('text/plain')}`; "
        "e.preventDefault() }</script>"
    )
    actions = [A, TypeText(text="x"), ALL, key("ctrl", "c"), B, key("ctrl", "v")]
    assert episodes((FIELDS + own, actions, VALUES), (FIELDS + takes, actions, VALUES)) == [
        ["x", "own"],
        ["x", "got x"],
    ]


def test_without_a_selection_nothing_is_cut_and_the_clipboard_stays_and_passwords_stay_secret(episodes):
    actions = [
        A, TypeText(text="abc"), ALL, key("ctrl", "c"), key("Home"), key("ctrl", "x"), B, TypeText(text="pw"), ALL,
        key("ctrl", "c"), A, key("End"), key("ctrl", "v"),
    ]  # fmt: skip
    assert episodes((FIELDS.replace("id=b", "id=b type=password"), actions, VALUES)) == [["abcabc", "pw"]]


@pytest.mark.parametrize(
    "script", ["navigator.clipboard.writeText(`from a button`)", "a.select(); document.execCommand(`copy`)"]
)
def test_a_copy_button_of_the_page_fills_the_clipboard_of_its_episode_alone(episodes, script):
    button = f"<button style='display:block;width:90px;height:40px' onclick='{script}'>copy</button>"
    body = FIELDS.replace("id=a", "id=a value='from a button'") + button
    first, second = episodes(
        (body, [THIRD, B, key("ctrl", "v")], VALUES), (FIELDS, [A, key("ctrl", "v"), B, key("shift", "Insert")], VALUES)
    )
    assert (first, second) == (["from a button"] * 2, ["", ""])
