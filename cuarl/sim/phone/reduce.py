"""The one place where effects become changes: ``apply(world, effect) -> world``. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuarl.sim.kit import effects as e
from cuarl.sim.kit import widgets as w
from cuarl.sim.phone import rules
from cuarl.sim.phone.apps import ACTIONS, build, home_of
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import World


def apply(world: World, effect: e.Effect | None) -> World:
    """The world after an effect."""
    return world if effect is None else REDUCERS[type(effect)](world, effect)


def _put(world: World, effect: e.Put) -> World:
    return rules.put(world, effect.path, effect.value)


def _toggle(world: World, effect: e.Toggle) -> World:
    return rules.put(world, effect.path, not world.get(effect.path))


def _copy(world: World, effect: e.Copy) -> World:
    return rules.put(world, effect.target, world.get(effect.source))


def _append(world: World, effect: e.Append) -> World:
    items = world.get(effect.path)
    return world if effect.item in items else rules.put(world, effect.path, (*items, effect.item))


def _remove(world: World, effect: e.Remove) -> World:
    items = world.get(effect.path)
    return rules.put(world, effect.path, tuple(i for i in items if i != effect.item))


def _open(world: World, effect: e.Open) -> World:
    app = effect.page.partition("/")[0]
    stack = world.ui.stacks.get(app) or (home_of(app),)
    if stack[-1] != effect.page:
        stack = (*stack, effect.page)
    return show_page(world, app, stack)


def _replace(world: World, effect: e.Replace) -> World:
    app = effect.page.partition("/")[0]
    return show_page(world, app, (*world.ui.stacks.get(app, ())[:-1], effect.page))


def show_page(world: World, app: str, stack: tuple[str, ...]) -> World:
    """Bring ``app`` to the front with these pages, scrolled to the top."""
    ui = world.ui
    recents = ui.recents if ui.recents[:1] == (app,) else (app, *(a for a in ui.recents if a != app))
    world = world.with_ui(
        app=app,
        stacks=ui.stacks.put(app, stack),
        recents=recents,
        overlay="",
        focus="",
        dialog=None,
        scroll=ui.scroll.drop(f"page:{stack[-1]}"),
    )
    known = world.app(app)
    return world if known is None or known.running else world.put(f"apps.{app}.running", True)


def _back(world: World, effect: e.Back) -> World:
    ui = world.ui
    if ui.focus:
        return world.with_ui(focus="")
    if ui.dialog:
        return world.with_ui(dialog=None)
    if ui.overlay:
        return world.with_ui(overlay="")
    if not ui.app:
        return world.with_ui(home_page=0)
    instead = build(world, ui.page).back
    if instead is not None:
        return apply(world, instead)
    stack = ui.stacks.get(ui.app, ())
    if len(stack) > 1:
        return world.with_ui(stacks=ui.stacks.put(ui.app, stack[:-1]))
    return world.with_ui(app="")


def _home(world: World, effect: e.Home) -> World:
    at_home = not world.ui.app and not world.ui.overlay
    page = 0 if at_home else world.ui.home_page
    popup = world.ui.dialog if world.ui.dialog and world.ui.dialog.kind == "popup" else None
    return world.with_ui(app="", overlay="", focus="", dialog=popup, home_page=page)


def _launch(world: World, effect: e.Launch) -> World:
    stack = world.ui.stacks.get(effect.app) or (home_of(effect.app),)
    return show_page(world, effect.app, stack)


def _overlay(world: World, effect: e.Overlay) -> World:
    return world.with_ui(
        overlay=effect.name,
        focus="",
        scroll=world.ui.scroll.drop(f"{effect.name}:"),
        form=world.ui.form.drop("drawer."),
    )


def _show(world: World, effect: e.Show) -> World:
    return world.with_ui(dialog=effect.dialog, focus="", scroll=world.ui.scroll.drop("dialog:"))


def _dismiss(world: World, effect: e.Dismiss) -> World:
    return world.with_ui(dialog=None, focus="")


def _focus(world: World, effect: e.Focus) -> World:
    empty = bool(effect.path) and not world.get(effect.path)
    return world.with_ui(focus=effect.path, symbols=False, shift=empty)


def _submit(world: World, effect: e.Submit) -> World:
    for item in view(world).items:
        if isinstance(item.widget, w.Field) and item.widget.path == world.ui.focus:
            return apply(world.with_ui(focus=""), item.widget.submit)
    return world.with_ui(focus="")


def _toast(world: World, effect: e.Toast) -> World:
    return world.with_ui(toast=effect.text)


def _do(world: World, effect: e.Do) -> World:
    changed: World = ACTIONS[effect.name](world, *effect.args)
    return changed


def _seq(world: World, effect: e.Seq) -> World:
    for part in effect.effects:
        world = apply(world, part)
    return world


REDUCERS: dict[type[e.Effect], Callable[[World, Any], World]] = {
    e.Put: _put, e.Toggle: _toggle, e.Copy: _copy, e.Append: _append, e.Remove: _remove, e.Open: _open,
    e.Replace: _replace,
    e.Back: _back, e.Home: _home, e.Launch: _launch, e.Overlay: _overlay, e.Show: _show, e.Dismiss: _dismiss,
    e.Focus: _focus, e.Submit: _submit, e.Toast: _toast, e.Do: _do, e.Seq: _seq,
}  # fmt: skip
