"""Keys as xdotool names them, in the words of GBox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_lowercase, digits

NAMES = frozenset(
    {
        *ascii_lowercase, *digits, *";=,-./`[\\]'", *(f"f{n}" for n in range(1, 13)),
        *(f"numpad{n}" for n in range(10)),
        "control", "alt", "shift", "meta", "win", "cmd", "option", "arrowUp", "arrowDown", "arrowLeft", "arrowRight",
        "home",
        "end", "pageUp", "pageDown", "enter", "space", "tab", "escape", "backspace", "delete", "insert", "capsLock",
        "numLock",
        "scrollLock", "pause", "printScreen", "numpadAdd", "numpadSubtract", "numpadMultiply", "numpadDivide",
        "numpadDecimal", "numpadEnter", "numpadEqual", "volumeUp", "volumeDown", "volumeMute", "mediaPlayPause",
        "mediaStop",
        "mediaNextTrack", "mediaPreviousTrack",
    }
)  # fmt: skip
"""All that its interface has (gbox-sdk 0.1.0a41, ``ActionPressKeyParams``); any other is an error there."""
_OTHERS: Mapping[str, str] = {
    "ctrl": "control", "control_l": "control", "control_r": "control", "alt_l": "alt", "alt_r": "alt",
    "shift_l": "shift",
    "shift_r": "shift", "super": "meta", "super_l": "meta", "super_r": "meta", "command": "cmd", "return": "enter",
    "kp_enter": "numpadEnter", "esc": "escape", "del": "delete", "ins": "insert", "left": "arrowLeft",
    "right": "arrowRight",
    "up": "arrowUp", "down": "arrowDown", "prior": "pageUp", "next": "pageDown", "print": "printScreen", " ": "space",
    "grave": "`", "minus": "-", "equal": "=", "bracketleft": "[", "bracketright": "]", "backslash": "\\",
    "semicolon": ";",
    "apostrophe": "'", "comma": ",", "period": ".", "slash": "/",
}  # fmt: skip
_LOWERED = {name.lower(): name for name in NAMES}


class UnknownKey(ValueError):
    """GBox has no key of this name."""


def chord(keys: Sequence[str]) -> list[str]:
    """The keys of a chord in GBox's names; a capital alone is held with shift. Raises UnknownKey."""
    parts = [part for key in keys for part in _parts(key)]
    if len(parts) == 1 and parts[0] in set(ascii_lowercase.upper()):
        return ["shift", parts[0].lower()]
    return [_name(part) for part in parts]


def _parts(key: str) -> list[str]:
    """``ctrl+c`` may be given as one word."""
    return key.split("+") if len(key) > 1 and "+" in key.strip("+") else [key]


def _name(key: str) -> str:
    lowered = key.lower() if key == " " else key.strip().lower()
    found = _OTHERS.get(lowered) or _LOWERED.get(lowered.replace("_", ""))
    if found is None:
        raise UnknownKey(f"a box has no key {key!r}")
    return found
