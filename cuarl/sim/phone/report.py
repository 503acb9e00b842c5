"""What validators see of a world: the state tree and where the user is, as plain mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.sim.device import tree
from cuarl.sim.device.memory import remember
from cuarl.sim.device.section import section_mapping
from cuarl.sim.phone.launcher import QUERY
from cuarl.sim.phone.world import World


@remember(16)
def state_mapping(world: World) -> Mapping[str, Any]:
    """The device state by section, and ``ui``. Shared between calls: do not change it."""
    state = world.state
    sections = {name: section_mapping(getattr(state, name)) for name in state.__dataclass_fields__}
    return {**sections, "ui": ui_mapping(world)}


def ui_mapping(world: World) -> dict[str, Any]:
    """What navigation tasks may ask of the user interface."""
    ui = world.ui
    app = world.app(ui.app) if ui.app else None
    covered = ui.overlay in ("drawer", "recents")
    form: dict[str, Any] = {}
    for name, value in ui.form.items:
        _nest(form, name.split("."), value)
    return {
        "current_app": app.package if app and not covered else "launcher",
        "current_activity": ui.page if not covered else ui.overlay,
        "page": ui.page,
        "is_home_screen": not ui.app and not ui.overlay,
        "is_recents": ui.overlay == "recents",
        "home_page": ui.home_page,
        "shade_open": ui.overlay == "shade",
        "quick_settings_open": ui.overlay == "quick",
        "drawer_open": ui.overlay == "drawer",
        "drawer_query": str(world.get(QUERY)),
        "folder_open": ui.overlay.partition(":")[2],
        "keyboard_open": bool(ui.focus),
        "focus": ui.focus,
        "dialog": ui.dialog.title if ui.dialog else "",
        "recents": list(ui.recents),
        "form": form,
    }


def _nest(form: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        inner = form.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        form = inner
    form[names[-1]] = tree.as_mapping(value)
