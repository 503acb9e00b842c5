"""Plans for devices, refused before anything starts where the device can't take a step."""

from __future__ import annotations

from typing import Any

import pytest

from cuarl.env.adb.plan import ON_PHONES
from cuarl.env.gbox.plan import ABILITIES as IN_BOXES
from cuarl.env.plans.devices import read_plan
from cuarl.env.plans.steps import (
    AnswerStep,
    ClickStep,
    KeyStep,
    LongPressStep,
    OpenStep,
    PauseStep,
    PressStep,
    RunStep,
    ScrollStep,
    TypeStep,
    WaitStep,
)
from cuarl.env.plans.targets import Target
from cuarl.env.pods.plan import IN_SESSIONS
from cuarl.errors import TaskError


def test_each_step_is_read() -> None:
    lines: list[dict[str, Any]] = [
        {"open": "Clock"},
        {"press": "back"},
        {"click": {"id": "save"}, "count": 2},
        {"click": {"at": [12, 40]}},
        {"click": {"at": "12, 40"}},
        {"long_press": {"description": "Alarm", "nth": 2}},
        {"type": "Zoe", "into": "Name"},
        {"key": "ctrl+a"},
        {"scroll": "down", "until": "Save"},
        {"wait_for": {"class": "Switch"}, "seconds": 9},
        {"wait": 1},
        {"answer": {"id": "title"}},
    ]
    assert read_plan(lines, ON_PHONES) == (
        OpenStep("Clock"),
        PressStep("back"),
        ClickStep(Target("id", "save"), count=2),
        ClickStep(Target("at", "", at=(12, 40))),
        ClickStep(Target("at", "", at=(12, 40))),
        LongPressStep(Target("description", "Alarm", nth=2)),
        TypeStep("Zoe", Target("label", "Name")),
        KeyStep(("ctrl", "a")),
        ScrollStep("down", until=Target("text", "Save")),
        WaitStep(Target("class", "Switch"), 9.0),
        PauseStep(1.0),
        AnswerStep(Target("id", "title")),
    )
    assert read_plan([{"run": "ls"}], IN_BOXES["linux"]) == (RunStep("ls"),)


@pytest.mark.parametrize(
    ("abilities", "line", "said"),
    [
        (ON_PHONES, {"tap": "Save"}, 'unknown step "tap"'),
        (ON_PHONES, {"click": {"css": "a"}}, "give one of text, description, id, class, label, at"),
        (ON_PHONES, {"click": {"at": [1]}}, "at is [1]: a pixel of the screenshot, [x, y]"),
        (ON_PHONES, {"click": {"at": [-1, 2]}}, "at is [-1, 2]"),
        (ON_PHONES, {"click": {"at": [1, 2], "nth": 1}}, "unknown key nth beside at"),
        (ON_PHONES, {"wait_for": {"at": [1, 2]}}, "a pixel is always there"),
        (ON_PHONES, {"answer": {"at": [1, 2]}}, "a pixel is always there"),
        (ON_PHONES, {"press": "bakc"}, "press is 'bakc': back, home"),
        (ON_PHONES, {"wait": 0}, "wait is 0: a number up to 60"),
        (ON_PHONES, {"key": "hyper"}, "a phone has no key hyper"),
        (ON_PHONES, {"click": "a", "button": "right"}, "a touch screen has no right button"),
        (ON_PHONES, {"run": "ls"}, "a phone behind adb shows no terminal to run a command in; preset.setup"),
        (IN_BOXES["android"], {"open": "Clock"}, "a box of type android has no open_app"),
        (IN_BOXES["linux"], {"press": "back"}, "a box of type linux has no button"),
        (IN_BOXES["linux"], {"click": {"id": "a"}}, "a box of type linux does not tell things by id: name a place by "
         "text, class or at"),
        (IN_SESSIONS, {"click": "Save"}, "another server does not tell things by text: name a place by at"),
        (IN_SESSIONS, {"type": "a", "into": "Name"}, "does not tell things by label"),
        (IN_SESSIONS, {"scroll": "left"}, "a session scrolls up and down only"),
        (IN_SESSIONS, {"long_press": {"at": [1, 2]}}, "a session has no long_press"),
    ],
)  # fmt: skip
def test_what_a_device_can_not_do_is_said_with_its_step(abilities: Any, line: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_plan([{"wait": 1}, line], abilities)
    assert caught.value.what.startswith("step 2 of the plan: ") and said in caught.value.what
