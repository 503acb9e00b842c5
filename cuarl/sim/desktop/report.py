"""What validators see of a desktop: the state tree and where the user is, as plain mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.window_view import title_of_window
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.device.memory import remember
from cuarl.sim.device.section import section_mapping


@remember(16)
def state_mapping(world: DesktopWorld) -> Mapping[str, Any]:
    """The state by section, and ``ui``. Shared between calls: do not change it."""
    state = world.state
    sections = {name: section_mapping(getattr(state, name)) for name in state.__dataclass_fields__}
    return {**sections, "ui": ui_mapping(world)}


def ui_mapping(world: DesktopWorld) -> dict[str, Any]:
    """What navigation tasks may ask of the user interface."""
    top, ui = world.focused, world.ui
    opened = sorted(ui.windows, key=lambda window: int(window.key.rpartition("-")[2]))
    return {
        "windows": [_window(world, window) for window in opened],
        "count": len(opened),
        "apps": sorted({window.app for window in opened}),
        "focused": top.app if top else "",
        "page": top.page if top else "",
        "dialog": top.dialog.title if top and top.dialog else "",
        "menu": ui.menu.name if ui.menu else "",
        "notice": ui.notice,
        "selected": list(top.get("picked", ())) if top else [],
        "typed": _typed(top),
    }


def _window(world: DesktopWorld, window: Window) -> dict[str, Any]:
    return {
        "app": window.app,
        "page": window.page,
        "title": title_of_window(world, window),
        "minimised": window.minimised,
        "maximised": window.maximised,
        "focused": window is world.focused,
    }


def _typed(window: Window | None) -> dict[str, str]:
    """The texts that a window holds, by name."""
    if window is None:
        return {}
    return {name: content.text for name, content in sorted(window.form.items) if isinstance(content, TextBox)}
