"""The names of keys: one row for each key, from which every environment takes the word that its device knows.

Policies name keys as their families do: as xdotool (``Page_Down``), as a page's KeyboardEvent and Playwright
(``PageDown``, ``ArrowLeft``, ``KeyA``), as pyautogui (``pgdn``, ``winleft``) or as a Mac (``cmd``, ``option``), in any
case. A key that is one character is named by that character.

Sources: keysymdef.h of X11; the table of named keys of the W3C's UI Events; ``android.view.KeyEvent``; gbox-sdk
0.1.0a41, ``ActionPressKeyParams``; pyautogui's ``KEYBOARD_KEYS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase, digits
from typing import NamedTuple


class KeyNames(NamedTuple):
    """One key. What a side does not have is None."""

    x: str
    """The X keysym: xdotool's name, and ours."""
    web: str | None
    """KeyboardEvent's ``key`` as Playwright presses it."""
    android: int | None
    """The key code."""
    gbox: str | None
    others: tuple[str, ...] = ()
    """Further names, in lower case."""
    char: str = ""
    """The character that the key stands for."""
    modifier: str = ""
    """``ctrl``, ``alt``, ``shift`` or ``super`` for a key that is held while others are pressed."""


def _held(modifier: str, x: str, web: str, codes: tuple[int, int], gbox: str, *others: str) -> list[KeyNames]:
    """A modifier's left key, which is meant where no side is said, and its right one."""
    sided = [(side, f"{web.lower()}{side}", *(f"{o}{side}" for o in others)) for side in ("left", "right")]
    names = [(modifier, *others, *sided[0][1:]), sided[1][1:]]
    return [
        KeyNames(f"{x}_{side}", web, code, gbox, tuple(dict.fromkeys(found)), modifier=modifier)
        for side, code, found in zip("LR", codes, names, strict=True)
    ]


