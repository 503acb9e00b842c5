"""``AdbEnv``: a phone or an emulator behind the environment seam (docs/android.md)."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from PIL import UnidentifiedImageError

from cuarl.env.adb.commands import ACTIONS, UNICODE_IME, commands, refusal
from cuarl.env.adb.transport import Device
from cuarl.env.base import Capabilities
from cuarl.env.settle import Patience, settle
from cuarl.env.shell_checks.reads import read_all, run_all
from cuarl.errors import EnvError, TaskError
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Action, Observation, Screenshot, StepResult, Wait

logger = logging.getLogger(__name__)

PREPARE = (
    "input keyevent 224", "wm dismiss-keyguard", "settings put system accelerometer_rotation 0",
    "settings put system user_rotation 0", "input keyevent 3",
)  # fmt: skip
"""Awake, unlocked, upright for the whole episode, at the home screen."""


class AdbEnv:
    """One episode on ``device``.

    A task whose ``env`` is ``adb`` is set up, read and torn down by shell commands. ``managed`` is for tasks of the
    simulated phone: the device must have the program ``cuarl-device``, as the fake server's do. Without ``prepare`` the
    device is taken as it is shown, since somebody else has set it up.
    """

    def __init__(
        self,
        device: Device,
        *,
        managed: bool = False,
        prepare: bool = True,
        settle_ms: float = 300.0,
        release: Callable[[], None] | None = None,
    ) -> None:
        self._device, self._managed, self._prepare, self._release = device, managed, prepare, release
        self._patience = Patience(quiet_ms=settle_ms, react_ms=2 * settle_ms, cap_ms=max(2000.0, 6 * settle_ms))
        self._task: TaskInstance | None = None
        self._shown: Screenshot | None = None
        self._used = self._closed = self._unicode = False
        self._volatile: tuple[str, ...] = ()

    @property
    def capabilities(self) -> Capabilities:
        """What the phone can do."""
        return Capabilities(ACTIONS, state=True, oracle=self._managed, kind="phone")

    @property
    def volatile(self) -> tuple[str, ...]:
        """Globs of state paths whose change is nobody's fault."""
        return self._volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Bring the device to its home screen and run the task's setup. Raises EnvError, TaskError."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used = True
        self._task = task  # known before setup, so that what a failed reset began is torn down, too
        if self._managed:
            assigned = f"CUARL_SEED={seed} CUARL_TASK={shlex.quote(task.model_dump_json())}"
            self._volatile = tuple((await self._program("reset", assigned + " ")).get("volatile", ()))
        else:
            await run_all(PREPARE if self._prepare else (), self._device.shell)
            await run_all(task.preset.get("setup", ()), self._device.shell)
        self._unicode = UNICODE_IME in (await self._device.shell("ime list -a -s"))[1]
        self._shown = await self._shoot()
        seen = await settle(self._shown, self._shoot, patience=self._patience, check_health=self._health)
        self._shown = seen.screenshot
        return Observation(self._shown)

    async def step(self, action: Action) -> StepResult:
        """Carry out one action, and wait until the screen is still."""
        before = self._ready()
        size = before.width, before.height
        reason = refusal(action, size, unicode=self._unicode)
        if reason:
            return StepResult(Observation(before), info={"rejected": reason, "changed": False})
        await run_all(commands(action, size), self._device.shell)
        if isinstance(action, Wait):
            await anyio.sleep(action.seconds)
        seen = await settle(before, self._shoot, patience=self._patience, check_health=self._health)
        self._shown = seen.screenshot
        info = {"settle_ms": seen.settle_ms, "settled": seen.settled, "changed": seen.changed}
        return StepResult(Observation(seen.screenshot), info=info)

    async def state(self) -> Mapping[str, Any]:
        """The task's readings by name; for a managed device its whole state."""
        self._ready()
        if self._managed:
            return await self._program("state")
        assert self._task is not None
        return await read_all(self._task.preset.get("reads", {}), self._device.shell)

    async def ask_oracle(self) -> Action:
        """The next action of a solution, where the device knows one."""
        self._ready()
        return ACTION.validate_python(await self._program("oracle"))

    async def close(self) -> None:
        """Run the task's teardown. A device that is gone is only warned about."""
        task, self._task, self._closed = self._task, None, True
        if task is not None and not self._managed:
            await self._tear_down(task)
        release, self._release = self._release, None
        if release is not None:
            release()

    async def _tear_down(self, task: TaskInstance) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await run_all(task.preset.get("teardown", ()), self._device.shell)
            except EnvError as error:
                logger.warning("task %s was not torn down on %s: %s", task.task_id, self._device.serial, error)

    def _ready(self) -> Screenshot:
        if self._shown is None or self._closed:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._shown

    async def _shoot(self) -> Screenshot:
        data = await self._device.screencap()
        try:
            return Screenshot.decode(data)
        except (UnidentifiedImageError, OSError) as error:
            raise EnvError(f"device {self._device.serial} gave no picture: {data[:80]!r}") from error

    async def _health(self) -> None:
        _, output = await self._device.shell("dumpsys power")
        if "mWakefulness=Asleep" in output or "mWakefulness=Dozing" in output:
            raise EnvError("the device is asleep, its screen black", hint="adb shell svc power stayon true")

    async def _program(self, verb: str, assigned: str = "") -> dict[str, Any]:
        status, output = await self._device.shell(f"{assigned}cuarl-device {verb}")
        if status == 65:  # EX_DATAERR: the task's preset
            raise TaskError(f"the device refuses the task: {output[:300]}")
        if status:
            raise EnvError(f"cuarl-device {verb} ended with status {status}: {output[:300]}")
        reply: dict[str, Any] = json.loads(output)
        return reply
