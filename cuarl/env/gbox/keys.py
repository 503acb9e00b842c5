"""Keys in the words of GBox (gbox-sdk 0.1.0a41, ``ActionPressKeyParams``); any other is an error there."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from cuarl.keys import named, parts


class UnknownKey(ValueError):
    """GBox has no key of this name."""


def chord(keys: Sequence[str]) -> list[str]:
    """The keys of a chord in GBox's names; a capital alone is held with shift. Raises UnknownKey."""
    one_by_one = parts(keys)
    if len(one_by_one) == 1 and one_by_one[0] in set(ascii_uppercase):
        return ["shift", one_by_one[0].lower()]
    return [_name(part) for part in one_by_one]


def _name(key: str) -> str:
    found = named(key)
    if found is None or found.gbox is None:
        raise UnknownKey(f"a box has no key {key!r}")
    return found.gbox
