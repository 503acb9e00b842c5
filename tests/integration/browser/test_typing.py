"""Typing into pages: any text arrives as it is, and long ones are given the time that they take."""

from __future__ import annotations

import pytest

from cuarl.env.browser.options import BrowserOptions, Fence
from cuarl.env.browser.web import WebEnv
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Click, Key, TypeText

pytestmark = pytest.mark.integration

TEXTS = [
    "很",
    "☝️👩‍💻",
    "שלום!",
    "a b  c",
    "$HOME `x` \"q\" 'r' & ; | %s",
    "two\nlines",
    "",
    "C:\\new\\table",
    "<b>&amp;</b>",
    "ĄąĆß\tœ",
]
SLOW = "oninput='for (const until = performance.now() + 12; performance.now() < until;);'"
"""A page that takes 12 ms to look at each character."""


@pytest.fixture
def typed(with_browser, tmp_path):
    """Types texts into a text area of its own, each after clearing it; gives what it holds after each."""

    def run(texts, attributes="", **options):
        page = tmp_path / "page.html"
        page.write_text(
            "<!doctype html><meta charset=utf-8><body style='margin:0'><textarea style='width:180px;height:90px' "
            f"{attributes} onkeydown='if (event.key == `Tab`) "
            "{ event.preventDefault(); document.execCommand(`insertText`, 0, `\\t`) }'>"
        )
        held = []

        async def work(browser):
            fence = Fence((tmp_path.resolve(),))
            env = WebEnv(browser, BrowserOptions(viewport=(200, 200), fence=fence, settle="frame", **options))
            try:
                preset = {"url": page.as_uri(), "read": {"value": "document.querySelector('textarea').value"}}
                await env.reset(TaskInstance(task_id="t", goal="g", env="browser", preset=preset), 0)
                await env.step(Click(x=20, y=20))
                for text in texts:
                    await env.step(Key(keys=("ctrl", "a")))
                    await env.step(Key(keys=("Delete",)))
                    await env.step(TypeText(text=text))
                    held.append((await env.state())["read"]["value"])
            finally:
                await env.close()

        with_browser(work)
        return held

    return run


def test_c44_any_text_arrives_as_it_is(typed):
    assert typed(TEXTS) == TEXTS


@pytest.mark.parametrize("grows", [True, False])
def test_b25_the_time_for_typing_grows_with_the_text(typed, grows, monkeypatch):
    """Where it does not, the same text is too slow for the limit."""
    text = "The quick brown fox. " * 10  # 2.5 s at least, where a page may take 1 s to answer
    if grows:
        assert typed([text], SLOW, answer_s=1.0) == [text]
        return
    monkeypatch.setattr("cuarl.env.durations.CHARACTER_S", 0.0)
    with pytest.raises(EnvError, match="the action type: the page does not answer within 1 s"):
        typed([text], SLOW, answer_s=1.0)


@pytest.mark.slow
def test_b25_a_text_of_1350_characters_is_typed_to_its_end(typed):
    text = "The quick brown fox jumps. " * 50
    assert typed([text], SLOW) == [text]
