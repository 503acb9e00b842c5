"""Verdicts: whether a task is done, as pure functions of two device states and the agent's answer.

A task is done when all its checks hold and nothing else has changed. What may change is what the checks name, what the
task allows, and what the device changes by itself. A check that can't be read (a path that the device does not have, a
text where a number is needed) is a RewardError, so there is no verdict: it never counts against the policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from cuarl.errors import RewardError
from cuarl.tasks.operators import OPERATORS, items_of
from cuarl.tasks.paths import includes, lookup
from cuarl.tasks.side_effects import unasked_changes
from cuarl.tasks.task import Check, TaskInstance
from cuarl.trajectory import CheckResult, Verdict

ANSWER = "answer"
"""The path that stands for the agent's reported text."""

MOST_SHOWN = 20
"""Items of a list that a check was looked for in, in its result."""

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
        passed = OPERATORS[check.op](actual, check.value)
    except (TypeError, ValueError, re.error) as error:
        raise RewardError(f'check "{describe(check)}" can\'t be read: {error}', where="task check") from error
    if check.op in ("has", "lacks") and actual is not None:
        actual = _of_list(items_of(actual), check.value)
    return CheckResult(path=check.path, op=check.op, expected=check.value, actual=actual, passed=passed)


def describe(check: Check) -> str:
    """The check in words: ``display.brightness ge 200``."""
    return f"{check.path} {check.op}" + ("" if check.op in ("empty", "not_empty") else f" {check.value!r}")


def _of_list(items: list[Any], wanted: Any) -> Any:
    """What to show of a list: the item that was looked for.

    Without it, what is there instead, with the number of the rest.
    """
    found = [item for item in items if includes(item, wanted)]
    if found:
        return found[0]
    rest = len(items) - MOST_SHOWN
    return [*items[:MOST_SHOWN], f"and {rest} more"] if rest > 0 else items


def _answered(check: Check, answer: str | None) -> Any:
    """The answer as text, or as the only number in it where a number is asked for (None unless there is just one)."""
    text = (answer or "").strip()
    wants_number = isinstance(check.value, int | float) and check.op in ("equals", "not_equals")
    if not wants_number and check.op not in ("ge", "le", "between"):
        return text
    numbers = _NUMBER.findall(text)
    return float(numbers[0]) if len(numbers) == 1 else None
