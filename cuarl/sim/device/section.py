"""A section of a device's state as validators see it."""

from __future__ import annotations

from typing import Any

from cuarl.sim.device import tree
from cuarl.sim.device.memory import remember


@remember(512)
def section_mapping(section: Any) -> Any:
    """One section of the state; most sections stay the same objects from step to step."""
    return tree.as_mapping(section)
