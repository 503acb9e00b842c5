"""Actions as commands, and apps by their names: pure."""

import pytest

from cuarl.env.adb.apps import package_of
from cuarl.env.adb.commands import commands, refusal
from cuarl.types import Click, Drag, Key, Scroll, TypeText, Wait

SIZE = (100, 200)


@pytest.mark.parametrize(
    ("action", "lines"),
    [
        (Click(x=1, y=2, count=2), ["input tap 1 2; input tap 1 2"]),
        (TypeText(text="a b%s", submit=True), ["input text a%sb% && input text s && input keyevent 66"]),
        (TypeText(text="two\nlines"), ["input text two && input keyevent 66 && input text lines"]),
        (TypeText(text="$HOME 'q'"), ["""input text '$HOME%s'"'"'q'"'"''"""]),
        (TypeText(text=""), []),
        (Key(keys=("ctrl", "c")), ["input keycombination 113 31"]),
        (Key(keys=("Down",), count=3), ["input keyevent 20 20 20"]),
        (Key(keys=("ctrl", "z"), count=2), ["input keycombination 113 54; input keycombination 113 54"]),
        (Wait(seconds=1.5), ["sleep 1.5"]),
        (Drag(path=((1, 2), (3, 4)), duration_ms=70), ["input draganddrop 1 2 3 4 70"]),
    ],
    ids=str,
)
def test_an_action_is_what_androids_shell_calls_it(action, lines):
    assert commands(action, SIZE) == lines


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("Esc",), "input keyevent 111"), (("Del",), "input keyevent 112"), (("KP_Enter",), "input keyevent 160"),
        (("ARROWLEFT",), "input keyevent 21"), (("ctrl+shift+t",), "input keycombination 113 59 48"),
        (("CTRL", "C"), "input keycombination 113 31"), (("A",), "input keycombination 59 29"),
        (("a",), "input keyevent 29"),
        (("PgDn",), "input keyevent 93"), (("Option",), "input keyevent 57"), (("+",), "input keyevent 81"),
        (("Page_Down",), "input keyevent 93"), (("super", "d"), "input keycombination 117 32"),
    ],
    ids=str,
)  # fmt: skip
def test_b27_keys_are_understood_by_their_other_names(keys, line):
    assert refusal(Key(keys=keys), SIZE, unicode=False) == ""
    assert commands(Key(keys=keys), SIZE) == [line]


@pytest.mark.parametrize("key", ["Hyper", "Down Down", "F25", "é", "ctrl+nothing", ""])
def test_b27_keys_that_are_not_there_are_refused_by_name(key):
    assert f"a phone has no key {key.rpartition('+')[2].lower()}" in refusal(Key(keys=(key,)), SIZE, unicode=False)


def test_keys_are_not_held_during_a_tap():
    reason = refusal(Click(x=1, y=2, held=("ctrl", "shift")), SIZE, unicode=False)
    assert reason == "a phone can't hold ctrl+shift during a click"


def test_text_beyond_ascii_goes_through_the_other_keyboard_or_is_refused_before_anything_is_typed():
    (line,) = commands(TypeText(text="ñ"), SIZE)
    assert "ADB_INPUT_B64 --es msg w7E=" in line
    assert "ADBKeyBoard" in refusal(TypeText(text="ñ"), SIZE, unicode=False)
    assert refusal(TypeText(text="ñ"), SIZE, unicode=True) == ""


def test_scrolls_stay_on_the_screen_and_add_up():
    lines = commands(Scroll(x=50, y=150, direction="down", amount=400), SIZE)
    spans = [tuple(map(int, line.split()[2:6])) for line in lines]
    assert all((x, x2, y) == (50, 50, 150) and 0 <= y2 < 200 for x, y, x2, y2 in spans)
    assert sum(y - y2 for _, y, _, y2 in spans) == 400
    (turned,) = commands(Scroll(x=50, y=150, direction="right", amount=400), SIZE)
    assert turned.split()[2:6] == ["50", "150", "0", "150"]


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("Settings", "com.android.settings"), ("mail", "com.google.android.gm"),
        ("org.example.notes", "org.example.notes"),
        ("Notes", "org.example.notes"), ("Shop", "com.android.vending"), ("Lost", None), ("twin", None), ("Doom", None),
    ],
)  # fmt: skip
def test_an_app_is_found_by_what_people_call_it(name, package):
    installed = [
        "com.android.settings",
        "com.google.android.gm",
        "org.example.notes",
        "com.android.vending",
        "a.twin",
        "b.twin",
    ]
    assert package_of(name, installed, {"Shop": "com.android.vending", "Lost": "org.gone"}) == package
