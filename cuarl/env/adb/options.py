"""What can be chosen about phones and emulators behind adb (``--env adb``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import NonNegativeFloat, PositiveFloat

from cuarl.config.fields import EnvOptions

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig


class Options(EnvOptions):
    """The options of ``env: adb``."""

    capacity = frozenset({"reconnect_seconds"})

    type: Literal["adb"] = "adb"
    settle_ms: PositiveFloat = 300.0
    """How long the screen of a device behind adb must be still after an action; twice as long is waited for a first
    change."""
    reset: Literal["none", "home", "force-stop", "clear", "snapshot"] = "home"
    """How a device behind adb comes back before an episode whose task does not say it: not at all, to its home screen,
    with the task's apps stopped or their data deleted, or as a snapshot of the emulator has it."""
    snapshot: str | None = None
    """Name of that snapshot."""
    rotation: Literal["portrait", "landscape", "free"] = "portrait"
    """How the screen of a device behind adb is held during an episode; free leaves it to the device."""
    state: Literal["program", "shell"] = "program"
    """Who sets up and reads a device behind adb for tasks of the simulated phone: the program cuarl-device on it,
    or the shell that every Android has; tasks that need more than a shell are left out."""
    reconnect_seconds: NonNegativeFloat = 20.0
    """How long a device that drops off adb is waited for before its episode fails."""

    def problems(self, config: ExperimentConfig) -> Iterator[str]:
        """Devices that are wanted twice at a time."""
        if config.max_steps_off_policy:
            yield (
                "max_steps_off_policy would leave evaluations without devices, which the episodes in flight hold: "
                "set it to 0"
            )
