"""Files: folders and what is in them; making, renaming, copying, moving, deleting, and the trash."""

from __future__ import annotations

from cuarl.sim.desktop.apps.files import choose, create, move
from cuarl.sim.desktop.apps.files.pane import APP

__all__ = ["APP", "choose", "create", "move"]
