"""Keys as xdotool names them, in the words of Playwright."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

NAMES = {
    "ctrl": "Control", "control": "Control", "control_l": "Control", "control_r": "Control", "alt": "Alt",
    "alt_l": "Alt",
    "alt_r": "Alt", "shift": "Shift", "shift_l": "Shift", "shift_r": "Shift", "super": "Meta", "meta": "Meta",
    "cmd": "Meta", "win": "Meta", "return": "Enter", "enter": "Enter", "kp_enter": "Enter", "escape": "Escape",
    "esc": "Escape",
    "tab": "Tab", "backspace": "Backspace", "delete": "Delete", "del": "Delete", "insert": "Insert", "ins": "Insert",
    "home": "Home",
    "end": "End", "page_up": "PageUp", "pageup": "PageUp", "prior": "PageUp", "page_down": "PageDown",
    "pagedown": "PageDown", "next": "PageDown", "left": "ArrowLeft", "right": "ArrowRight", "up": "ArrowUp",
    "down": "ArrowDown", "arrowleft": "ArrowLeft", "arrowright": "ArrowRight", "arrowup": "ArrowUp",
    "arrowdown": "ArrowDown", "space": "Space", "plus": "+", "minus": "-", "comma": ",", "period": ".", "slash": "/",
    "caps_lock": "CapsLock", "menu": "ContextMenu", **{f"f{n}": f"F{n}" for n in range(1, 13)},
}  # fmt: skip

MODIFIERS = frozenset({"Control", "Alt", "Shift", "Meta"})

Shortcut = Literal["back", "forward", "reload", "close", "copy", "cut", "paste"]
_CHORDS: Sequence[tuple[str, str, Shortcut]] = (
    ("Alt", "ArrowLeft", "back"), ("Alt", "ArrowRight", "forward"), ("", "F5", "reload"), ("Control", "F5", "reload"),
    ("Shift", "F5", "reload"), ("Control", "r", "reload"), ("Control Shift", "r", "reload"), ("Control", "w", "close"),
    ("Control", "F4", "close"), ("Control", "c", "copy"), ("Control", "Insert", "copy"), ("Control", "x", "cut"),
    ("Shift", "Delete", "cut"), ("Control", "v", "paste"), ("Control Shift", "v", "paste"),
    ("Shift", "Insert", "paste"),
)  # fmt: skip
SHORTCUTS: Mapping[tuple[frozenset[str], str], Shortcut] = {
    (frozenset(held.split()), key): does for held, key, does in _CHORDS
}
"""Chords that are carried out here: a browser's own window would act on some, and there is none; and all contexts of a
browser share one clipboard, while episodes must not."""


class UnknownKey(ValueError):
    """There is no key of this name, or no such chord."""


def chord(keys: Sequence[str]) -> tuple[str, ...]:
    """The keys of a chord in Playwright's names, modifiers first. Raises UnknownKey.

    With Ctrl, Alt or Meta the case of a letter does not count, as on a keyboard. Of other keys a chord with a modifier
    has one: more would be several chords, each of which may mean something of its own.
    """
    named = [_name(part) for key in keys for part in _parts(key)]
    held = [key for key in named if key in MODIFIERS]
    rest = [key for key in named if key not in MODIFIERS]
    if held and len(rest) > 1:
        raise UnknownKey(f"one key at a time with {'+'.join(held)}, not {', '.join(rest)}")
    if set(held) - {"Shift"}:
        rest = [key.lower() if len(key) == 1 else key for key in rest]
    return (*dict.fromkeys(held), *rest)


def shortcut(keys: Sequence[str]) -> Shortcut | None:
    """What a chord in Playwright's names does here; None for one that is the page's own affair."""
    return SHORTCUTS.get((frozenset(keys[:-1]), keys[-1])) if keys else None


def _parts(key: str) -> list[str]:
    """``ctrl+c`` may be given as one word."""
    return key.split("+") if len(key) > 1 and "+" in key.strip("+") else [key]


def _name(key: str) -> str:
    if len(key) == 1:
        return key
    if key.strip().lower() not in NAMES:
        raise UnknownKey(f"there is no key {key!r}")
    return NAMES[key.strip().lower()]
