"""What a device changes by itself when something is set. Few, as on a real phone, and each one listed here.

- Airplane mode on switches Wi-Fi, Bluetooth and the hotspot off and remembers which were on; off switches those on
  again.
- Wi-Fi on joins the first saved network in range; off leaves it. Forgetting the joined network leaves it.

Paths changed here are collected in ``ui.derived``, so that nobody is blamed for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cuarl.sim.device import tree
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.world import World

RADIOS = ("network.wifi.enabled", "network.bluetooth.enabled", "network.hotspot")


def put(world: World, path: str, value: Any) -> World:
    """Write ``value`` at ``path`` and apply the consequences."""
    written = world.put(path, value)
    rule = RULES.get(path)
    if written is world:
        return world
    if path in written.ui.derived:
        written = written.with_ui(derived=tuple(p for p in written.ui.derived if p != path))
    return written if rule is None else _consequences(written, rule(written.state))


def _consequences(world: World, changes: dict[str, Any]) -> World:
    state, derived = world.state, list(world.ui.derived)
    for path, value in changes.items():
        changed = tree.put(state, path, value)
        if changed is not state and path not in derived:
            derived.append(path)
        state = changed
    return replace(world, state=state, ui=replace(world.ui, derived=tuple(derived)))


def _airplane(state: DeviceState) -> dict[str, Any]:
    if state.network.airplane_mode:
        on = tuple(p for p in RADIOS if tree.get(state, p))
        off: dict[str, Any] = dict.fromkeys(on, False)
        return {**off, "network.wifi.connected": "", "network.suspended": on}
    restored = dict.fromkeys(state.network.suspended, True)
    joined = _join(state) if RADIOS[0] in restored else state.network.wifi.connected
    return {**restored, "network.wifi.connected": joined, "network.suspended": ()}


def _wifi(state: DeviceState) -> dict[str, Any]:
    return {"network.wifi.connected": _join(state) if state.network.wifi.enabled else ""}


def _saved(state: DeviceState) -> dict[str, Any]:
    wifi = state.network.wifi
    return {} if wifi.connected in wifi.saved else {"network.wifi.connected": ""}


def _join(state: DeviceState) -> str:
    wifi = state.network.wifi
    return next((name for name in wifi.saved if name in wifi.available), "")


RULES: dict[str, Callable[[DeviceState], dict[str, Any]]] = {
    "network.airplane_mode": _airplane,
    "network.wifi.enabled": _wifi,
    "network.wifi.saved": _saved,
}
