"""Dotted paths into a device's state, and what changed between two states.

A state is nested mappings, lists and scalars. A path names keys of mappings and positions in lists:
``network.wifi.enabled``, ``clock.alarms.0.minutes``. In a glob, ``*`` stands for any characters, dots included, and
``?`` for one; a glob also covers everything below what it matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from cuarl.errors import RewardError
from cuarl.suggest import nearest


class Missing:
    """Type of ``MISSING``, what stands where a state has nothing."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


class Unreadable(str):
    """What stands in a state for a value that could not be read: the reason, which ``lookup`` raises."""


class Change(NamedTuple):
    """A difference between two states: a leaf, or an item of a list that came, went or was altered."""

    path: str
    before: Any
    after: Any
    container: str | None = None
    """Path of the list, if this is an item of one."""


def lookup(state: Mapping[str, Any], path: str) -> Any:
    """Value at ``path``; None for a list position that is not there, since items may come and go.

    Raises RewardError if a mapping has no such key, since then the path is wrong or the device can't tell, and where
    there is something ``Unreadable``.
    """
    node: Any = state
    done: list[str] = []
    for part in path.split("."):
        if isinstance(node, Mapping):
            if part not in node:
                raise RewardError(
                    f'the device state has no "{path}"{_like(state, node, done, path, part)}', where="task check"
                )
            node = node[part]
        elif isinstance(node, list | tuple) and part.isdecimal():
            if int(part) >= len(node):
                return None
            node = node[int(part)]
        else:
            raise RewardError(
                f'the device state has no "{path}": "{".".join(done)}" is {type(node).__name__}', where="task check"
            )
        done.append(part)
        if isinstance(node, Unreadable):
            raise RewardError(f'"{".".join(done)}" can\'t be read: {node}', where="task check")
    return node


def _like(state: Mapping[str, Any], node: Mapping[str, Any], done: list[str], path: str, part: str) -> str:
    sibling = nearest(part, map(str, node))
    near = ".".join([*done, sibling]) if sibling else nearest(path, leaf_paths(state))
    return f' (did you mean "{near}"?)' if near else ""


def leaf_paths(state: Any, prefix: str = "") -> Iterator[str]:
    """Path of every value that is not a mapping."""
    if isinstance(state, Mapping) and state:
        for key, value in state.items():
            yield from leaf_paths(value, _join(prefix, key))
    else:
        yield prefix


def covers(glob: str, path: str) -> bool:
    """Whether ``glob`` matches ``path`` or something that contains it."""
    return _pattern(glob).match(path) is not None


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    text = re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(rf"{text}(\.|\Z)", re.DOTALL)


def changes(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """Differences between two states, lists item by item."""
    if before == after:  # most of a state: compared at once, which takes a true for a one, as no device mixes them up
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            yield from changes(before.get(key, MISSING), after.get(key, MISSING), _join(path, key))
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        yield from _list_changes(list(before), list(after), path)
    elif not same(before, after):
        yield Change(path, before, after)


def leaves(change: Change) -> list[str]:
    """Paths of a change: within an altered item, those of its fields that differ."""
    if change.container is not None and isinstance(change.before, Mapping) and isinstance(change.after, Mapping):
        return [leaf for inner in changes(change.before, change.after, change.path) for leaf in leaves(inner)]
    return [change.path]


def _list_changes(before: list[Any], after: list[Any], path: str) -> Iterator[Change]:
    """Equal items cancel out; of the rest, pairs are one altered item, and the others came or went."""
    if same(before, after):
        return
    came = dict(enumerate(after))
    went: dict[int, Any] = {}
    for i, item in enumerate(before):
        twin = next((j for j, other in came.items() if same(item, other)), None)
        if twin is None:
            went[i] = item
        else:
            del came[twin]
    if not came and not went:
        yield Change(path, before, after)  # the order alone
    for i, old in went.items():
        j = _altered_into(i, old, came, in_place=len(before) == len(after))
        if j is None:
            yield Change(_item(path, i, old), old, MISSING, path)
        else:
            yield Change(f"{path}.{j}", old, came.pop(j), path)
    for j, new in came.items():
        yield Change(_item(path, j, new), MISSING, new, path)


def _altered_into(i: int, old: Any, came: Mapping[int, Any], in_place: bool) -> int | None:
    """Position of the record that ``old`` became.

    One that shares most fields, else the one that stands in its place.
    """
    shares = {
        j: sum(same(old[k], new[k]) for k in old) / len(old)
        for j, new in came.items()
        if isinstance(old, Mapping) and isinstance(new, Mapping) and old and old.keys() == new.keys()
    }
    best = max(shares, key=lambda j: (shares[j], j == i), default=None)
    if best is not None and shares[best] > 0.5:
        return best
    return i if in_place and i in shares else None


def _item(path: str, position: int, item: Any) -> str:
    return f"{path}.{position}" if isinstance(item, Mapping) else path


def same(a: Any, b: Any) -> bool:
    """Equality at any depth in which a truth value is not a number and a tuple is a list."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def includes(actual: Any, wanted: Any) -> bool:
    """Whether ``actual`` has everything that ``wanted`` names: its fields, and for each of its items one like it."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(k in actual and includes(actual[k], v) for k, v in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(actual, list | tuple) and all(any(includes(a, w) for a in actual) for w in wanted)
    return same(actual, wanted)


def _join(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix else str(key)
