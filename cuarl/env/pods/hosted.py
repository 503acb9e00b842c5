"""The session that a server shows: one device, at most one task, what was asked and answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Protocol, runtime_checkable

from cuarl.env.base import Env, OracleEnv
from cuarl.errors import EnvError, RewardError
from cuarl.tasks.check import verdict
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Screenshot

UNUSED = TaskInstance(task_id="session", goal="an unused device")
LONGEST_DELAY_S = 60.0
"""As ``Wait`` has it."""


class Refused(Exception):
    """A request that can't be carried out; nothing was changed."""


class InUse(EnvError):
    """A session serves one episode."""


@runtime_checkable
class LiveEnv(Protocol):
    """An environment whose screen changes by itself, and not by actions alone."""

    async def screenshot(self) -> Screenshot:
        """The screen as it is now."""
        ...


class HostedSession:
    """A device of ``make``, which is started when it is first needed: with the task of ``reset``, or without one."""

    def __init__(self, make: Callable[[], Env]) -> None:
        self._make = make
        self._env: Env | None = None
        self._task: TaskInstance | None = None
        self._before: Mapping[str, Any] = {}
        self._shown: Screenshot | None = None
        self.acted = 0
        """Actions carried out."""

    async def reset(self, task: TaskInstance, seed: int) -> None:
        """Set a task up: once, and before the device is used. Raises TaskError."""
        if self._env is not None:
            raise InUse("this session is in use already; a session serves one episode")
        self._env = env = self._make()
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self._drop, env)
            self._shown = (await env.reset(task, seed)).screenshot
            undo.pop_all()
        self._task, self._before = task, await env.state()

    async def act(self, action: Action) -> None:
        """Carry an action out. Raises Refused."""
        env = await self._running()
        result = await env.step(action)
        if "rejected" in result.info:
            raise Refused(str(result.info["rejected"]))
        self._shown = result.observation.screenshot
        self.acted += 1

    async def screen(self, *, anew: bool) -> Screenshot:
        """The screen after the last action; with ``anew`` as it is now, where it changes by itself."""
        env = await self._running()
        if anew and isinstance(env, LiveEnv):
            self._shown = await env.screenshot()
        assert self._shown is not None
        return self._shown

    async def progress(self) -> dict[str, Any]:
        """How far the task is, in both of the protocol's forms.

        Its checks are the rows, and side effects are mistakes.
        """
        held: list[int] = []
        mistakes = 0
        if self._task is not None and self._task.checks:
            said = verdict(self._task, self._before, await self.state(), volatile=self.volatile)
            held = [i for i, check in enumerate(said.checks) if check.passed]
            mistakes = len(said.side_effects)
        return {
            "num_correct_submissions": len(held),
            "submitted_row_indices": held,
            "num_incorrect_submissions": mistakes,
        }

    async def state(self) -> Mapping[str, Any]:
        """The device's state."""
        return await (await self._running()).state()

    async def oracle(self) -> Action:
        """The next action of a solution. Raises RewardError where there is no task."""
        env = await self._running()
        if self._task is None or not isinstance(env, OracleEnv):
            raise RewardError("this session has no task that could be solved")
        return env.oracle_action()

    async def _drop(self, env: Env) -> None:
        self._env = None
        await env.close()

    async def close(self) -> None:
        """Release the device."""
        if self._env is not None:
            await self._env.close()

    async def _running(self) -> Env:
        if self._env is None:
            await self.reset(UNUSED, 0)
            self._task = None
        assert self._env is not None
        return self._env

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths that have changed by themselves so far, or may."""
        return tuple(getattr(self._env, "volatile", ()))
