"""One table of keys: every name leads to one key, and every side's words are that side's own."""

from __future__ import annotations

import pytest

from cuarl.env.browser.keys import names_of
from cuarl.env.linux.keyboard import Untypable, check_key
from cuarl.keys import KEYS, named, parts
from cuarl.sim.desktop.keyboard import chord
from cuarl.types import ACTION, Click, Key


@pytest.mark.parametrize(
    ("name", "x", "web", "android"),
    [
        ("Return", "Return", "Enter", 66), ("ENTER", "Return", "Enter", 66), ("pgdn", "Page_Down", "PageDown", 93),
        ("Next", "Page_Down", "PageDown", 93), ("ArrowLeft", "Left", "ArrowLeft", 21), ("cmd", "Super_L", "Meta", 117),
        ("option", "Alt_L", "Alt", 57), ("Control_R", "Control_R", "Control", 114), ("KeyA", "a", "a", 29),
        ("winright", "Super_R", "Meta", 118), ("Digit7", "7", "7", 14), ("num7", "KP_7", "Numpad7", 151),
        ("kp_enter", "KP_Enter", "Enter", 160), ("bracketleft", "bracketleft", "[", 71), ("[", "bracketleft", "[", 71),
        ("spacebar", "space", "Space", 62), ("F12", "F12", "F12", 142), ("volumeUp", "XF86AudioRaiseVolume", None, 24),
    ],
)  # fmt: skip
def test_a_key_is_known_by_the_names_of_all_families(name, x, web, android):
    key = named(name)
    assert key is not None and (key.x, key.web, key.android) == (x, web, android)


def test_each_key_is_found_by_its_own_name_and_no_two_share_one():
    assert [key for key in KEYS if named(key.x) is not key] == []
    assert len({key.x for key in KEYS}) == len(KEYS)


def test_strange_names_are_none():
    assert [named(name) for name in ("hyper", "", "F25", "Down Down", "é")] == [None] * 5


@pytest.mark.parametrize(
    ("given", "found"),
    [(("ctrl+c",), ["ctrl", "c"]), (("ctrl", "+"), ["ctrl", "+"]), (("ctrl++",), ["ctrl", "+"]), (("++",), ["+"]),
     (("ctrl+",), ["ctrl", ""]), (("+",), ["+"])],
)  # fmt: skip
def test_a_chord_in_one_word_is_taken_apart(given, found):
    assert parts(given) == found


def test_keysyms_are_those_of_x():
    xk = pytest.importorskip("Xlib.XK", reason="pip install 'cuarl[linux]'")
    unknown = [key.x for key in KEYS if not xk.string_to_keysym(key.x) and not key.x.startswith("XF86")]
    assert unknown == []
    check_key("pgdn")
    for name in ("Hyper_Q", "ctrl+c"):
        with pytest.raises(Untypable):
            check_key(name)


def test_the_browsers_and_the_simulated_desktops_names_are_derived():
    assert names_of(("cmd", "pgup", "É")) == ["Meta", "PageUp", "É"]
    assert chord(("cmd", "pgdn")) == "super+next" and chord(("KP_Enter",)) == "return" and chord(("space",)) == " "


def test_records_say_held_keys_and_counts_only_where_there_are_some():
    assert Click(x=1, y=2).model_dump() == {"kind": "click", "x": 1, "y": 2, "button": "left", "count": 1}
    assert Key(keys=("a",)).model_dump() == {"kind": "key", "keys": ("a",)}
    for action in (Click(x=1, y=2, held=("ctrl",)), Key(keys=("a",), count=3)):
        assert ACTION.validate_json(action.model_dump_json()) == action
