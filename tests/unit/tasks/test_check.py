from __future__ import annotations

import copy
from typing import Any

import pytest

from cuarl.errors import RewardError
from cuarl.tasks.check import evaluate, verdict
from cuarl.tasks.operators import check_problem
from cuarl.tasks.paths import Unreadable
from cuarl.tasks.side_effects import unasked_changes
from cuarl.tasks.task import Check, TaskInstance

STATE: dict[str, Any] = {
    "wifi": True,
    "brightness": 200,
    "note": "Milk 183 g",
    "empty_list": [],
    "ui": {"page": "home"},
    "contacts": [{"name": "Ada", "phone": "1", "starred": False}, {"name": "Eva", "phone": "2", "starred": False}],
    "alarms": [{"minutes": 450, "enabled": True, "label": ""}, {"minutes": 555, "enabled": False, "label": ""}],
    "bookmarks": ["a.test", "b.test"],
    "apps": {"ig": {"package": "com.ig", "installed": True, "running": False},
        "fb": {"package": "com.fb", "installed": True}},
}  # fmt: skip


def passes(op: str, value: Any, path: str = "brightness", answer: str | None = None) -> bool:
    return evaluate(Check.model_validate({"path": path, "op": op, "value": value}), STATE, answer).passed


@pytest.mark.parametrize(
    ("path", "op", "value", "holds"),
    [
        ("brightness", "equals", 200, True),
        ("brightness", "equals", 200.0, True),
        ("brightness", "not_equals", 200, False),
        ("brightness", "ge", 200, True),
        ("brightness", "ge", 201, False),
        ("brightness", "le", 199.5, False),
        ("brightness", "between", [180, 220], True),
        ("brightness", "between", [201, 220], False),
        ("wifi", "equals", True, True),
        ("wifi", "equals", None, False),
        ("note", "contains", "Milk", True),
        ("note", "contains", "milk", False),
        ("note", "not_contains", "milk", True),
        ("note", "icontains", "MILK", True),
        ("note", "icontains", 83, False),
        ("note", "icontains", "183g", True),
        ("note", "matches", r"\d{3} g$", True),
        ("note", "empty", None, False),
        ("note", "not_empty", None, True),
        ("empty_list", "empty", None, True),
        ("bookmarks", "contains", "a.test", True),
        ("bookmarks", "has", "a.test", True),
        ("bookmarks", "lacks", "a.test", False),
        ("contacts", "has", {"name": "Ada", "phone": "1"}, True),
        ("contacts", "has", {"name": "Ada", "phone": "2"}, False),
        ("contacts", "lacks", {"name": "Bob"}, True),
        ("apps", "has", {"package": "com.ig", "installed": True}, True),
        ("apps", "lacks", {"package": "com.ig", "installed": True}, False),
        ("contacts.0.name", "equals", "Ada", True),
        ("contacts.7.name", "equals", "Ada", False),
        ("contacts.7.name", "not_contains", "A", True),
        ("contacts.7.phone", "ge", 1, False),
    ],
)
def test_an_operator_holds_when_it_should(path: str, op: str, value: Any, holds: bool) -> None:
    assert passes(op, value, path) is holds


@pytest.mark.parametrize(
    ("answer", "op", "value", "holds"),
    [
        ("The brightness is at 83%.", "icontains", 83, True),
        ("The brightness is at 83 %.", "icontains", "83%", True),
        ("It is 83.", "icontains", "83", True),
        ("It is 183", "icontains", "83", False),
        ("It is 83.5", "icontains", "83", False),
        ("It is 1.83", "icontains", "83", False),
        ("It uses 73.73\u00a0kb of space", "icontains", "73.73KB", True),
        ("It uses 173.73 KB", "icontains", "73.73KB", False),
        ("about 83", "equals", 83, True),
        ("83 of 100", "equals", 83, False),
        ("no idea", "equals", 83, False),
        ("no idea", "not_equals", 83, True),
        ("Level: 40", "between", [39, 41], True),
        ("It is 1 2 3 … 40", "ge", 40, False),
        (" Berlin ", "equals", "Berlin", True),
        (None, "icontains", "x", False),
        (None, "ge", 1, False),
        (None, "empty", None, True),
    ],
)
def test_an_answer_is_read_as_people_read_it(answer: str | None, op: str, value: Any, holds: bool) -> None:
    assert passes(op, value, "answer", answer) is holds


