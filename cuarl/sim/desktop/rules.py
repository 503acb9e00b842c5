"""What a desktop changes by itself when something is set: Wi-Fi and airplane mode join and leave the known network."""

from __future__ import annotations

from typing import Any

from cuarl.sim.desktop.state import DesktopState

KNOWN = "HomeNet"
"""The network that Wi-Fi joins by itself."""


def consequences(state: DesktopState, path: str) -> dict[str, Any]:
    """Paths and values that follow from a write at ``path``."""
    network = state.network
    if path in ("network.wifi", "network.airplane_mode"):
        online = network.wifi and not network.airplane_mode
        return {"network.connected": (network.connected or KNOWN) if online else ""}
    return {}
