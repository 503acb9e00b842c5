"""The world in which an episode starts.

The look of its seed, the task's preset, and now and then a pop-up in the way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuarl.errors import TaskError
from cuarl.sim.device import tree
from cuarl.sim.device.memory import remember
from cuarl.sim.kit.effects import Dialog, Dismiss, Launch, Open, Option, Overlay
from cuarl.sim.phone import launcher
from cuarl.sim.phone.look import POPUPS, Look
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.world import Profile, World
from cuarl.tasks.task import TaskInstance


@remember(128)
def prepare(task: TaskInstance, look: Look, profile: Profile) -> World:
    """The world in which an episode of ``task`` starts: one and the same for the attempts of a group."""
    state = replace(DeviceState(), launcher=replace(DeviceState().launcher, pages=()))
    world = World(state, look=look, profile=profile)
    world = world.put("display.dark_theme", look.dark).put("battery.level", look.battery)
    world = world.put("notifications.items", look.notifications)
    start: dict[str, Any] = {}
    for path, value in task.preset.items():
        if path.startswith("ui."):
            start[path] = value
        else:
            world = replace(world, state=_preset(world.state, path, value, task))
    if not world.state.launcher.pages:
        pages = launcher.first_layout(world.state, look.seed, launcher.rows_that_fit(profile.height))
        world = world.put("launcher.pages", pages)
    for path, value in start.items():
        world = _start(world, path, value, task)
    return with_popup(world)


def _preset(state: DeviceState, path: str, value: Any, task: TaskInstance) -> DeviceState:
    try:
        return tree.put_plain(state, path, value)
    except KeyError as error:
        raise TaskError(f"preset {path!r}: there is no {error.args[0]!r}", where=f"task {task.task_id}") from error
    except TypeError as error:
        raise TaskError(f"preset {path!r}: {error}", where=f"task {task.task_id}") from error


def _start(world: World, path: str, value: Any, task: TaskInstance) -> World:
    match path:
        case "ui.page":
            return apply(apply(world, Launch(str(value).partition("/")[0])), Open(str(value)))
        case "ui.app":
            return apply(world, Launch(str(value)))
        case "ui.overlay":
            return apply(world, Overlay(str(value)))
        case "ui.home_page" if value in range(len(world.state.launcher.pages)):
            return world.with_ui(home_page=value)
        case _ if path.startswith("ui.form."):
            return world.put(path, value)
    raise TaskError(
        f"preset {path!r} can't be set",
        where=f"task {task.task_id}",
        hint="use ui.app, ui.page, ui.overlay, ui.home_page or ui.form.NAME",
    )


def with_popup(world: World) -> World:
    """The world with the pop-up of its look in the way, if it has one."""
    if world.look.popup < 0:
        return world
    title, text, button = POPUPS[world.look.popup]
    return world.with_ui(dialog=Dialog(title, text, buttons=(Option(button, Dismiss()),), kind="popup"))
