"""The operators of checks: pure functions of what was found and the value to compare it with.

They raise TypeError or ValueError for what can't be compared, so that a mistake in a task is not taken for a failure of
the agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from cuarl.tasks.paths import includes, same
from cuarl.tasks.task import Check


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def items_of(value: Any) -> list[Any]:
    """Items of a list, or the records of a mapping. Raises TypeError for anything else."""
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
    if actual is not None and wanted is not None and _kind(actual) != _kind(wanted):
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
    return any(includes(item, wanted) for item in items_of(actual))


def _between(actual: Any, limits: Any) -> bool:
    low, high = map(_number, limits)
    return low <= _number(actual) <= high


def _absent_fails(op: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A list item that is not there, or an answer without a number, satisfies no comparison."""
    return lambda actual, wanted: actual is not None and op(actual, wanted)


OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
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
"""By name: whether it holds for what was found and the value of the check."""


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
