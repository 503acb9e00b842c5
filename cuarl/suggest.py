"""Did-you-mean for names that people type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that begins like ``name`` or is most like it (case does not count), or None if none is close."""
    by_folded = {k.casefold(): k for k in known}
    longer = [k for k in by_folded if len(name) > 2 and k.startswith(name.casefold())]
    if longer:
        return by_folded[min(longer, key=len)]
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean "x"?)`` with a leading space, or nothing."""
    near = nearest(name, known)
    return f' (did you mean "{near}"?)' if near else ""
