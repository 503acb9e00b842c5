"""What can be chosen about cloud boxes of GBox (``--env gbox``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from cuarl.config.fields import EnvOptions

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig


class Options(EnvOptions):
    """The options of ``env: gbox``."""

    capacity = frozenset({"boxes", "starting", "start_seconds", "expires_in"})
    flags = MappingProxyType({"coordinate_mode": "coordinate_mode"})

    type: Literal["gbox"] = "gbox"
    box_type: Literal["android", "linux"] = "android"
    """Box for tasks whose env is gbox; tasks for a phone get android, those for a desktop linux."""
    expires_in: Annotated[str, Field(pattern=r"^[1-9]\d*(ms|s|m|h)$")] = "60m"
    """When GBox ends a box by itself, whatever becomes of this process."""
    start_seconds: PositiveFloat = 120.0
    """How long a box may take to start."""
    settle_ms: PositiveFloat = 300.0
    """How long a box's screen must be still after an action; twice as long is waited for a first change."""
    state: Literal["program", "shell"] = "program"
    """Who sets up and reads a box for tasks of the simulated phone: the program cuarl-device on it,
    or the shell that every Android has; tasks that need more than a shell are left out."""
    boxes: PositiveInt = 64
    """Most boxes of an account at the same time, within max_concurrent_rollouts; set it to the account's quota."""
    starting: PositiveInt = 8
    """Most boxes of an account that are being started at the same time, so that a service refuses few of them."""
    coordinate_mode: Literal["direct", "gbox"] = "direct"
    """Who says where to act: direct is the policy itself, gbox a model of GBox, to which the policy describes the
    target."""

    @property
    def describes(self) -> bool:
        """Whether a model of GBox finds the points."""
        return self.coordinate_mode == "gbox"

    def idle(self) -> Iterator[tuple[str, str]]:
        """What asks for words that GBox's model would not get."""
        if self.describes:
            yield "renderer_name", "env.coordinate_mode gbox, which has words of its own"

    def problems(self, config: ExperimentConfig) -> Iterator[str]:
        """Boxes that end too early."""
        if _seconds(self.expires_in) <= config.max_task_time_seconds:
            yield "env.expires_in must exceed max_task_time_seconds: boxes would end while they are in use"


def _seconds(duration: str) -> float:
    """Of a number with its unit, as GBox writes durations."""
    number = duration.rstrip("hms")
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[duration.removeprefix(number)]
