"""Chords in the words of Playwright, and those that are carried out here instead of by the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from cuarl.keys import KEYS, named, parts

MODIFIERS = frozenset(key.web for key in KEYS if key.modifier and key.web)

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
    found = names_of(keys)
    held = [key for key in found if key in MODIFIERS]
    rest = [key for key in found if key not in MODIFIERS]
    if held and len(rest) > 1:
        raise UnknownKey(f"one key at a time with {'+'.join(held)}, not {', '.join(rest)}")
    if set(held) - {"Shift"}:
        rest = [key.lower() if len(key) == 1 else key for key in rest]
    return (*dict.fromkeys(held), *rest)


def shortcut(keys: Sequence[str]) -> Shortcut | None:
    """What a chord in Playwright's names does here; None for one that is the page's own affair."""
    return SHORTCUTS.get((frozenset(keys[:-1]), keys[-1])) if keys else None


def names_of(keys: Sequence[str]) -> list[str]:
    """The keys one by one in Playwright's names. Raises UnknownKey."""
    return [_name(part) for part in parts(keys)]


def _name(key: str) -> str:
    if len(key) == 1:
        return key
    found = named(key)
    if found is None or found.web is None:
        raise UnknownKey(f"there is no key {key!r}")
    return found.web
