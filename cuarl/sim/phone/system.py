"""Actions of the system itself: the keyboard, recents, screenshots, uninstalling."""

from __future__ import annotations

from cuarl.sim.kit.effects import Dialog, Dismiss, Do, Option, Toggle
from cuarl.sim.phone import rules
from cuarl.sim.phone.apps import register
from cuarl.sim.phone.records import Photo
from cuarl.sim.phone.registry import AppModule
from cuarl.sim.phone.world import World

KEYS = AppModule("keys", home="")
SYSTEM = AppModule("system", home="")


@KEYS.action("type")
def type_text(world: World, text: str) -> World:
    """Append ``text`` to the focused field; one capital letter uses the shift up."""
    path = world.ui.focus
    if not path:
        return world
    return rules.put(world, path, str(world.get(path)) + text).with_ui(shift=False)


@KEYS.action("erase")
def erase(world: World) -> World:
    """Delete the last character of the focused field."""
    path = world.ui.focus
    return rules.put(world, path, str(world.get(path))[:-1]) if path else world


@KEYS.action("shift")
def shift(world: World) -> World:
    """Switch between small and capital letters."""
    return world.with_ui(shift=not world.ui.shift)


@KEYS.action("page")
def page(world: World) -> World:
    """Switch between letters and symbols."""
    return world.with_ui(symbols=not world.ui.symbols)


@SYSTEM.action("close_app")
def close_app(world: World, key: str) -> World:
    """Take an app out of recents; it stops."""
    ui = world.ui
    world = world.with_ui(
        recents=tuple(k for k in ui.recents if k != key),
        stacks=ui.stacks.without(key),
        app="" if ui.app == key else ui.app,
    )
    return world.put(f"apps.{key}.running", False)


@SYSTEM.action("close_all")
def close_all(world: World) -> World:
    """Empty recents and go home."""
    for key in world.ui.recents:
        world = close_app(world, key)
    return world.with_ui(overlay="", app="")


@SYSTEM.action("screenshot")
def screenshot(world: World) -> World:
    """Save a picture of the screen to the gallery."""
    count = sum(p.kind == "screenshot" for p in world.state.media.photos)
    shot = Photo(f"Screenshot_{count + 1}", f"screen:{world.ui.page}", "screenshot", album="Screenshots")
    return world.put("media.photos", (*world.state.media.photos, shot)).with_ui(toast="Screenshot saved")


@SYSTEM.action("power")
def power(world: World) -> World:
    """Open the power menu."""
    options = (Option("Lockdown", Toggle("security.lockdown")), Option("Screenshot", Do("system.screenshot")))
    return world.with_ui(dialog=Dialog("Power", options=options, buttons=(Option("Cancel", Dismiss()),)), focus="")


@SYSTEM.action("uninstall")
def uninstall(world: World, key: str) -> World:
    """Remove an app: from the device, from the launcher, from recents."""
    world = close_app(world, key)
    return world.put(f"apps.{key}.installed", False)


register(KEYS)
register(SYSTEM)
