"""``GymEnv``: an execution of a gym server behind the environment seam (docs/guides/gym.md)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio

from cuarl.env.adb.env import AdbEnv
from cuarl.env.base import Capabilities
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gym.client import Gym, Started
from cuarl.env.gym.devices import Devices, capabilities
from cuarl.env.gym.lease import KIND
from cuarl.env.leases import Lease, Ledger
from cuarl.env.plans.steps import Line
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Verdict
from cuarl.types import Action, Observation, StepResult

logger = logging.getLogger(__name__)

GRACE_S = 8.0
"""How long an abandoned episode waits for the id of an execution that is being started, so that it can be ended."""


class GymEnv:
    """One execution. The gym sets the device up and judges; cuarl acts in the device.

    ``starting`` bounds how many executions are being started at the same time; ``plan`` is what the oracle follows.
    """

    def __init__(
        self,
        gym: Gym,
        ledger: Ledger,
        devices: Devices,
        starting: anyio.CapacityLimiter,
        plan: Sequence[Line] = (),
    ) -> None:
        self._plan = plan
        self._gym, self._ledger, self._devices, self._starting = gym, ledger, devices, starting
        self._lease: Lease | None = None
        self._started: Started | None = None
        self._device: AdbEnv | GBoxEnv | None = None
        self._used = self._closed = False

    @property
    def device_name(self) -> str:
        """The execution's id."""
        return self._started.id if self._started else ""

    @property
    def capabilities(self) -> Capabilities:
        """What the device can do; its state is the gym's own affair."""
        return replace(capabilities(self._devices.space), oracle=bool(self._plan))

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Start the execution, and take a screenshot of its device."""
        started = await self.begin(task, seed)
        self._device = self._devices.env(started, self._plan)
        return await self._device.reset(task, seed)

    async def begin(self, task: TaskInstance, seed: int) -> Started:
        """Start the execution. Raises EnvError."""
        if self._used or self._closed:
            raise EnvError("this environment was reset already; an environment serves one episode")
        self._used = True
        detail = {"base_url": self._gym.service.base_url, "gym_id": self._gym.gym_id, "task": task.task_id}
        async with self._starting:
            self._lease = self._ledger.hold(KIND, secrets.token_hex(12), detail)
            asked = asyncio.ensure_future(self._gym.create(task.task_id, seed))
            try:
                started = await asyncio.shield(asked)
            except asyncio.CancelledError:
                await self._learn_late(asked)
                raise
            return self._know(started)

    async def _learn_late(self, asked: asyncio.Future[Started]) -> None:
        """The episode is over, but the gym may just be starting its execution: learn its id, to end it."""
        with anyio.move_on_after(GRACE_S, shield=True), suppress(EnvError):
            self._know(await asked)

    def _know(self, started: Started) -> Started:
        self._started = started
        if self._lease is not None:
            self._lease.note(execution=started.id)
        return started

    async def step(self, action: Action) -> StepResult:
        """Carry out one action on the device."""
        return await self._ready().step(action)

    async def state(self) -> Mapping[str, Any]:
        """Nothing: the gym keeps it to itself, and judges by it."""
        return {}

    async def ask_oracle(self) -> Action:
        """The next action of the plan. Raises AgentError for a step that can't be done."""
        return await self._ready().ask_oracle()

    async def around(self, x: int, y: int) -> tuple[int, int, int, int] | None:
        """How far what the plan has just pointed at reaches, in pixels of the screenshot."""
        return await self._ready().around(x, y)

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        """The gym's verdict. Raises RewardError if it gives none."""
        if self._started is None:
            raise EnvError("the environment was not reset", hint="call reset(task, seed) first")
        verdict = await self._gym.evaluate(self._started.id, answer)
        return verdict.model_copy(update={"claimed": claimed})

    async def close(self) -> None:
        """End the execution. If that fails, its lease stays, and ``cuarl sessions sweep`` can end it later."""
        lease, self._lease, self._closed = self._lease, None, True
        device, self._device = self._device, None
        with anyio.CancelScope(shield=True):
            if device is not None:
                await device.close()
            if lease is not None and await self._ended():
                lease.release()

    async def _ended(self) -> bool:
        if self._started is None:  # there is no execution, or none that anybody can name
            return True
        try:
            await self._gym.terminate(self._started.id)
        except EnvError as error:
            later = "cuarl sessions sweep does it later"
            logger.warning("execution %s could not be ended (%s): %s", self._started.id, later, error)
            return False
        return True

    def _ready(self) -> AdbEnv | GBoxEnv:
        if self._device is None or self._closed:
            raise EnvError("the environment was not reset, or was closed", hint="call reset(task, seed) first")
        return self._device
