"""What a person did on a desktop, as lines of a plan."""

import pytest

from cuarl.env.linux.plan import PlanOracle
from cuarl.env.linux.windows import Window
from cuarl.types import Click, Drag, Key, LongPress, OpenApp, Scroll, TypeText
from cuarl.workflow.desktop_recording import Unsayable, line_of, suggested_checks

LOOKS = {"title": "", "top": 20, "focused": False, "minimised": False, "maximised": False, "dialog": False}
WINDOWS = [
    Window(app="mousepad", x=10, y=40, width=200, height=100, **LOOKS),
    Window(app="xterm", x=100, y=60, width=200, height=100, **LOOKS),
]
DONE = [
    (Click(x=20, y=50), {"click": "mousepad", "at": [10, 10]}),
    (Click(x=150, y=70, button="right", count=2), {"click": "xterm", "at": [50, 10], "button": "right", "count": 2}),
    (Click(x=291, y=50), {"title": "xterm", "button": "close"}),
    (Drag(path=((150, 50), (170, 60))), {"move": "xterm", "by": [20, 10]}),
    (Scroll(x=150, y=100, direction="up", amount=3, unit="notch"), {"scroll": "xterm", "notches": -3}),
    (TypeText(text="ls", submit=True), {"type": "ls", "submit": True}),
    (Key(keys=("ctrl", "s")), {"key": "ctrl+s"}),
    (OpenApp(name="Files"), {"open": "Files"}),
]


@pytest.mark.parametrize(("action", "line"), DONE)
def test_what_is_done_is_said_within_windows_and_the_plan_does_it_again(action, line):
    assert line_of(action, WINDOWS) == line
    again = PlanOracle([line]).next(WINDOWS, (640, 480))
    # a window is moved by the middle of its title bar, and scrolled at its own middle
    assert line_of(again, WINDOWS) == line and type(again) is type(action)


@pytest.mark.parametrize(
    "action",
    [
        Click(x=500, y=400),
        LongPress(x=20, y=50),
        Drag(path=((20, 50), (30, 60))),
        Click(x=20, y=50, held=("ctrl",)),
        Key(keys=("Down",), count=2),
    ],
)
def test_what_a_plan_can_not_say_is_refused(action):
    with pytest.raises(Unsayable):
        line_of(action, WINDOWS)


def test_checks_are_suggested_of_files():
    before = {"files": [{"path": "a", "text": "1"}, {"path": "b", "text": "2"}]}
    after = {"files": [{"path": "a", "text": "3"}, {"path": "m", "folder": True, "text": None}]}
    assert suggested_checks(before, after, None) == [
        {"path": "files", "op": "has", "value": {"path": "a", "text": "3"}},
        {"path": "files", "op": "has", "value": {"path": "m", "folder": True}},
        {"path": "files", "op": "lacks", "value": {"path": "b"}},
    ]
