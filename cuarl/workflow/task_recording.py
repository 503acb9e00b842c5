"""A task file made of what a person did on a page: the plan, step by step, and checks that may be meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from cuarl.env.base import Capabilities
from cuarl.env.browser.web import WebEnv
from cuarl.env.held import beyond
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Action, Click, Observation, StepResult
from cuarl.workflow.plan_lines import Line, PlanLines

SAYABLE = frozenset({"click", "scroll", "type", "key", "wait", "answer", "finish"})
"""Kinds of actions for which plans of pages have words."""
MOST_TEXTS = 3
"""New lines of a page's text that are suggested as checks."""
_LONGEST = 80


class RecordedEnv:
    """A page that is worked by a person; ``plan`` says what they did so far."""

    def __init__(self, env: WebEnv) -> None:
        self._env, self.plan = env, PlanLines()
        self.before: Mapping[str, Any] = {}
        self.after: Mapping[str, Any] = {}

    @property
    def lines(self) -> list[Line]:
        """The plan."""
        return self.plan.lines

    @property
    def capabilities(self) -> Capabilities:
        """The page's, as far as plans have words for it."""
        found = self._env.capabilities
        return Capabilities(found.actions & SAYABLE, state=True, kind=found.kind)

    @property
    def volatile(self) -> tuple[str, ...]:
        """The page's."""
        return self._env.volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Load the page."""
        shown = await self._env.reset(task, seed)
        self.before = self.after = await self._env.state()
        return shown

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and note how a plan says it."""
        named = None
        if why := beyond(action, "a plan", repeats=True):
            return StepResult(self._env.shown(), info={"rejected": why, "changed": False})
        if isinstance(action, Click):
            named = await self._env.name_at(action.x, action.y)
            if named is None:
                why = "no name leads back to what is there, so a plan can't point at it"
                return StepResult(self._env.shown(), info={"rejected": why, "changed": False})
        url = self.after.get("url")
        result = await self._env.step(action)
        if "rejected" not in result.info:
            self.after = await self._env.state()
            self.plan.note(action, named, moved=self.after.get("url") != url)
        return result

    def end(self, answer: str | None) -> None:
        """Note what was answered."""
        self.plan.end(answer)

    def record(self, worked: Task, answer: str | None) -> tuple[dict[str, Any], list[Line]]:
        """Preset and checks of the task that was done."""
        return dict(worked.preset), suggested_checks(self.before, self.after, answer)

    async def state(self) -> Mapping[str, Any]:
        """The page's."""
        return await self._env.state()

    async def close(self) -> None:
        """Close the page."""
        await self._env.close()


def suggested_checks(before: Mapping[str, Any], after: Mapping[str, Any], answer: str | None) -> list[Line]:
    """Checks that hold in ``after``, and not in ``before``: of what the application says, the page shows, was answered.

    They are suggestions: what is meant only a person knows.
    """
    found = [
        {"path": path, "value": value}
        for path, value in _leaves(after)
        if path.partition(".")[0] not in ("url", "title", "text", "tabs") and _at(before, path) != value
    ]
    shown = str(before.get("text", ""))
    lines = [line.strip() for line in str(after.get("text", "")).splitlines()]
    new = [line for line in dict.fromkeys(lines) if line and len(line) <= _LONGEST and line not in shown]
    found += [{"path": "text", "op": "contains", "value": line} for line in new[:MOST_TEXTS]]
    old, now = urlsplit(str(before.get("url", ""))), urlsplit(str(after.get("url", "")))
    if (old.path, old.fragment) != (now.path, now.fragment):
        found.append({"path": "url", "op": "contains", "value": now.path + (f"#{now.fragment}" * bool(now.fragment))})
    if answer:
        found.append({"path": "answer", "op": "icontains", "value": answer})
    return found


def task_record(
    worked: Task,
    lines: Sequence[Line],
    preset: Mapping[str, Any],
    checks: Sequence[Line],
    task_id: str | None = None,
) -> dict[str, Any]:
    """The task, as a file has it, of what was done in ``worked``."""
    goal = worked.description
    return {
        "id": task_id or re.sub(r"[^a-z0-9]+", "_", goal.lower()).strip("_")[:40] or "recorded",
        "env": worked.env,
        "description": goal,
        "max_steps": 2 * len(lines) + 4,
        "preset": dict(preset),
        "plan": list(lines),
        "checks": list(checks),
    }


def _leaves(state: Any, path: str = "") -> list[tuple[str, Any]]:
    """Paths of the plain values in nested mappings."""
    if isinstance(state, Mapping):
        return [leaf for key, value in state.items() for leaf in _leaves(value, f"{path}.{key}" if path else str(key))]
    return [(path, state)] if isinstance(state, str | int | float | bool) else []


def _at(state: Any, path: str) -> Any:
    for key in path.split("."):
        state = state.get(key) if isinstance(state, Mapping) else None
    return state
