"""Plans for pages, read without a browser."""

from __future__ import annotations

from typing import Any

import pytest

from cuarl.env.browser.backend import check_touches
from cuarl.env.browser.plan import phone_problem, read_plan
from cuarl.env.browser.targets import css_problem
from cuarl.env.plans.seeing import NotSeen, Seen, chosen
from cuarl.env.plans.steps import AnswerStep, ClickStep, KeyStep, ScrollStep, TypeStep, WaitStep
from cuarl.env.plans.targets import Target
from cuarl.errors import TaskError
from cuarl.tasks.task import Task

SAVE = Target("text", "Save")


def test_each_step_is_read() -> None:
    lines: list[dict[str, Any]] = [
        {"click": "Save"},
        {"click": {"role": "button", "name": "Save"}, "count": 2, "button": "right"},
        {"click": {"css": "ul > li:nth-child(2n+1) a[href='#x']", "nth": 2}},
        {"type": "Zoe", "into": "Name", "submit": True},
        {"type": 5},
        {"key": "ctrl+a"},
        {"key": "+"},
        {"scroll": "down", "until": "Save"},
        {"wait_for": "Save", "seconds": 2},
        {"answer": "3.50"},
        {"answer": {"css": "#total"}},
    ]
    assert read_plan(lines) == (
        ClickStep(SAVE),
        ClickStep(Target("role", "button", "Save"), "right", 2),
        ClickStep(Target("css", "ul > li:nth-child(2n+1) a[href='#x']", nth=2)),
        TypeStep("Zoe", Target("label", "Name"), submit=True),
        TypeStep("5"),
        KeyStep(("ctrl", "a")),
        KeyStep(("+",)),
        ScrollStep("down", until=SAVE),
        WaitStep(SAVE, 2.0),
        AnswerStep("3.50"),
        AnswerStep(Target("css", "#total")),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"clik": "Save"}, 'unknown step "clik" (did you mean "click"?)'),
        ({}, 'unknown step ""'),
        ({"click": "Save", "key": "a"}, "click and key are two steps"),
        ({"click": "Save", "cuont": 2}, 'click takes no cuont (did you mean "count"?)'),
        ({"click": "Save", "count": 4}, "count is 4"),
        ({"click": "Save", "button": "rihgt"}, "button is 'rihgt': left, right, middle"),
        ({"click": None}, "None is no text"),
        ({"click": " "}, "' ' is no text"),
        ({"click": True}, "True is no text"),
        ({"click": ["Save"]}, "['Save'] is no text"),
        ({"click": "#save"}, '"#save" looks like a selector: write {css: "#save"}'),
        ({"click": "css=a"}, '"css=a" looks like a selector'),
        ({"click": {"name": "Save"}}, "points at nothing"),
        ({"click": {"css": "a", "text": "b"}}, "give one of css, role, text, label"),
        ({"click": {"css": "a", "name": "b"}}, "unknown key name beside css"),
        ({"click": {"css": "a", "nth": 0}}, "nth is 0: count from 1"),
        ({"click": {"css": "a[b"}}, "the selector a[b can't be read: [ has no counterpart"),
        ({"click": {"role": "buton"}}, 'there is no role "buton" (did you mean "button"?)'),
        ({"type": "a", "submit": "yes"}, "submit is 'yes'"),
        ({"key": "hyper+x"}, "there is no key 'hyper'"),
        ({"scroll": "dwon"}, "scroll is 'dwon': up, down, left, right"),
        ({"scroll": "down", "amount": 0}, "amount is 0"),
        ({"wait_for": "Save", "seconds": 61}, "seconds is 61: a number up to 60"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_with_its_number(line: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_plan([{"click": "Save"}, line])
    assert caught.value.what.startswith("step 2 of the plan: ") and said in caught.value.what


@pytest.mark.parametrize(
    "selector",
    [
        "#save", "a.b:hover > i, u + b", "input[name='a b']", 'a:has-text("(")', "ul li:not(.x):nth-child(2n + 1)",
        "*", "#\\31 x", "[data-x]", "[data-x='>>']", "a ~ b", "h1:is(a, b)", "größe", "a::before", "a[href$='.pdf' i]",
    ],
)  # fmt: skip
def test_selectors_that_can_be_read(selector: str) -> None:
    assert css_problem(selector) == ""


@pytest.mark.parametrize(
    "selector",
    ["a[b", "a]", "a(b", "a:not(b", "a[b='c]", "//div", "text=Save", "a >> b", "a >", "> a", "a,,b", "a,", "#", "a.",
     "#1a", "a[]", "a[='x']", "a:", "a{b}", "a@b"],
)  # fmt: skip
def test_selectors_that_no_browser_reads(selector: str) -> None:
    assert css_problem(selector)


def test_what_a_phone_has_no_action_for_is_refused_before_anything_starts() -> None:
    fine = [{"click": "a"}, {"key": "Return"}, {"key": "alt+Left"}, {"type": "x", "into": "y", "submit": True}]
    assert phone_problem(read_plan(fine)) == ""
    for line in ({"scroll": "down"}, {"key": "ctrl+a"}, {"click": "a", "button": "right"}):
        assert phone_problem(read_plan([*fine, line])).startswith("step 5 of the plan: ")
    with pytest.raises(TaskError, match="step 1 of the plan: a phone has no key Escape"):
        check_touches([Task(id="t", description="d", env="browser", plan=({"key": "Escape"},))])


def test_one_visible_element_must_be_meant() -> None:
    hidden, low = Seen("", None, "is hidden"), Seen("", None, "lies below what is shown")
    one, two = Seen("1", (0, 0, 9, 9), ""), Seen("2", (0, 9, 9, 18), "")
    assert chosen([hidden, one], SAVE) is one
    assert chosen([one, hidden, two], Target("css", "a", nth=2)) is two
    for seen, target, said in (
        ([], SAVE, "nothing on the page matches"),
        ([low], SAVE, "it lies below what is shown"),
        ([hidden, low], SAVE, "it is hidden (the first of 2 that match)"),
        ([one, two], SAVE, "2 visible elements match: say which, as by nth: 1"),
        ([one, hidden], Target("css", "a", nth=2), "only 1 visible match"),
    ):
        with pytest.raises(NotSeen) as caught:
            chosen(seen, target)
        assert str(caught.value) == said
