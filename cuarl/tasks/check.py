"""Verdicts: whether a task is done, as pure functions of two device states and the agent's answer.

A task is done when all its checks hold and nothing else has changed. What may change is what the checks name, what the
task allows, and what the device changes by itself. A check that can't be read (a path that the device does not have, a
text where a number is needed) is a RewardError, so there is no verdict: it never counts against the policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from cuarl.errors import RewardError
from cuarl.tasks.paths import MISSING, Change, changes, covers, includes, leaves, lookup, same
from cuarl.tasks.task import Check, TaskInstance
from cuarl.trajectory import CheckResult, Verdict

ANSWER = "answer"
"""The path that stands for the agent's reported text."""

SideEffects = Literal["fail", "report"]

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def verdict(
    instance: TaskInstance,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    answer: str | None = None,
    claimed: bool | None = None,
    volatile: Sequence[str] = (),
    side_effects: SideEffects = "fail",
) -> Verdict:
    """Judge an episode by the states after reset and at the end.

    ``volatile`` are globs of paths that change by using the device at all. With ``side_effects="report"`` they are
    listed but don't spoil success. Raises RewardError if a check can't be read, or if the task has none.
    """
    if not instance.checks:
        raise RewardError(f"task {instance.task_id} has no checks, so nobody can tell whether it is done")
    results = tuple(evaluate(check, after, answer) for check in instance.checks)
    spoilt = unasked_changes(instance, before, after, volatile)
    held = sum(result.passed for result in results)
    return Verdict(
        success=held == len(results) and not (spoilt and side_effects == "fail"),
        score=held / (len(results) + bool(spoilt)),
        checks=results,
        side_effects=spoilt,
        claimed=claimed,
    )


def evaluate(check: Check, state: Mapping[str, Any], answer: str | None = None) -> CheckResult:
    """Whether one check holds, with what was found. Raises RewardError if it can't be read."""
    actual = _answered(check, answer) if check.path == ANSWER else lookup(state, check.path)
    try:
        passed = _OPS[check.op](actual, check.value)
    except (TypeError, ValueError, re.error) as error:
        raise RewardError(f'check "{describe(check)}" can\'t be read: {error}', where="task check") from error
    if check.op in ("has", "lacks"):
        actual = next((item for item in _items(actual) if includes(item, check.value)), None)
    return CheckResult(path=check.path, op=check.op, expected=check.value, actual=actual, passed=passed)


def describe(check: Check) -> str:
    """The check in words: ``display.brightness ge 200``."""
    return f"{check.path} {check.op}" + ("" if check.op in ("empty", "not_empty") else f" {check.value!r}")


def _answered(check: Check, answer: str | None) -> Any:
    """The answer as text, or as the only number in it where a number is asked for (None unless there is just one)."""
    text = (answer or "").strip()
    wants_number = isinstance(check.value, int | float) and check.op in ("equals", "not_equals")
    if not wants_number and check.op not in ("ge", "le", "between"):
        return text
    numbers = _NUMBER.findall(text)
    return float(numbers[0]) if len(numbers) == 1 else None


# --- operators -----------------------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    raise TypeError(f"{value!r} is not a list")


_KINDS: Mapping[str, tuple[type, ...]] = {
    "a truth value": (bool,),
    "a number": (int, float),
    "a text": (str,),
    "a list": (list, tuple),
    "a mapping": (Mapping,),
}


def _kind(value: Any) -> str:
    return next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "nothing")


def _equals(actual: Any, wanted: Any) -> bool:
    if None not in (actual, wanted) and _kind(actual) != _kind(wanted):
        raise TypeError(f"{actual!r} is {_kind(actual)}, and {wanted!r} is {_kind(wanted)}")
    return same(actual, wanted)


def _is_empty(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, str | list | tuple | Mapping):
        raise TypeError(f"{value!r} is neither a text nor a list")
    return len(value) == 0


def _contains(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, list | tuple):
        return any(same(item, wanted) for item in actual)
    return str(wanted) in _text(actual)


def _icontains(actual: Any, wanted: Any) -> bool:
    return _spoken(str(wanted)).search(_casual(_text(actual))) is not None


@lru_cache(maxsize=1024)
def _spoken(wanted: str) -> re.Pattern[str]:
    """How people would read it: a number must not be part of a longer one, so 83 is in "at 83 %" but not in 183."""
    text = _casual(wanted)
    left = r"(?<!\d)(?<!\d[.,])" if text[:1].isdigit() else ""
    right = r"(?!\d)(?![.,]\d)" if text[-1:].isdigit() else ""
    return re.compile(left + re.escape(text) + right)


def _casual(text: str) -> str:
    """Without case, with single spaces, and none between a number and its unit."""
    return re.sub(r"(?<=\d) (?=[a-z%°])", "", " ".join(text.casefold().split()))


def _has(actual: Any, wanted: Any) -> bool:
    return any(includes(item, wanted) for item in _items(actual))


def _between(actual: Any, limits: Any) -> bool:
    low, high = map(_number, limits)
    return low <= _number(actual) <= high


def _absent_fails(op: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A list item that is not there, or an answer without a number, satisfies no comparison."""
    return lambda actual, wanted: actual is not None and op(actual, wanted)


_OPS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": _equals,
    "not_equals": lambda actual, wanted: not _equals(actual, wanted),
    "contains": _absent_fails(_contains),
    "not_contains": lambda actual, wanted: actual is None or not _contains(actual, wanted),
    "icontains": _absent_fails(_icontains),
    "matches": _absent_fails(lambda actual, pattern: re.search(_text(pattern), _text(actual)) is not None),
    "ge": _absent_fails(lambda actual, bound: _number(actual) >= _number(bound)),
    "le": _absent_fails(lambda actual, bound: _number(actual) <= _number(bound)),
    "between": _absent_fails(_between),
    "empty": lambda actual, _: _is_empty(actual),
    "not_empty": lambda actual, _: not _is_empty(actual),
    "has": _absent_fails(_has),
    "lacks": lambda actual, wanted: actual is None or not _has(actual, wanted),
}


def check_problem(check: Check) -> str | None:
    """What is wrong with a check whatever the device says, or None. Values must be filled in."""
    value = check.value
    try:
        if check.op in ("ge", "le"):
            _number(value)
        elif check.op == "between":
            low, high = map(_number, value)
            if low > high:
                return f"between: {low} is greater than {high}"
        elif check.op == "matches":
            re.compile(_text(value))
        elif check.op in ("empty", "not_empty") and value is not None:
            return f"{check.op} takes no value"
        elif check.op in ("contains", "not_contains", "icontains") and value in (None, ""):
            return f"{check.op} needs a value"
    except (TypeError, ValueError, re.error) as error:
        return f"{check.op}: {error}"
    return None


# --- side effects --------------------------------------------------------------------------------------------------


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
