"""Which simulated device a task gets: the one place that knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cuarl.env.sim.base import SimulatedEnv
from cuarl.env.sim.desktop import DesktopEnv
from cuarl.env.sim.phone import SimEnv
from cuarl.errors import ConfigError
from cuarl.sim.desktop.world import PROFILES as SCREENS
from cuarl.sim.phone.world import PROFILES as PHONES

PROFILES: Mapping[str, Mapping[str, str]] = {
    "phone": {name: name for name in PHONES},
    "desktop": {"small": "desktop-small", "phone": "desktop", "tall": "desktop", **{name: name for name in SCREENS}},
}
"""Screen by kind of device and name of a profile: a run's one profile gives its desktop tasks a screen of that size
too."""
_DEVICES: Mapping[str, Callable[..., SimulatedEnv[Any]]] = {"phone": SimEnv, "desktop": DesktopEnv}
SIMULATED: tuple[str, ...] = tuple(_DEVICES)
"""What ``env`` of a task that is simulated says."""


def make_sim(kind: str, profile: str = "small", *, clutter: float = 0.1, **more: Any) -> SimulatedEnv[Any]:
    """A fresh simulated device for tasks whose ``env`` is ``kind``.

    ``clutter`` is the share of episodes with something in the way; ``more`` is what this kind of device alone has.
    Raises ConfigError for a profile the device lacks.
    """
    screen = PROFILES[kind].get(profile)
    if screen is None:
        raise ConfigError(
            f"a simulated {kind} has no profile {profile!r}", hint=f"use one of {', '.join(PROFILES[kind])}"
        )
    return _DEVICES[kind](screen, clutter=clutter, **more)
