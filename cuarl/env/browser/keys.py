"""Keys as xdotool names them, in the words of Playwright."""

from __future__ import annotations

from collections.abc import Sequence

NAMES = {
    "ctrl": "Control", "control": "Control", "control_l": "Control", "control_r": "Control", "alt": "Alt", "alt_l": "Alt",
    "alt_r": "Alt", "shift": "Shift", "shift_l": "Shift", "shift_r": "Shift", "super": "Meta", "meta": "Meta",
    "cmd": "Meta", "win": "Meta", "return": "Enter", "enter": "Enter", "kp_enter": "Enter", "escape": "Escape", "esc": "Escape",
    "tab": "Tab", "backspace": "Backspace", "delete": "Delete", "del": "Delete", "insert": "Insert", "home": "Home",
    "end": "End", "page_up": "PageUp", "pageup": "PageUp", "prior": "PageUp", "page_down": "PageDown",
    "pagedown": "PageDown", "next": "PageDown", "left": "ArrowLeft", "right": "ArrowRight", "up": "ArrowUp",
    "down": "ArrowDown", "arrowleft": "ArrowLeft", "arrowright": "ArrowRight", "arrowup": "ArrowUp",
    "arrowdown": "ArrowDown", "space": "Space", "plus": "+", "minus": "-", "comma": ",", "period": ".", "slash": "/",
    "caps_lock": "CapsLock", "menu": "ContextMenu", **{f"f{n}": f"F{n}" for n in range(1, 13)},
}  # fmt: skip

SHORTCUTS = {
    ("Alt", "ArrowLeft"): "back", ("Alt", "ArrowRight"): "forward", ("F5",): "reload", ("Control", "r"): "reload",
    ("Control", "w"): "close", ("Control", "c"): "copy", ("Control", "x"): "cut", ("Control", "v"): "paste",
}  # fmt: skip
"""Chords that are carried out here: a browser's own window would act on some, and there is none; and all contexts of a
browser share one clipboard, while episodes must not."""


class UnknownKey(ValueError):
    """There is no key of this name."""


def chord(keys: Sequence[str]) -> tuple[str, ...]:
    """The keys of a chord in Playwright's names. Raises UnknownKey."""
    return tuple(_name(part) for key in keys for part in _parts(key))


def _parts(key: str) -> list[str]:
    """``ctrl+c`` may be given as one word."""
    return key.split("+") if len(key) > 1 and "+" in key.strip("+") else [key]


def _name(key: str) -> str:
    if len(key) == 1:
        return key
    if key.strip().lower() not in NAMES:
        raise UnknownKey(f"there is no key {key!r}")
    return NAMES[key.strip().lower()]
