"""BrowserGym's action strings: what each means, what comes back, what is refused."""

from __future__ import annotations

import pytest

from cuarl.env.browsergym.actions import UnmappedAction, read, write
from cuarl.types import (
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

PAIRS: list[tuple[str, list[Action]]] = [
    ("mouse_click(12, 30, button='right')", [Click(x=12, y=30, button="right")]),
    ("mouse_dblclick(1, 2, button='left')", [Click(x=1, y=2, count=2)]),
    ("mouse_move(3, 4)", [Move(x=3, y=4)]),
    ("mouse_drag_and_drop(1, 2, 3, 4)", [Drag(path=((1, 2), (3, 4)))]),
    ("scroll(0, -200)", [Scroll(direction="up", amount=200)]),
    ("scroll(50, 0)", [Scroll(direction="right", amount=50)]),
    ("keyboard_type('it\\'s\\n\"ü\"')", [TypeText(text='it\'s\n"ü"')]),
    ("keyboard_press('Control+a')", [Key(keys=("Control", "a"))]),
    ("keyboard_press('Control++')", [Key(keys=("Control", "+"))]),
    ("mouse_down(3, 4, button='left')", [MouseDown(x=3, y=4)]),
    ("mouse_up(3, 4, button='right')", [MouseUp(x=3, y=4, button="right")]),
    ("keyboard_down('Shift')", [KeyDown(key="Shift")]),
    ("keyboard_up('Shift')", [KeyUp(key="Shift")]),
    ("go_back()", [Button(name="back")]),
    ("noop(1500)", [Wait(seconds=1.5)]),
    ("send_msg_to_user('42')", [Answer(text="42")]),
    ("report_infeasible('no such page')", [Finish(success=False, message="no such page")]),
]


@pytest.mark.parametrize(("text", "actions"), PAIRS, ids=[text.partition("(")[0] for text, _ in PAIRS])
def test_each_call_is_read_and_written_back_to_the_same_meaning(text: str, actions: list[Action]) -> None:
    assert read(text) == actions
    assert read("\n".join(write(action) for action in actions)) == actions


def test_what_fingers_do_is_written_as_the_mouse_does_it() -> None:
    assert write(Swipe(x=1, y=2, x2=3, y2=4)) == "mouse_drag_and_drop(1, 2, 3, 4)"
    assert write(LongPress(x=1, y=2, duration_ms=700)) == "mouse_down(1, 2)\nnoop(700)\nmouse_up(1, 2)"
    assert write(Button(name="enter")) == "keyboard_press('Enter')"


def test_held_keys_and_repeats_are_calls_of_their_own() -> None:
    held = "keyboard_down('Control')\nmouse_click(1, 2, button='left')\nkeyboard_up('Control')"
    assert write(Click(x=1, y=2, held=("ctrl",))) == held
    assert write(Key(keys=("Down",), count=2)) == "keyboard_press('ArrowDown')\nkeyboard_press('ArrowDown')"


def test_a_scroll_at_a_place_is_read() -> None:
    assert read("scroll_at(5, 6, 0, -9)") == [Scroll(x=5, y=6, direction="up", amount=9)]


def test_a_placed_scroll_and_a_submit_are_two_calls() -> None:
    assert write(Scroll(x=5, y=6, direction="left", amount=7)) == "mouse_move(5, 6)\nscroll(-7, 0)"
    assert read(write(TypeText(text="a", submit=True))) == [TypeText(text="a"), Key(keys=("Enter",))]


@pytest.mark.parametrize(
    "text",
    ["click('12')", "mouse_click(1)", "mouse_click(-5, 2)", "mouse_click(open('x'), 2)", "x = 1", "noop(", "a.b(1)"],
)
def test_what_names_no_place_or_is_no_call_of_literals_is_refused(text: str) -> None:
    with pytest.raises(UnmappedAction):
        read(text)


@pytest.mark.parametrize("action", [Click(x=1, y=1, count=3), Button(name="power"), Key(keys=("Hyper",))])
def test_an_action_without_a_call_is_refused(action: Action) -> None:
    with pytest.raises(UnmappedAction):
        write(action)
