"""A plan and suggested checks made of what a person did on a phone behind adb."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from cuarl.env.adb.env import AdbEnv
from cuarl.env.base import Capabilities
from cuarl.env.shell_checks.reads import read
from cuarl.env.shell_checks.survey import FRONT, suggested, survey
from cuarl.errors import EnvError
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Action, Click, LongPress, Observation, StepResult
from cuarl.workflow.plan_lines import Line, PlanLines

logger = logging.getLogger(__name__)

SAYABLE = frozenset({"click", "long_press", "scroll", "type", "key", "button", "open_app", "wait", "answer", "finish"})
"""Kinds of actions for which plans of phones have words."""


class RecordedPhone:
    """A phone that is worked by a person; ``plan`` says what they did so far."""

    def __init__(self, env: AdbEnv) -> None:
        self._env, self.plan = env, PlanLines()
        self._used: dict[str, str] = {}
        """Packages that were in front, by names of their own."""
        self._front: str = ""
        self._begun = False
        self.before: Mapping[str, Any] = {}
        self.after: Mapping[str, Any] = {}

    @property
    def lines(self) -> list[Line]:
        """The plan."""
        return self.plan.lines

    @property
    def capabilities(self) -> Capabilities:
        """The phone's, as far as plans have words for it."""
        return Capabilities(self._env.capabilities.actions & SAYABLE, state=False, kind="phone")

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Bring the phone to where the episode begins."""
        shown = await self._env.reset(task, seed)
        self.before = self.after = await survey(self._env.device.read)
        self._front, self._begun = _package(self.before.get(FRONT)), True
        return shown

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and note how a plan says it."""
        named = await self._env.name_at(action.x, action.y) if isinstance(action, Click | LongPress) else None
        result = await self._env.step(action)
        if "rejected" not in result.info:
            front = _package(await read(FRONT, self._env.device.read))
            self.plan.note(action, named, moved=front != self._front)
            if front != self._front and front != _package(self.before.get(FRONT)):
                self._used[front.rpartition(".")[2].capitalize()] = front
            self._front = front
        return result

    def end(self, answer: str | None) -> None:
        """Note what was answered."""
        self.plan.end(answer)

    def record(self, worked: Task, answer: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Preset and checks of the task that was done."""
        found = suggested(self.before, self.after)
        preset: dict[str, Any] = {**worked.preset}
        if self._used:  # or an app opens where the last episode has left it
            preset |= {"reset": "force-stop", "apps": dict(self._used)}
        preset |= {"setup": found.setup} if found.setup else {}
        preset["reads"] = found.reads
        said = [{"path": "answer", "op": "icontains", "value": answer}] if answer else []
        return preset, [*found.checks, *said]

    async def state(self) -> Mapping[str, Any]:
        """Nothing: what has changed is read at the end."""
        return {}

    async def close(self) -> None:
        """See what has changed, and give the phone back."""
        try:
            if self._begun:
                self.after = await survey(self._env.device.read)
        except EnvError as error:
            logger.warning("what has changed on %s can't be read: %s", self._env.device_name, error)
        finally:
            await self._env.close()


def _package(front: Any) -> str:
    return str(front["app"]) if isinstance(front, Mapping) else ""
