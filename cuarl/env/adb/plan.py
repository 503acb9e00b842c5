"""Plans for phones behind adb, whose accessibility tells where things are."""

from __future__ import annotations

from functools import partial

import anyio

from cuarl.env.adb.commands import refusal
from cuarl.env.adb.transport import Device
from cuarl.env.plans.devices import Abilities
from cuarl.env.plans.elements import ON_DEVICES, Element
from cuarl.env.plans.hierarchy import read_hierarchy
from cuarl.errors import EnvError

ON_PHONES = Abilities(
    "a phone behind adb", partial(refusal, size=(1, 1), unicode=True), ways=ON_DEVICES.ways, terminal=False
)
FILE = "/data/local/tmp/cuarl-window.xml"
"""Where the shell of any Android may write."""
DUMP = f"rm -f {FILE}; uiautomator dump {FILE}; cat {FILE}; rm -f {FILE}"
TRIES, PAUSE_S = 3, 0.5
"""A screen that moves all the time has none to tell: it waits for a rest, and gives up."""


async def read_screen(device: Device, size: tuple[int, int]) -> tuple[Element, ...]:
    """The things on the screen, their boxes in pixels of a screenshot of ``size``. Raises EnvError."""
    for tries in range(1, TRIES + 1):
        _, printed = await device.read(DUMP)
        try:
            return read_hierarchy(printed, size)
        except ValueError as error:
            if tries == TRIES:
                raise EnvError(
                    f"device {device.serial} does not tell what is on its screen: {error}",
                    hint="name places by pixels in the plan: {at: [x, y]}",
                ) from error
            await anyio.sleep(PAUSE_S)
    raise AssertionError("there is a last try")
