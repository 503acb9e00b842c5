"""``step(world, action) -> world``: what a finger does to the device.

Pure; ``Rejected`` says why nothing can happen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuarl.keys import named
from cuarl.sim.device.memory import first_by_identity, remember
from cuarl.sim.device.rejected import Rejected
from cuarl.sim.kit import effects as e
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.marks import slider_track
from cuarl.sim.kit.scene import Placed, Region, Scene
from cuarl.sim.phone import rules, system
from cuarl.sim.phone.chrome import STATUS_HEIGHT
from cuarl.sim.phone.home_editing import home_menu
from cuarl.sim.phone.reduce import apply
from cuarl.sim.phone.view import outside, view
from cuarl.sim.phone.world import World
from cuarl.types import Action, Button, Click, Drag, Key, LongPress, OpenApp, Scroll, Swipe, TypeText, held_keys

__all__ = ["Rejected", "step"]

ACTIONS = frozenset(
    {"click", "long_press", "swipe", "drag", "scroll", "type", "key", "button", "open_app", "wait", "answer", "finish"}
)
"""Kinds of actions that a phone carries out."""


def step(world: World, action: Action) -> World:
    """Carry an action out. Raises ``Rejected``."""
    if action.kind not in ACTIONS:
        raise Rejected(f"a phone has no {action.kind}")
    if held_keys(action):
        raise Rejected(f"a phone can't hold {'+'.join(held_keys(action))} during a {action.kind}")
    if world.ui.toast:
        world = _without_toast(world)
    touch = TOUCHES.get(type(action))
    if touch:
        return touch(world, action)
    return _pressed(world, action) if type(action) in KEYS else world


# Attempts at one task start in the same world and often do the same next. What they do is therefore remembered: those
# who do the same stay in one world, whose screen is laid out and drawn once.


@remember(1024)
def _used(world: World, effect: e.Effect) -> World:
    return apply(world, effect)


@remember(512, key=first_by_identity)
def _pressed(world: World, action: Action) -> World:
    return KEYS[type(action)](world, action)


@remember(512, key=first_by_identity)
def _scrolled_to(world: World, region: str, offset: int) -> World:
    return world.with_ui(scroll=world.ui.scroll.put(region, offset))


@remember(64)
def _without_toast(world: World) -> World:
    return world.with_ui(toast="")


def _click(world: World, action: Click) -> World:
    if action.button != "left":
        raise Rejected(f"a touch screen has no {action.button} button")
    return tap(world, action.x, action.y)


def tap(world: World, x: int, y: int) -> World:
    """Touch a pixel."""
    scene = view(world)
    _inside(scene, x, y)
    hit = hit_test(scene, x, y)
    if hit is None:
        beside = outside(world) if _in_dim(scene, x, y) else None
        return _used(world, beside) if beside else world
    if isinstance(hit.widget, w.Slider):
        return slide(world, hit, x)
    control = hit.widget
    if isinstance(control, w.Control) and control.enabled and control.on_tap is not None:
        return _used(world, control.on_tap)
    return world


def hit_test(scene: Scene, x: int, y: int) -> Placed | None:
    """The topmost control at a pixel that can be reached."""
    for item in reversed(scene.items[scene.modal_from :]):
        x0, y0, x1, y1 = item.visible
        if x0 <= x < x1 and y0 <= y < y1 and isinstance(item.widget, w.Control):
            return item
    return None


def _in_dim(scene: Scene, x: int, y: int) -> bool:
    """Whether a pixel lies on the dimmed part beside a layer."""
    if not scene.modal_from:
        return False
    for item in scene.items[scene.modal_from :]:
        x0, y0, x1, y1 = item.visible
        if isinstance(item.widget, w.Bar) and x0 <= x < x1 and y0 <= y < y1:
            return False
    return True


def slide(world: World, hit: Placed, x: int) -> World:
    """Set a slider to the value under ``x``."""
    slider = hit.widget
    if not isinstance(slider, w.Slider) or not slider.enabled:
        return world
    return rules.put(world, slider.path, slider_value(world, slider, (hit.box[0], hit.box[2]), x))


def slider_value(world: World, slider: w.Slider, span: tuple[int, int], x: int) -> int:
    """The value at pixel column ``x`` of a slider that fills the columns of ``span``."""
    scale = world.profile.scale
    left, right = slider_track((span[1] - span[0]) / scale, bool(slider.icon))
    share = ((x - span[0]) / scale - left) / (right - left)
    return slider.low + round(min(1.0, max(0.0, share)) * (slider.high - slider.low))


def _long_press(world: World, action: LongPress) -> World:
    scene = view(world)
    _inside(scene, action.x, action.y)
    hit = hit_test(scene, action.x, action.y)
    if hit is None:
        at_home = not world.ui.app and not world.ui.overlay and not world.ui.dialog
        return apply(world, home_menu()) if at_home else world
    return _used(world, hit.widget.on_long) if isinstance(hit.widget, w.Control) and hit.widget.on_long else world


def _drag(world: World, action: Drag) -> World:
    (x, y), (x2, y2) = action.path[0], action.path[-1]
    scene = view(world)
    _inside(scene, x, y)
    icon = hit_test(scene, x, y)
    if world.ui.app or world.ui.overlay or icon is None or not isinstance(icon.widget, w.AppIcon):
        return swipe(world, x, y, x2, y2)
    return drop(world, icon.widget.app, x2, y2)


def drop(world: World, key: str, x: int, y: int) -> World:
    """Let an icon of the home screen go: onto another one, onto a folder, or at the edge towards another page."""
    scene = view(world)
    onto = hit_test(scene, x, y)
    if onto and isinstance(onto.widget, w.AppIcon) and onto.widget.app != key:
        return apply(world, e.Do("home.new_folder", (onto.widget.app, key)))
    if onto and isinstance(onto.widget, w.FolderIcon):
        return apply(world, e.Do("home.into_folder", (key, onto.widget.label)))
    edge = scene.size[0] // 10
    if x < edge or x >= scene.size[0] - edge:
        return apply(world, e.Do("home.move", (key, -1 if x < edge else 1)))
    return world


def _swipe(world: World, action: Swipe) -> World:
    return swipe(world, action.x, action.y, action.x2, action.y2)


def swipe(world: World, x: int, y: int, x2: int, y2: int) -> World:
    """Slide from one pixel to another: sliders, panels, home pages, scrolling; a short slide is a tap."""
    scene, scale = view(world), world.profile.scale
    _inside(scene, x, y)
    dx, dy = (x2 - x) / scale, (y2 - y) / scale
    if abs(dx) < 4 and abs(dy) < 4:
        return tap(world, x, y)
    hit = hit_test(scene, x, y)
    if hit and isinstance(hit.widget, w.Slider) and abs(dx) >= abs(dy):
        return slide(world, hit, min(max(x2, 0), scene.size[0] - 1))
    if hit and isinstance(hit.widget, w.Control) and hit.widget.on_swipe and abs(dx) > abs(dy):
        return apply(world, hit.widget.on_swipe)
    panel = _panels(world, y / scale, dx, dy)
    if panel is not None:
        return panel
    region = region_at(scene, x, y)
    return scroll_by(world, region, -dy) if region and abs(dy) > abs(dx) else world


def _panels(world: World, y: float, dx: float, dy: float) -> World | None:
    """Swipes that the system takes for itself: shade, quick settings, drawer, home pages, closing them."""
    ui, upright = world.ui, abs(dy) > abs(dx)
    if ui.dialog or ui.overlay.startswith("folder:"):
        return None
    if upright and dy > 20 and y < STATUS_HEIGHT + 4:
        return apply(world, e.Overlay("quick" if ui.overlay == "shade" else "shade"))
    if ui.overlay == "shade" and upright and dy > 20 and not _scrolled(world):
        return apply(world, e.Overlay("quick"))
    if ui.overlay in ("shade", "quick") and upright and dy < -20 and not _reach(world):
        return apply(world, e.Overlay(""))
    if ui.overlay == "drawer" and upright and dy > 20 and not _scrolled(world):
        return apply(world, e.Overlay(""))
    if ui.app or ui.overlay:
        return None
    if upright:
        return apply(world, e.Overlay("drawer" if dy < 0 else "shade")) if abs(dy) > 20 else world
    page = ui.home_page + (1 if dx < 0 else -1)
    return world.with_ui(home_page=min(max(page, 0), max(0, len(world.state.launcher.pages) - 1)))


def _scrolled(world: World) -> int:
    return world.ui.scroll.get(f"{world.ui.overlay}:", 0) or 0


def _reach(world: World) -> int:
    return max((r.reach - r.offset for r in view(world).regions), default=0)


def region_at(scene: Scene, x: int, y: int) -> Region | None:
    """The topmost scroll region at a pixel."""
    for region in reversed(scene.regions):
        x0, y0, x1, y1 = region.box
        if x0 <= x < x1 and y0 <= y < y1:
            return region
    return None


def scroll_by(world: World, region: Region, units: float) -> World:
    """Scroll a region; positive reveals what is further down."""
    offset = min(max(0, region.offset + round(units)), region.reach)
    return world if offset == region.offset else _scrolled_to(world, region.id, offset)


def _scroll(world: World, action: Scroll) -> World:
    scene, scale = view(world), world.profile.scale
    x = scene.size[0] // 2 if action.x is None else action.x
    y = scene.size[1] // 2 if action.y is None else action.y
    _inside(scene, x, y)
    units = action.amount * 40 if action.unit == "notch" else action.amount / scale
    if action.direction in ("left", "right"):
        shift = units if action.direction == "left" else -units
        return _panels(world, y / scale, shift, 0.0) or world
    dy = units if action.direction == "up" else -units
    panel = _panels(world, y / scale, 0.0, dy)
    if panel is not None:
        return panel
    region = region_at(scene, x, y)
    return scroll_by(world, region, -dy) if region else world


def _type(world: World, action: TypeText) -> World:
    path = world.ui.focus
    if not path:
        raise Rejected("no text field has the focus")
    world = rules.put(world, path, str(world.get(path)) + action.text)
    return apply(world, e.Submit()) if action.submit else world


def _key(world: World, action: Key) -> World:
    for _ in range(action.count):
        world = _pressed_once(world, action)
    return world


def _pressed_once(world: World, action: Key) -> World:
    key = named(action.keys[-1])
    match key.x if key else action.keys[-1].lower():
        case "Return" | "KP_Enter":
            return apply(world, e.Submit())
        case "BackSpace" if world.ui.focus:
            return apply(world, e.Do("keys.erase"))
        case "Escape" | "back":
            return apply(world, e.Back())
        case "Home":
            return apply(world, e.Home())
        case _:
            raise Rejected(f"this phone has no key {'+'.join(action.keys)!r}")


def _button(world: World, action: Button) -> World:
    match action.name:
        case "back":
            return apply(world, e.Back())
        case "home":
            return apply(world, e.Home())
        case "recents":
            return apply(world, e.Overlay("" if world.ui.overlay == "recents" else "recents"))
        case "enter":
            return apply(world, e.Submit())
        case "volume_up" | "volume_down":
            delta = 10 if action.name == "volume_up" else -10
            return rules.put(world, "sound.media", min(100, max(0, world.state.sound.media + delta)))
        case "menu":
            return _menu(world)
        case _:
            return system.power(world)


def _menu(world: World) -> World:
    for item in view(world).items:
        if isinstance(item.widget, w.IconButton) and item.widget.label == "More options":
            return apply(world, item.widget.on_tap)
    return world


def _open_app(world: World, action: OpenApp) -> World:
    wanted = action.name.strip().lower()
    for app in world.state.apps:
        if app.installed and app.icon and wanted in (app.name.lower(), app.package):
            return apply(world, e.Launch(app.key))
    raise Rejected(f"no installed app is called {action.name!r}")


def _inside(scene: Scene, x: int, y: int) -> None:
    width, height = scene.size
    if not (0 <= x < width and 0 <= y < height):
        raise Rejected(f"({x}, {y}) is outside of the screen of {width} by {height} pixels")


TOUCHES: dict[type, Callable[[World, Any], World]] = {
    Click: _click,
    LongPress: _long_press,
    Swipe: _swipe,
    Drag: _drag,
    Scroll: _scroll,
}
KEYS: dict[type, Callable[[World, Any], World]] = {TypeText: _type, Key: _key, Button: _button, OpenApp: _open_app}