@pytest.mark.parametrize(
    ("path", "op", "value"),
    [
        ("wifi", "ge", 1),
        ("wifi", "equals", "on"),
        ("brightness", "equals", "200"),
        ("brightness", "not_equals", True),
        ("brightness", "contains", "2"),
        ("brightness", "empty", None),
        ("brightness", "has", 1),
        ("brightness", "between", [1]),
        ("note", "matches", "("),
        ("brighness", "equals", 1),
    ],
)
def test_a_check_that_cant_be_read_is_an_error_not_a_failure(path: str, op: str, value: Any) -> None:
    with pytest.raises(RewardError):
        passes(op, value, path)


def test_evidence_is_what_was_found() -> None:
    found = evaluate(Check(path="brightness", op="ge", value=250), STATE)
    assert (found.actual, found.expected, found.passed) == (200, 250, False)
    assert evaluate(Check(path="contacts", op="lacks", value={"name": "Ada"}), STATE).actual == STATE["contacts"][0]
    for op in ("has", "lacks"):  # nothing of the kind: what is there instead
        assert evaluate(Check(path="contacts", op=op, value={"name": "Bob"}), STATE).actual == STATE["contacts"]


@pytest.mark.parametrize(
    ("op", "value", "words"),
    [("ge", "3", "not a number"), ("between", [3, 1], "greater"), ("matches", "[", "unterminated"),
        ("empty", 1, "no value"),
     ("contains", "", "needs a value"), ("equals", None, None), ("has", {"a": 1}, None), ("between", [1, 2], None)],
)  # fmt: skip
def test_a_bad_check_is_seen_before_it_is_used(op: str, value: Any, words: str | None) -> None:
    problem = check_problem(Check.model_validate({"path": "x", "op": op, "value": value}))
    assert problem is None if words is None else words in str(problem)


# --- verdicts ------------------------------------------------------------------------------------------------------


def instance(*checks: Check, allow: tuple[str, ...] = ()) -> TaskInstance:
    return TaskInstance(task_id="t", goal="g", checks=checks, allow=allow)


def after(**replaced: Any) -> dict[str, Any]:
    return {**copy.deepcopy(STATE), **replaced}


WIFI_OFF = Check(path="wifi", value=False)
DIM = Check(path="brightness", op="le", value=20)


def test_a_task_is_done_when_all_checks_hold_and_nothing_else_changed() -> None:
    judged = verdict(instance(WIFI_OFF, DIM), STATE, after(wifi=False, brightness=10), claimed=True)
    assert (judged.success, judged.score, judged.side_effects, judged.false_completion) == (True, 1.0, (), False)
    assert [c.passed for c in judged.checks] == [True, True]


def test_the_score_is_the_share_of_checks_that_hold() -> None:
    judged = verdict(instance(WIFI_OFF, DIM), STATE, after(wifi=False), claimed=True)
    assert (judged.success, judged.score, judged.false_completion) == (False, 0.5, True)


def test_a_side_effect_spoils_success_unless_it_is_only_reported() -> None:
    end = after(wifi=False, brightness=10)
    judged = verdict(instance(WIFI_OFF), STATE, end)
    assert (judged.success, judged.score, judged.side_effects) == (False, 0.5, ("brightness",))
    reported = verdict(instance(WIFI_OFF), STATE, end, side_effects="report")
    assert (reported.success, reported.score, reported.side_effects) == (True, 0.5, ("brightness",))


def test_what_the_task_or_the_device_lets_change_is_no_side_effect() -> None:
    end = after(wifi=False, brightness=10, ui={"page": "settings"})
    assert verdict(instance(WIFI_OFF, allow=("bright*",)), STATE, end, volatile=("ui.*",)).success
    assert unasked_changes(instance(WIFI_OFF), STATE, end) == ("brightness", "ui.page")


def test_there_is_no_verdict_without_checks_or_without_the_path() -> None:
    with pytest.raises(RewardError, match="has no checks"):
        verdict(instance(), STATE, STATE)
    with pytest.raises(RewardError, match='did you mean "wifi"'):
        verdict(instance(Check(path="wify", value=False)), STATE, STATE)


ADA, EVA = STATE["contacts"]
EARLY, LATE = STATE["alarms"]
BOB = {"name": "Bob", "phone": "9", "starred": False}


def has(path: str, **value: Any) -> Check:
    return Check(path=path, op="has", value=value)


def lacks(path: str, **value: Any) -> Check:
    return Check(path=path, op="lacks", value=value)


