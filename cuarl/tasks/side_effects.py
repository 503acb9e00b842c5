"""What changed on a device although the task did not ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cuarl.tasks.paths import MISSING, Change, changes, covers, includes, leaves, lookup, same
from cuarl.tasks.task import Check, TaskInstance


def unasked_changes(
    instance: TaskInstance, before: Mapping[str, Any], after: Mapping[str, Any], volatile: Sequence[str] = ()
) -> tuple[str, ...]:
    """Sorted paths that changed although no check names them and neither the task nor the device lets them change."""
    spared = [*instance.allow, *volatile]
    found: set[str] = set()
    for change in changes(before, after):
        if not _asked(change, instance.checks, before, after):
            found.update(
                leaf
                for leaf in leaves(change)
                if not any(covers(glob, leaf) for glob in spared)
                and not any(_names(check, leaf) for check in instance.checks)
            )
    return tuple(sorted(found))


def _names(check: Check, leaf: str) -> bool:
    """Whether a check on one value names this leaf (or lies within it, where a whole item came or went)."""
    if check.op in ("has", "lacks"):
        return False
    return covers(check.path, leaf) or covers(leaf, check.path)


def _asked(change: Change, checks: Sequence[Check], before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether ``has`` and ``lacks`` checks ask for this change of an item.

    ``has`` asks for an item that comes, ``lacks`` for one that goes, and both together for one altered into another.
    One of them alone asks for an alteration only of fields it names, of an item that it also names by another field:
    {name: Ada, starred: true} lets Ada be starred, but {minutes: 480} does not let another alarm be moved.
    """
    came = went = False
    for check in checks:
        if check.op not in ("has", "lacks"):
            continue
        item = _item_change(change, check.path, before, after)
        if item is None:
            continue
        comes = check.op == "has" and includes(item.new, check.value)
        goes = check.op == "lacks" and includes(item.old, check.value)
        if (comes or goes) and item.altered and item.altered < _fields(check.value):
            return True
        came, went = came or comes or item.new is MISSING, went or goes or item.old is MISSING
    return came and went


class _ItemChange(NamedTuple):
    old: Any
    new: Any
    altered: frozenset[str]
    """Fields in which they differ; empty for items that came or went."""


def _item_change(
    change: Change, container: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> _ItemChange | None:
    """The change as one of an item of ``container`` (a list, or a mapping of records); None if it lies elsewhere."""
    if change.container == container:
        old, new = change.before, change.after
        fields = _fields(old) & _fields(new)
        return _ItemChange(old, new, frozenset(f for f in fields if not same(old[f], new[f])))
    if change.path.startswith(container + "."):
        old, new = lookup(before, container), lookup(after, container)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            key, *field = change.path.removeprefix(container + ".").split(".")
            return _ItemChange(old.get(key, MISSING), new.get(key, MISSING), frozenset(field[:1]))
    return None


def _fields(record: Any) -> frozenset[str]:
    return frozenset(record) if isinstance(record, Mapping) else frozenset()
