"""Keys in the words of GBox: those of its own client, by whatever name a policy gives them."""

from __future__ import annotations

import typing

import pytest

from cuarl.env.gbox.keys import UnknownKey, chord
from cuarl.keys import KEYS as TABLE
from cuarl.local.box import KEYS

NAMES = {key.gbox for key in TABLE if key.gbox}


def test_names_are_those_of_gboxs_own_client():
    pytest.importorskip("gbox_sdk", reason="GBox's own client is a development dependency: pip install gbox-sdk")
    from gbox_sdk.types.v1.boxes.action_press_key_params import KeysType

    assert set(typing.get_args(typing.get_args(KeysType)[0])) == KEYS


def test_the_table_of_keys_has_names_of_boxes_alone_and_all_but_other_names_for_meta_and_alt():
    assert set(KEYS) - NAMES == {"win", "cmd", "option"} and set(KEYS) >= NAMES


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (("ctrl", "c"), ["control", "c"]), (("CTRL", "SHIFT", "T"), ["control", "shift", "t"]),
        (("ctrl+s",), ["control", "s"]),
        (("Return",), ["enter"]), (("Page_Up",), ["pageUp"]), (("PAGEDOWN",), ["pageDown"]), (("Prior",), ["pageUp"]),
        (("Up",), ["arrowUp"]), (("ArrowLeft",), ["arrowLeft"]), (("super", "d"), ["meta", "d"]),
        (("Esc",), ["escape"]),
        (("BackSpace",), ["backspace"]), (("Caps_Lock",), ["capsLock"]), (("F12",), ["f12"]), ((" ",), ["space"]),
        (("A",), ["shift", "a"]), (("ctrl", "bracketleft"), ["control", "["]), (("KP_Enter",), ["numpadEnter"]),
        (("Print",), ["printScreen"]), (("7",), ["7"]), (("-",), ["-"]),
    ],
    ids=str,
)  # fmt: skip
def test_key_is_sent_under_its_name_there(keys, sent):
    assert chord(keys) == sent


@pytest.mark.parametrize("keys", [("hyper",), ("ctrl", "+"), ("",), ("ctrl", "é"), ("F13",), ("control c",)], ids=str)
def test_key_that_is_not_there_raises(keys):
    with pytest.raises(UnknownKey, match="a box has no key"):
        chord(keys)