_MODIFIERS = [
    *_held("ctrl", "Control", "Control", (113, 114), "control", "control", "controlormeta", "ctl"),
    *_held("alt", "Alt", "Alt", (57, 58), "alt", "option", "opt"),
    *_held("shift", "Shift", "Shift", (59, 60), "shift"),
    *_held("super", "Super", "Meta", (117, 118), "meta", "meta", "win", "windows", "cmd", "command"),
]
_NAMED = [
    KeyNames("Return", "Enter", 66, "enter", ("enter",), "\n"),
    KeyNames("Escape", "Escape", 111, "escape", ("esc",)),
    KeyNames("Tab", "Tab", 61, "tab", (), "\t"),
    KeyNames("BackSpace", "Backspace", 67, "backspace", ("back_space",)),
    KeyNames("Delete", "Delete", 112, "delete", ("del",)),
    KeyNames("Insert", "Insert", 124, "insert", ("ins",)),
    KeyNames("Home", "Home", 122, "home"),
    KeyNames("End", "End", 123, "end"),
    KeyNames("Page_Up", "PageUp", 92, "pageUp", ("prior", "pgup")),
    KeyNames("Page_Down", "PageDown", 93, "pageDown", ("next", "pgdn", "pgdown")),
    KeyNames("Left", "ArrowLeft", 21, "arrowLeft", ("left_arrow",)),
    KeyNames("Right", "ArrowRight", 22, "arrowRight", ("right_arrow",)),
    KeyNames("Up", "ArrowUp", 19, "arrowUp", ("up_arrow",)),
    KeyNames("Down", "ArrowDown", 20, "arrowDown", ("down_arrow",)),
    KeyNames("Caps_Lock", "CapsLock", 115, "capsLock"),
    KeyNames("Num_Lock", "NumLock", 143, "numLock"),
    KeyNames("Scroll_Lock", "ScrollLock", 116, "scrollLock"),
    KeyNames("Print", "PrintScreen", 120, "printScreen", ("prtsc", "prtscr", "prntscrn")),
    KeyNames("Pause", "Pause", 121, "pause", ("break",)),
    KeyNames("Menu", "ContextMenu", 82, None, ("apps",)),
    *(KeyNames(f"F{n}", f"F{n}", 130 + n, f"f{n}") for n in range(1, 13)),
]
_CHARACTERS = [
    KeyNames("space", "Space", 62, "space", ("spacebar",), " "),
    KeyNames("plus", "+", 81, None, (), "+"),
    KeyNames("minus", "-", 69, "-", ("hyphen",), "-"),
    KeyNames("equal", "=", 70, "=", ("equals",), "="),
    KeyNames("comma", ",", 55, ",", (), ","),
    KeyNames("period", ".", 56, ".", ("dot",), "."),
    KeyNames("slash", "/", 76, "/", (), "/"),
    KeyNames("backslash", "\\", 73, "\\", (), "\\"),
    KeyNames("grave", "`", 68, "`", ("backquote", "backtick"), "`"),
    KeyNames("bracketleft", "[", 71, "[", (), "["),
    KeyNames("bracketright", "]", 72, "]", (), "]"),
    KeyNames("semicolon", ";", 74, ";", (), ";"),
    KeyNames("apostrophe", "'", 75, "'", ("quote",), "'"),
    KeyNames("at", "@", 77, None, (), "@"),
    KeyNames("asterisk", "*", 17, None, (), "*"),
    KeyNames("numbersign", "#", 18, None, (), "#"),
    *(KeyNames(c, c, 29 + n, c, (f"key{c}",), c) for n, c in enumerate(ascii_lowercase)),
    *(KeyNames(c, c, 7 + n, c, (f"digit{c}",), c) for n, c in enumerate(digits)),
]
_KEYPAD = [
    KeyNames("KP_Enter", "Enter", 160, "numpadEnter"),
    KeyNames("KP_Add", "NumpadAdd", 157, "numpadAdd", ("add",)),
    KeyNames("KP_Subtract", "NumpadSubtract", 156, "numpadSubtract", ("subtract",)),
    KeyNames("KP_Multiply", "NumpadMultiply", 155, "numpadMultiply", ("multiply",)),
    KeyNames("KP_Divide", "NumpadDivide", 154, "numpadDivide", ("divide",)),
    KeyNames("KP_Decimal", "NumpadDecimal", 158, "numpadDecimal", ("decimal",)),
    KeyNames("KP_Equal", None, 161, "numpadEqual"),
    *(KeyNames(f"KP_{n}", f"Numpad{n}", 144 + n, f"numpad{n}", (f"num{n}",)) for n in range(10)),
]
_MEDIA = [
    KeyNames("XF86AudioRaiseVolume", None, 24, "volumeUp", ("audiovolumeup",)),
    KeyNames("XF86AudioLowerVolume", None, 25, "volumeDown", ("audiovolumedown",)),
    KeyNames("XF86AudioMute", None, 164, "volumeMute", ("audiovolumemute",)),
    KeyNames("XF86AudioPlay", None, 85, "mediaPlayPause", ("playpause",)),
    KeyNames("XF86AudioStop", None, 86, "mediaStop", ("stop",)),
    KeyNames("XF86AudioNext", None, 87, "mediaNextTrack", ("nexttrack",)),
    KeyNames("XF86AudioPrev", None, 88, "mediaPreviousTrack", ("prevtrack",)),
]
KEYS: tuple[KeyNames, ...] = (*_MODIFIERS, *_NAMED, *_CHARACTERS, *_KEYPAD, *_MEDIA)


def _by_name() -> dict[str, KeyNames]:
    """Each key by all of its names, in lower case and without underscores; the first of several has a name."""
    found: dict[str, KeyNames] = {}
    for key in KEYS:
        for name in (key.x, key.web, key.gbox, *key.others, key.char):
            if name:
                found.setdefault(_plain(name), key)
    return found


def _plain(name: str) -> str:
    """A name as it is looked up; a character stays what it is."""
    if len(name) == 1:
        return name.lower()
    return name.strip().lower().replace("_", "")


_NAMES: Mapping[str, KeyNames] = _by_name()


def named(name: str) -> KeyNames | None:
    """The key of that name, in any of its spellings; None if none is known by it.

    A character of which no key is known may still be typed by a device; its case is left to whoever asks.
    """
    return _NAMES.get(_plain(name))


def parts(keys: Sequence[str]) -> list[str]:
    """The keys of a chord one by one: ``ctrl+c`` may be given as one word, in which a plus at the end is the key."""
    return [part for key in keys for part in _split(key)]


def _split(key: str) -> list[str]:
    if len(key) <= 1:
        return [key]
    if key.endswith("++"):
        return [*key[:-2].split("+"), "+"] if key[:-2] else ["+"]
    return key.split("+")
