"""One thing on a screen that can be used."""

from __future__ import annotations

from dataclasses import dataclass

from cuarl.sim.kit.effects import Effect
from cuarl.sim.kit.scene import Box

VISIBLE_SHARE = 0.6
"""An element counts as visible if at least this share of its height is."""


@dataclass(frozen=True, slots=True)
class Element:
    """One thing that can be tapped."""

    id: str
    """Unique on its screen: role and label, with a number where these repeat."""
    role: str
    label: str
    box: Box
    """Visible part, pixels."""
    checked: bool | None = None
    value: str = ""
    writes: str = ""
    """State path that using it changes, directly or in the dialog that it opens."""
    opens: str = ""
    """Page, ``app/KEY`` or ``layer/NAME`` that it leads to."""
    enabled: bool = True
    effect: Effect | None = None
    app: str = ""
    """Key of the app whose icon it is."""

    @property
    def centre(self) -> tuple[int, int]:
        """Middle of the visible part, pixels."""
        x0, y0, x1, y1 = self.box
        return (x0 + x1) // 2, (y0 + y1) // 2
