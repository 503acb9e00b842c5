"""The one place where effects become changes: ``apply(world, effect) -> world``. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cuarl.sim.desktop import apps, rules, windows
from cuarl.sim.desktop.registry import APPS
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.world import DesktopWorld, Menu
from cuarl.sim.device import tree
from cuarl.sim.kit import effects as e

__all__ = ["apply", "apps", "write"]


def apply(world: DesktopWorld, effect: e.Effect | None) -> DesktopWorld:
    """The world after an effect; those on a window mean the focused one."""
    return world if effect is None else REDUCERS[type(effect)](world, effect)


def write(world: DesktopWorld, path: str, value: Any) -> DesktopWorld:
    """Write ``value`` at a state path and apply the consequences."""
    written = world.put(path, value)
    if written is world:
        return world
    state = written.state
    for other, follows in rules.consequences(state, path).items():
        state = tree.put(state, other, follows)
    return replace(written, state=state)


def _put(world: DesktopWorld, effect: e.Put) -> DesktopWorld:
    return write(world, effect.path, effect.value)


def _toggle(world: DesktopWorld, effect: e.Toggle) -> DesktopWorld:
    return write(world, effect.path, not world.get(effect.path))


def _append(world: DesktopWorld, effect: e.Append) -> DesktopWorld:
    items = world.get(effect.path)
    return world if effect.item in items else write(world, effect.path, (*items, effect.item))


def _remove(world: DesktopWorld, effect: e.Remove) -> DesktopWorld:
    return write(world, effect.path, tuple(item for item in world.get(effect.path) if item != effect.item))


def _launch(world: DesktopWorld, effect: e.Launch) -> DesktopWorld:
    return windows.launch(world, effect.app)


def _open(world: DesktopWorld, effect: e.Open) -> DesktopWorld:
    """In the app's own window the page changes; from elsewhere a window opens."""
    app, _, page = effect.page.partition("/")
    top = world.focused
    if top is not None and top.app == app and app in ("files", "settings"):
        show = APPS[app].actions.get(f"{app}.show")
        return show(world, top.key, page) if show else world.with_window(top.with_page(page))
    return windows.open_window(world, app, page)


def _show(world: DesktopWorld, effect: e.Show) -> DesktopWorld:
    """Menus open at the pointer, boxes over the focused window."""
    box, top = effect.dialog, world.focused
    if box.kind == "menu":
        scale = world.screen.scale
        x, y = (round(n / scale) for n in world.ui.pointer)
        return world.with_ui(menu=Menu(box.title, x, y, box.options))
    if top is None:
        return world
    first = box.inputs[0].path if box.inputs else ""
    return world.with_window(replace(top, dialog=box, focus=first or top.focus))


def _dismiss(world: DesktopWorld, effect: e.Dismiss) -> DesktopWorld:
    top = world.focused
    world = world.with_ui(menu=None)
    return world if top is None else world.with_window(replace(top, dialog=None, focus=""))


def _focus(world: DesktopWorld, effect: e.Focus) -> DesktopWorld:
    top = world.focused
    if top is None or top.focus == effect.path:
        return world
    content = top.form.get(effect.path)
    window = top if isinstance(content, TextBox) else top.put(effect.path, TextBox())
    return world.with_window(replace(window, focus=effect.path))


def _do(world: DesktopWorld, effect: e.Do) -> DesktopWorld:
    app = effect.name.partition(".")[0]
    run: Callable[..., DesktopWorld] = SYSTEM[effect.name] if effect.name in SYSTEM else APPS[app].actions[effect.name]
    return run(world, *effect.args)


def _seq(world: DesktopWorld, effect: e.Seq) -> DesktopWorld:
    for part in effect.effects:
        world = apply(world, part)
    return world


def _clear_notice(world: DesktopWorld) -> DesktopWorld:
    return world.with_ui(notice="")


def _pick_icon(world: DesktopWorld, path: str) -> DesktopWorld:
    return world.with_ui(picked=path)


SYSTEM: dict[str, Callable[..., DesktopWorld]] = {
    "window.close": windows.close, "window.discard": windows.discard, "window.minimise": windows.minimise,
    "window.maximise": windows.toggle_maximised, "window.task": windows.press_task, "window.focus": windows.focus,
    "desk.show": windows.show_desktop, "desk.clear_notice": _clear_notice, "desk.pick": _pick_icon,
}  # fmt: skip
"""Actions of the desktop itself."""

REDUCERS: dict[type[e.Effect], Callable[[DesktopWorld, Any], DesktopWorld]] = {
    e.Put: _put, e.Toggle: _toggle, e.Append: _append, e.Remove: _remove, e.Open: _open, e.Launch: _launch,
    e.Show: _show,
    e.Dismiss: _dismiss, e.Focus: _focus, e.Do: _do, e.Seq: _seq,
}  # fmt: skip
