"""What a person did, as lines of a plan and as suggested checks."""

import pytest

from cuarl.env.browser.plan import read_plan
from cuarl.env.plans.seeing import Named
from cuarl.tasks.task import Task
from cuarl.types import Click, Key, Scroll, TypeText, Wait
from cuarl.workflow.plan_lines import PlanLines
from cuarl.workflow.task_recording import suggested_checks, task_record

SAVE, NAME = Named({"text": "Save"}, False), Named({"label": "Name"}, True)
CODE = Named({"css": "#code"}, True)
TAP = Click(x=1, y=1)


@pytest.mark.parametrize(
    ("done", "plan"),
    [
        ([(TAP, SAVE)], [{"click": "Save"}]),
        ([(Click(x=1, y=1, button="right", count=2), SAVE)], [{"click": "Save", "button": "right", "count": 2}]),
        ([(TAP, NAME), (TypeText(text="Zoe"), None)], [{"type": "Zoe", "into": "Name"}]),
        (
            [(TAP, CODE), (TypeText(text="7", submit=True), None)],
            [{"type": "7", "into": {"css": "#code"}, "submit": True}],
        ),
        ([(TAP, SAVE), (TypeText(text="Zoe"), None)], [{"click": "Save"}, {"type": "Zoe"}]),
        ([(Key(keys=("ctrl", "a")), None)], [{"key": "ctrl+a"}]),
        ([(Key(keys=("Down",), count=2), None)], [{"key": "Down"}, {"key": "Down"}]),
        ([(Scroll(direction="down"), None)], [{"scroll": "down", "amount": 300}]),
        (
            [(Scroll(direction="down"), None), (Scroll(direction="down"), None), (TAP, SAVE)],
            [{"scroll": "down", "until": "Save"}, {"click": "Save"}],
        ),
        ([(Wait(), None), (TAP, SAVE), (TAP, SAVE)], [{"wait_for": "Save"}, {"click": "Save"}, {"click": "Save"}]),
    ],
)
def test_what_is_done_is_said_as_a_plan_says_it(done, plan):
    recorded = PlanLines()
    for action, named in done:
        recorded.note(action, named, moved=False)
    assert recorded.lines == plan
    read_plan(recorded.lines)


def test_what_comes_behind_another_page_is_waited_for():
    recorded = PlanLines()
    recorded.note(TAP, SAVE, moved=True)
    recorded.note(TAP, SAVE, moved=False)
    recorded.end("12")
    assert recorded.lines == [{"click": "Save"}, {"wait_for": "Save"}, {"click": "Save"}, {"answer": "12"}]


def test_checks_are_suggested_of_what_is_new():
    before = {"url": "http://h/a?q", "title": "A", "text": "Name\nSave", "app": {"cart": 0, "user": {"in": False}}}
    after = {
        "url": "http://h/b?r",
        "title": "B",
        "text": "Name\nThank you\nSave",
        "app": {"cart": 2, "user": {"in": False}},
    }
    assert suggested_checks(before, after, "2") == [
        {"path": "app.cart", "value": 2},
        {"path": "text", "op": "contains", "value": "Thank you"},
        {"path": "url", "op": "contains", "value": "/b"},
        {"path": "answer", "op": "icontains", "value": "2"},
    ]
    assert suggested_checks(before, before, None) == []


def test_a_record_is_named_by_its_goal():
    worked = Task(id="a", env="browser", description="Put a lamp, red, into the cart!", preset={"url": "http://h/"})
    made = task_record(worked, [{"click": "Buy"}], worked.preset, [])
    assert (made["id"], made["max_steps"]) == ("put_a_lamp_red_into_the_cart", 6)
