"""What a session can show: the devices that our server wraps, and those of other servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuarl.env.linux.env import ACTIONS as LINUX
from cuarl.env.pods import actions
from cuarl.sim.desktop.device import ACTIONS as DESKTOP
from cuarl.sim.phone.device import ACTIONS as PHONE

if TYPE_CHECKING:
    from cuarl.env.base import Env
    from cuarl.env.leases import Ledger


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """What a client knows of a session before there is one."""

    actions: frozenset[str]
    own: bool
    """Whether the session's server is ours."""
    vocabulary: str = "desktop"
    """``phone`` or ``desktop``."""


KINDS: Mapping[str, DeviceKind] = {
    "pods": DeviceKind(actions.KINDS, own=False),
    "linux": DeviceKind(LINUX, own=True),
    "phone": DeviceKind(PHONE, own=True, vocabulary="phone"),
    "desktop": DeviceKind(DESKTOP, own=True),
}
"""By what ``env`` of a task says."""
SESSION_TYPES = tuple(name for name, kind in KINDS.items() if kind.own)
"""What our server can show."""


def make(session_type: str, ledger: Ledger, *, screen: tuple[int, int] = (1280, 800), profile: str = "phone") -> Env:
    """A device of one of ``SESSION_TYPES``. ``screen`` is a Linux desktop's, ``profile`` a simulated device's.

    Raises PrerequisiteError where this machine can't run it.
    """
    if session_type == "linux":
        from cuarl.env.linux.env import LinuxEnv

        return LinuxEnv(ledger, screen)
    from cuarl.env.sim.devices import make_sim

    return make_sim(session_type, profile)
