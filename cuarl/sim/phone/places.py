"""Checks on where the user is, as places that ``leads_to`` can go to."""

from __future__ import annotations

from cuarl.sim.phone.graph import page_graph
from cuarl.sim.phone.world import World
from cuarl.tasks.task import Check

LAYERS = {
    "ui.is_recents": "recents",
    "ui.shade_open": "shade",
    "ui.quick_settings_open": "quick",
    "ui.drawer_open": "drawer",
}


def place_of(world: World, check: Check) -> str | None:
    """Where to go so that a check on ``ui`` holds; None for anything else."""
    path, value = check.path, check.value
    if path in LAYERS:
        return f"layer/{LAYERS[path]}" if value is True else "home"
    match path:
        case "ui.is_home_screen":
            return "home"
        case "ui.current_app":
            return next((f"app/{a.key}" for a in world.state.apps if a.package == value), "home")
        case "ui.folder_open":
            return f"layer/folder:{value}" if value else "home"
        case "ui.home_page":
            return "home" if value == 0 else f"home/{value}"
        case "ui.page" | "ui.current_activity":
            return _page(world, str(value), exact=check.op == "equals")
    return None


def _page(world: World, text: str, *, exact: bool) -> str | None:
    if text in LAYERS.values():
        return f"layer/{text}"
    pages = page_graph(world).edges
    if exact or text in pages:
        return text
    return next((page for page in pages if text in page), None)
