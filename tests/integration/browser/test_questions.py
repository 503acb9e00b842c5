"""Questions of pages that the policy answers (``--browser-dialogs ask``)."""

from __future__ import annotations

import anyio
import pytest

from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key, TypeText, Wait

pytestmark = pytest.mark.integration

ASK = Click(x=20, y=20)


def page(script):
    return f"<body style='margin:0'><button style='width:60px;height:60px' onclick='{script}'>x</button>"


@pytest.fixture
def play(with_browser, tmp_path):
    """Does actions on a page that asks; gives its title, and what was told or refused at each step."""

    def run(script, actions, before=""):
        (tmp_path / "page.html").write_text(f"{page(script)}<script>{before}</script>")
        found = []

        async def work(browser):
            options = BrowserOptions(fence=Fence((tmp_path.resolve(),)), settle="idle", settle_ms=50, dialogs="ask")
            env = WebEnv(browser, options)
            try:
                url = (tmp_path / "page.html").as_uri()
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset={"url": url}), 0)
                told = []
                for action in actions:
                    with anyio.fail_after(20):
                        result = await env.step(action)
                    told.append(result.info.get("rejected") or result.observation.text.get("note", ""))
                found.extend(((await env.state())["title"], told))
            finally:
                with anyio.fail_after(10):
                    await env.close()

        with_browser(work)
        return tuple(found)

    return run


PROMPT = "document.title = `got ` + prompt(`Name?`, `nobody`)"


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        (TypeText(text="Zoe"), "got Zoe"),
        (TypeText(text="Zoe", submit=True), "got Zoe"),
        (Key(keys=("Return",)), "got nobody"),
        (Key(keys=("esc",)), "got null"),
    ],
)
def test_b31_a_prompt_is_told_and_answered(play, answer, title):
    asked = 'The page asks in a dialog: "Name?" Press Enter for OK or Escape for Cancel, or type the answer.'
    assert play(PROMPT, [ASK, answer]) == (title, [asked, ""])


@pytest.mark.parametrize(("key", "title"), [("Enter", "got true"), ("Escape", "got false")])
def test_a_confirm_is_answered_by_its_buttons(play, key, title):
    found, told = play("document.title = `got ` + confirm(`Sure?`)", [ASK, Wait(seconds=0.1), Key(keys=(key,))])
    assert found == title and told[0].endswith("Press Enter for OK or Escape for Cancel.") and told[1:] == ["", ""]


def test_whatever_else_is_done_waits_for_the_answer(play):
    title, told = play(
        "document.title += `got ` + confirm(`Sure?`)",
        [ASK, Click(x=30, y=30), TypeText(text="yes"), Key(keys=("Tab",)), Key(keys=("Return",)), ASK],
    )
    refused = "the page asks first: Enter is OK, Escape is Cancel"
    assert told[1:4] == [refused] * 3 and told[4] == "" and "Sure?" in told[5]
    assert title == "got truegot false", "a question that is left open is cancelled when the page is read"


def test_one_question_may_follow_another(play):
    two = "document.title = prompt(`One?`) + prompt(`Two?`)"
    title, told = play(two, [ASK, TypeText(text="1"), TypeText(text="2")])
    assert title == "12" and "One?" in told[0] and "Two?" in told[1]


def test_what_a_page_asks_while_it_loads_is_answered_by_ok_and_an_alert_is_closed(play):
    title, told = play("alert(`Hi`); document.title += `!`", [ASK], before="document.title = confirm('Load?')")
    assert title == "true!" and 'closed: "Hi"' in told[0]


def test_a_key_that_is_held_when_the_page_asks_is_let_go(play):
    script = "document.title += event.ctrlKey + `,` + confirm(`Sure?`) + `,`"
    title, _ = play(script, [Click(x=20, y=20, held=("ctrl",)), Key(keys=("Return",)), ASK, Key(keys=("Return",))])
    assert title == "true,true,false,true,"
