"""Bringing a device to where an episode begins."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

import anyio

from cuarl.env.adb.console import load_snapshot
from cuarl.env.adb.preset import Preset
from cuarl.env.adb.transport import Device
from cuarl.env.shell_checks.reads import run_all
from cuarl.errors import EnvError

Rotation = Literal["portrait", "landscape", "free"]
"""Held upright or sideways for the whole episode, or left to the device."""
AWAKE = ("input keyevent 224", "wm dismiss-keyguard")
HOME = "input keyevent 3"
BOOT_S = 60.0
SWITCHES = ("accelerometer_rotation", "user_rotation")


async def bring_back(device: Device, preset: Preset, host: str) -> None:
    """Carry out the preset's reset. Raises EnvError."""
    if preset.reset == "snapshot":
        await load_snapshot(host, device.serial, preset.snapshot)
        await _booted(device)
    await run_all(AWAKE, device.shell)
    if preset.reset in ("force-stop", "clear"):
        command = "am force-stop" if preset.reset == "force-stop" else "pm clear"
        await run_all((f"{command} {shlex.quote(package)}" for package in preset.apps.values()), device.shell)
    if preset.reset != "none":
        await run_all([HOME], device.shell)


async def _booted(device: Device) -> None:
    """Wait until a device that was put back has its system up."""
    with anyio.move_on_after(BOOT_S):
        while (await device.read("getprop sys.boot_completed"))[1].strip() != "1":
            await anyio.sleep(0.5)
        return
    raise EnvError(f"{device.serial} did not come up within {BOOT_S:g} s after its snapshot was loaded")


async def rotation_undo(device: Device) -> list[str]:
    """Commands that put the device's rotation back to what it is now."""
    undo = []
    for name in SWITCHES:
        value = (await device.read(f"settings get system {name}"))[1].strip()
        gone = value in ("", "null")
        undo.append(f"settings delete system {name}" if gone else f"settings put system {name} {shlex.quote(value)}")
    return undo


def turned(quarter: int) -> Sequence[str]:
    """Commands that hold the device at a quarter turn (0 is as it was built, 1 to its left)."""
    return [f"settings put system {SWITCHES[0]} 0", f"settings put system {SWITCHES[1]} {quarter}"]
