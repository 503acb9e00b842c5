"""From what a gym tells of an execution's device to hands and eyes on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from cuarl.env.adb.commands import ACTIONS as ADB_ACTIONS
from cuarl.env.adb.env import AdbEnv
from cuarl.env.adb.options import Options as AdbOptions
from cuarl.env.adb.transport import Device
from cuarl.env.base import Capabilities
from cuarl.env.gbox.actions import KINDS
from cuarl.env.gbox.client import BoxType, GBox
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gbox.options import Options as BoxOptions
from cuarl.env.gym.client import Started
from cuarl.env.leases import Ledger
from cuarl.env.plans.steps import Line
from cuarl.errors import EnvError

Space = Literal["mobile", "pc"]
BOXES: dict[Space, BoxType] = {"mobile": "android", "pc": "linux"}


def capabilities(space: Space) -> Capabilities:
    """What can be done before it is known whether a box or a device of adb it is: what both can."""
    actions = KINDS[BOXES[space]]
    if space == "mobile":
        return Capabilities(actions & ADB_ACTIONS, kind="phone")
    return Capabilities(actions, kind="desktop")


class Devices:
    """Devices that a gym has set up and will end; ``boxes`` and ``adb`` are asked for when the first one needs them."""

    def __init__(
        self, ledger: Ledger, boxes: Callable[[], GBox], adb: Callable[[], Any], *, space: Space, settle_ms: float
    ) -> None:
        self.space, self._ledger, self._settle_ms = space, ledger, settle_ms
        self._make_boxes, self._make_adb = boxes, adb
        self._boxes: GBox | None = None
        self._adb: Any = None

    def env(self, started: Started, plan: Sequence[Line] = ()) -> AdbEnv | GBoxEnv:
        """The device of an execution, used as it is, whose oracle follows ``plan``.

        Raises EnvError if the gym does not tell it.
        """
        if started.serial:
            self._adb = self._adb or self._make_adb()
            device, options = Device(self._adb, started.serial), AdbOptions(settle_ms=self._settle_ms)
            return AdbEnv(device, options, plan=plan, prepare=False)
        if not started.box:
            raise EnvError(
                f"the gym server does not tell the device of execution {started.id}, so cuarl can't act in it",
                hint="--gym-actor mini-agent",
            )
        self._boxes = self._boxes or self._make_boxes()
        box_options = BoxOptions(box_type=BOXES[self.space], settle_ms=self._settle_ms)
        return GBoxEnv(self._boxes, self._ledger, "gbox", box_options, lent=started.box, plan=plan)

    async def close(self) -> None:
        """Close the connections."""
        if self._boxes is not None:
            await self._boxes.close()