@pytest.mark.parametrize(
    ("checks", "end", "side_effects"),
    [
        pytest.param([has("contacts", name="Bob")], {"contacts": [ADA, BOB, EVA]}, (), id="asked item comes"),
        pytest.param(
            [has("contacts", name="Bob")],
            {"contacts": [ADA, BOB]},
            ("contacts.1.name", "contacts.1.phone"),
            id="another is overwritten",
        ),
        pytest.param(
            [has("contacts", name="Bob")],
            {"contacts": [BOB, ADA, {**EVA, "starred": True}]},
            ("contacts.2.starred",),
            id="another is altered too",
        ),
        pytest.param(
            [has("contacts", name="Bob")],
            {"contacts": [ADA, EVA, BOB, {**BOB, "name": "Cid", "phone": "7"}]},
            ("contacts.3",),
            id="one too many comes",
        ),
        pytest.param([lacks("contacts", name="Ada")], {"contacts": [EVA]}, (), id="asked item goes"),
        pytest.param([lacks("contacts", name="Ada")], {"contacts": []}, ("contacts.1",), id="another goes too"),
        pytest.param(
            [has("contacts", name="Ada", starred=True)],
            {"contacts": [{**ADA, "starred": True}, EVA]},
            (),
            id="asked field altered",
        ),
        pytest.param(
            [has("contacts", name="Ada", starred=True)],
            {"contacts": [{**ADA, "starred": True, "phone": "5"}, EVA]},
            ("contacts.0.phone", "contacts.0.starred"),
            id="more than the asked field altered",
        ),
        pytest.param(
            [has("alarms", minutes=480)],
            {"alarms": [{**EARLY, "minutes": 480}, LATE]},
            ("alarms.0.minutes",),
            id="new alarm asked, old one moved",
        ),
        pytest.param(
            [has("alarms", minutes=480), lacks("alarms", minutes=450)],
            {"alarms": [{**EARLY, "minutes": 480}, LATE]},
            (),
            id="alarm asked to be moved",
        ),
        pytest.param(
            [lacks("alarms", minutes=450)],
            {"alarms": [{**EARLY, "minutes": 460}, LATE]},
            ("alarms.0.minutes",),
            id="deletion asked, alarm moved",
        ),
        pytest.param(
            [Check(path="alarms.1.enabled", value=True)],
            {"alarms": [EARLY, {**LATE, "enabled": True}]},
            (),
            id="leaf of an item by position",
        ),
        pytest.param(
            [Check(path="alarms.1.enabled", value=True)],
            {"alarms": [EARLY, {**LATE, "enabled": True, "label": "x"}]},
            ("alarms.1.label",),
            id="another leaf of that item",
        ),
        pytest.param(
            [Check(path="bookmarks", op="has", value="c.test")],
            {"bookmarks": ["c.test", "a.test", "b.test"]},
            (),
            id="asked scalar comes",
        ),
        pytest.param(
            [Check(path="bookmarks", op="has", value="c.test")],
            {"bookmarks": ["c.test", "a.test"]},
            ("bookmarks",),
            id="another scalar goes",
        ),
        pytest.param(
            [lacks("apps", package="com.ig", installed=True)],
            {"apps": {**STATE["apps"], "ig": {**STATE["apps"]["ig"], "installed": False}}},
            (),
            id="app uninstalled",
        ),
        pytest.param(
            [lacks("apps", package="com.ig", installed=True)],
            {"apps": {k: {**v, "installed": False} for k, v in STATE["apps"].items()}},
            ("apps.fb.installed",),
            id="another app uninstalled too",
        ),
        pytest.param([Check(path="bookmarks", op="empty")], {"bookmarks": []}, (), id="list asked to be emptied"),
    ],
)
def test_only_the_asked_change_of_an_item_is_no_side_effect(
    checks: list[Check], end: dict[str, Any], side_effects: tuple[str, ...]
) -> None:
    judged = verdict(instance(*checks), STATE, after(**end))
    assert all(check.passed for check in judged.checks)
    assert judged.side_effects == side_effects


def test_of_a_long_list_without_the_item_the_first_ones_are_shown_and_the_rest_counted():
    found = evaluate(Check(path="cart", op="has", value="lamp"), {"cart": [f"item {n}" for n in range(50)]})
    assert not found.passed
    assert found.actual == [*(f"item {n}" for n in range(20)), "and 30 more"]
    assert evaluate(Check(path="cart", op="has", value="lamp"), {"cart": []}).actual == []


def test_what_could_not_be_read_is_no_value():
    state = {"read": {"total": Unreadable("document.title gives TypeError")}}
    for path in ("read.total", "read.total.amount"):
        with pytest.raises(RewardError, match=r'"read.total" can\'t be read: document.title gives TypeError'):
            evaluate(Check(path=path, op="not_equals", value=1), state)
