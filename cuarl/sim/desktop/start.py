"""The desktop on which an episode starts.

The look of its seed, the task's preset, open windows, now and then a notification.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuarl.errors import TaskError
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.look import NOTICES, DesktopLook
from cuarl.sim.desktop.reduce import apply
from cuarl.sim.desktop.registry import APPS
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.desktop.world import DesktopWorld, Screen
from cuarl.sim.device import tree
from cuarl.sim.kit.effects import Open
from cuarl.tasks.task import TaskInstance


def prepare(task: TaskInstance, look: DesktopLook, screen: Screen) -> DesktopWorld:
    """The world in which an episode of ``task`` starts. Raises TaskError for a preset that can't be."""
    world = DesktopWorld(look=look, screen=screen)
    world = world.put("appearance.dark_style", look.dark).put("power.battery", look.battery)
    start: dict[str, Any] = {}
    for path, value in task.preset.items():
        if path.startswith("ui."):
            start[path] = value
        else:
            world = replace(world, state=_preset(world.state, path, value, task))
    if not start:
        for app in look.open_apps:
            world = windows.launch(world, app)
    for path, value in start.items():
        world = _start(world, path, value, task)
    return world.with_ui(notice=NOTICES[look.notice][0]) if look.notice >= 0 else world


def _preset(state: DesktopState, path: str, value: Any, task: TaskInstance) -> DesktopState:
    try:
        return tree.put_plain(state, path, value)
    except KeyError as error:
        raise TaskError(f"preset {path!r}: there is no {error.args[0]!r}", where=f"task {task.task_id}") from error
    except TypeError as error:
        raise TaskError(f"preset {path!r}: {error}", where=f"task {task.task_id}") from error


def _start(world: DesktopWorld, path: str, value: Any, task: TaskInstance) -> DesktopWorld:
    where = f"task {task.task_id}"
    pages = [value] if isinstance(value, str) else value
    if path not in ("ui.app", "ui.apps", "ui.page") or not isinstance(pages, list | tuple):
        raise TaskError(
            f"preset {path!r} can't be set", where=where, hint="use ui.app, ui.apps (a list) or ui.page (app/page)"
        )
    for page in pages:
        app = str(page).partition("/")[0]
        if app not in APPS:
            raise TaskError(
                f"preset {path!r}: there is no app {app!r}", where=where, hint=f"use one of {', '.join(APPS)}"
            )
        world = apply(world, Open(str(page))) if path == "ui.page" else windows.launch(world, app)
    return world
