"""Actions of gbox-mini-agent: shares of the screen become pixels, and every action of ours survives the way there and
back."""

from __future__ import annotations

import pytest

from cuarl.env.gym.actions import read_action
from cuarl.local.mini_agent import wire_args, wire_name
from cuarl.types import (
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    OpenApp,
    ParseError,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)
from tests.unit.policy.pictures import screen

SIZE = (200, 400)


@pytest.mark.parametrize(
    "action",
    [
        Click(x=0, y=0), Click(x=199, y=399), LongPress(x=10, y=20, duration_ms=700), Drag(path=((1, 2), (3, 4))),
        Swipe(x=5, y=300, x2=5, y2=100, duration_ms=250), TypeText(text="hé {x}"), Key(keys=("ctrl", "c")),
        Button(name="back"), Button(name="volume_up"), Wait(seconds=2.0), Finish(success=True, message="42"),
        Finish(success=False, message=""),
    ],
)  # fmt: skip
def test_there_and_back(action):
    shown = screen(1, *SIZE)
    assert read_action(wire_name(action), wire_args(action, shown), SIZE) == action


@pytest.mark.parametrize(
    ("name", "args", "action"),
    [
        ("Tap", {"point": {"x": 1.0, "y": 1}}, Click(x=199, y=399)),
        ("double_click", {"point": {"x": 0.5, "y": 0.5}}, Click(x=100, y=200, count=2)),
        ("swipe", {"direction": "up"}, Swipe(x=100, y=200, x2=100, y2=66)),
        ("scroll", {"direction": "DOWN", "point": {"x": 0.5, "y": 0.5}}, Scroll(x=100, y=200, direction="down")),
        ("drag", {"target": {"x": 0, "y": 0}, "destination": {"x": 0.5, "y": 0.5}}, Drag(path=((0, 0), (100, 200)))),
        ("pressHome", {}, Button(name="home")),
        ("press_key", {"key": "Enter"}, Button(name="enter")),
        ("openApp", {"content": "Maps"}, OpenApp(name="Maps")),
        ("wait", {}, Wait(seconds=1.0)),
        ("finished", {"content": "done"}, Finish(success=True, message="done")),
    ],
)
def test_other_wordings(name, args, action):
    assert read_action(name, args, SIZE) == action


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("levitate", {}, "unsupported_action"), ("click", {}, "missing_argument"),
        ("click", {"point": [1, 2]}, "bad_argument"),
        ("click", {"point": {"x": 500, "y": 500}}, "bad_argument"), ("type", {}, "missing_argument"),
        ("click", {"point": {"x": float("nan"), "y": 0}}, "bad_argument"),
        ("scroll", {"direction": "in"}, "bad_argument"),
        ("swipe", {"direction": "in"}, "missing_argument"), ("pressKey", {"key": 3}, "bad_argument"),
    ],
)  # fmt: skip
def test_what_is_no_action_says_why(name, args, code):
    found = read_action(name, args, SIZE)
    assert isinstance(found, ParseError) and found.code == code
