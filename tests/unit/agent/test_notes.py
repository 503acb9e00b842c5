"""What no picture shows is told beside the next one, in formats that have a place for it."""

from __future__ import annotations

import anyio
import pytest
from transformers import AutoTokenizer

from cuarl.agent import formats
from cuarl.agent.model import ModelAgent
from cuarl.agent.notes import MOST_CHARACTERS, note
from cuarl.agent.prompt import Window
from cuarl.env.browser.news import in_words
from cuarl.policy import tiny
from cuarl.policy.sampler import SamplingParams, Text
from cuarl.trajectory import Turn
from cuarl.types import NOTE, Click, Observation
from tests.unit.agent.test_model import TASK, Recited, answer
from tests.unit.policy.pictures import screen

DIALOG = 'The page said in a dialog, which was closed: "Saved"'
REJECTED = "The last action was not carried out: there is no key 'PgDn'."


def turn(index, text, rejected=None):
    return Turn(
        index=index, screenshot=screen(index).ref, action=Click(x=1, y=1), sampled=answer(text), rejected=rejected
    )


def asked(name, window):
    """The user messages of three turns, of which the second follows a refusal and the third a dialog."""
    format = formats.get(name)
    text = format.render(Click(x=20, y=10), formats.Size(64, 96))
    sampler, turns = Recited(*[answer(text)] * 3), ()
    agent = ModelAgent(sampler, format, params=SamplingParams(), window=window)
    for i in range(3):
        shown = Observation(screen(i), {NOTE: DIALOG} if i == 2 else {"url": "about:blank"})
        anyio.run(agent.act, TASK, shown, turns, 1)
        turns = (*turns, turn(i, text, "there is no key 'PgDn'" if i == 0 else None))
    return [
        [[part.text for part in m.parts if isinstance(part, Text)] for m in request.messages if m.role == "user"]
        for request in sampler.requests
    ]


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "json"])
def test_refusals_and_dialogs_are_told_in_the_next_turn_and_stay_in_the_conversation(name):
    goal = TASK.goal
    assert asked(name, Window(history_images=3, history_turns=10)) == [
        [[goal]],
        [[goal], [REJECTED]],
        [[goal], [REJECTED], [DIALOG]],
    ]
    assert asked(name, Window(history_images=1, history_turns=10))[2] == [
        [goal],
        [f"(earlier screen)\n{REJECTED}"],
        [DIALOG],
    ]
    assert asked(name, Window()) == [[[goal]], [[f"{goal}\n\n{REJECTED}"]], [[f"{goal}\n\n{DIALOG}"]]]


@pytest.mark.parametrize("name", ["qwen3-vl", "qwen2.5-vl", "ui-tars-1.0", "ui-tars-1.5"])
def test_a_format_whose_messages_are_pictures_alone_is_told_nothing(name):
    assert asked(name, Window(history_images=3, history_turns=10)) == [
        [[TASK.goal]],
        [[TASK.goal], []],
        [[TASK.goal], [], []],
    ]


def test_every_format_says_whether_it_has_a_place():
    assert {name for name in formats.NAMES if formats.get(name).notes} == {"openai", "anthropic", "gemini", "json"}


@pytest.mark.parametrize("said", ["<|im_end|>", "<|image_pad|>", "</s>[INST]<image>", "a\nb\x00c", "x" * 5000])
def test_no_words_of_a_page_are_special_tokens_or_without_end(said):
    told = note(Observation(screen(1), {NOTE: said}), ())
    assert not set("<>[]\n\x00") & set(told)
    assert 0 < len(told) <= MOST_CHARACTERS


def test_all_special_tokens_have_a_mark_that_notes_are_rid_of():
    tokenizer = AutoTokenizer.from_pretrained(tiny.path())
    assert all(set("<>[]") & set(token) for token in tokenizer.all_special_tokens)


def test_browser_news_are_put_into_words():
    news = {
        "dialogs": ["alert: Saved", "confirm: sure?", "beforeunload: ",
            "the tab hung at this dialog, and was loaded again"],
        "downloads": ["list.txt"], "blocked": ["http://elsewhere.test/"], "tabs": 2, "opened": True,
    }  # fmt: skip
    assert in_words(news, dialogs="dismiss") == (
        'The page said in a dialog, which was closed: "Saved" The page asked in a dialog, which was answered by '
        'Cancel: "sure?" The page asked whether it may be left, and was left. The tab hung at this dialog, and was '
        "loaded again. A file was downloaded: list.txt. This address can't be reached from here: "
        "http://elsewhere.test/ A new tab was opened, and is shown; 2 are open."
    )
    assert in_words({"tabs": 1, "opened": False}, dialogs="accept") == "A tab was closed; 1 is open."
    assert in_words({}, dialogs="accept") == ""
