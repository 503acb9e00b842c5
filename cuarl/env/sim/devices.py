"""Which simulated device a task gets: the one place that knows.

A kind of device is loaded when it is asked for: who trains on phones waits for no desktop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cuarl.errors import ConfigError

if TYPE_CHECKING:
    from cuarl.env.sim.base import SimulatedEnv


class Kind(NamedTuple):
    """A kind of device."""

    make: Callable[..., SimulatedEnv[Any]]
    profiles: Mapping[str, str]
    """Its screens by the names of profiles: a run's one profile gives its desktop tasks a screen of that size too."""


def _phone() -> Kind:
    from cuarl.env.sim.phone import SimEnv
    from cuarl.sim.phone.world import PROFILES

    return Kind(SimEnv, {name: name for name in PROFILES})


def _desktop() -> Kind:
    from cuarl.env.sim.desktop import DesktopEnv
    from cuarl.sim.desktop.world import PROFILES

    of_phones = {"small": "desktop-small", "phone": "desktop", "tall": "desktop"}
    return Kind(DesktopEnv, {**of_phones, **{name: name for name in PROFILES}})


_KINDS: Mapping[str, Callable[[], Kind]] = {"phone": _phone, "desktop": _desktop}
SIMULATED: tuple[str, ...] = tuple(_KINDS)
"""What ``env`` of a task that is simulated says."""


def load(kind: str) -> Kind:
    """A kind of device, with all that its first episode would otherwise wait for."""
    return _KINDS[kind]()


def make_sim(kind: str, profile: str = "small", *, clutter: float = 0.1, **more: Any) -> SimulatedEnv[Any]:
    """A fresh simulated device for tasks whose ``env`` is ``kind``.

    ``clutter`` is the share of episodes with something in the way; ``more`` is what this kind of device alone has.
    Raises ConfigError for a profile the device lacks.
    """
    device = load(kind)
    screen = device.profiles.get(profile)
    if screen is None:
        raise ConfigError(
            f"a simulated {kind} has no profile {profile!r}", hint=f"use one of {', '.join(device.profiles)}"
        )
    return device.make(screen, clutter=clutter, **more)
