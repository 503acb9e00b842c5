"""What the keyboard does: typing into the focused text, the desktop's and the apps' shortcuts, editing keys. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cuarl.keys import KeyNames, named, parts
from cuarl.sim.desktop import windows
from cuarl.sim.desktop.lines import columns, row_of
from cuarl.sim.desktop.panel import application_menu
from cuarl.sim.desktop.pointing import scroll_by
from cuarl.sim.desktop.reduce import apply
from cuarl.sim.desktop.registry import APPS
from cuarl.sim.desktop.text import TextBox
from cuarl.sim.desktop.view import layout
from cuarl.sim.desktop.widgets import LINE, Entry
from cuarl.sim.desktop.world import DesktopWorld, Menu, Window
from cuarl.sim.device.rejected import Rejected
from cuarl.sim.kit.effects import Dismiss, Do, Show
from cuarl.sim.kit.scene import Placed

_TOLD = {"Page_Up": "prior", "Page_Down": "next", "KP_Enter": "return"}
"""Keys that this desktop calls otherwise than the table of keys, in lower case."""
ORDER = ("ctrl", "alt", "shift", "super")
MOVES = ("left", "right", "up", "down", "home", "end")


def chord(keys: tuple[str, ...]) -> str:
    """Keys pressed together in one spelling: ``ctrl+shift+s``. ``("ctrl+s",)`` is understood too."""
    known = [(part, named(part)) for part in parts(keys)]
    held = {key.modifier for _, key in known if key is not None and key.modifier}
    plain = [(part, key) for part, key in known if key is None or not key.modifier]
    if len(plain) > 1:
        raise Rejected(f"keys are pressed one at a time, not {'+'.join(part for part, _ in plain)}")
    name = _told(*plain[0], held=bool(held)) if plain else ""
    return "+".join([*(m for m in ORDER if m in held), *([name] if name else [])])


def _told(part: str, key: KeyNames | None, *, held: bool) -> str:
    """What this desktop calls a key: a character as it is, others by their names in lower case."""
    if len(part) == 1:
        return part.lower() if held else part
    if key is None:
        return part.lower()
    return _TOLD.get(key.x) or (key.char if key.char.isprintable() else "") or key.x.lower()


def press(world: DesktopWorld, keys: tuple[str, ...]) -> DesktopWorld:
    """Press keys together. Raises ``Rejected`` for a chord that means nothing here."""
    name = chord(keys)
    if world.ui.menu is not None and name == "escape":
        return world.with_ui(menu=None)
    shortcut = DESKTOP.get(name)
    if shortcut is not None:
        return shortcut(world)
    window = world.focused
    if window is None:
        raise Rejected(f"no window takes the key {name!r}")
    done = (_in_dialog if window.dialog is not None else _in_window)(world, window, name)
    if done is None:
        raise Rejected(f"{name!r} means nothing in {APPS[window.app].name}")
    return done


def type_text(world: DesktopWorld, text: str) -> DesktopWorld:
    """Type text where the focus is. Raises ``Rejected`` if nothing takes it."""
    window = world.focused
    if window is None:
        raise Rejected("no window takes text")
    app = APPS[window.app]
    name = target_of(window)
    if not name and window.dialog is None and f"{app.key}.type" in app.actions:
        return app.actions[f"{app.key}.type"](world, window.key, text)
    if not name:
        raise Rejected("no text field has the focus")
    multiline = name == app.typed and app.lines
    for i, part in enumerate([text] if multiline else text.split("\n")):
        if i:
            world = press(world, ("Return",))
        window = world.focused
        if window is None or not target_of(window):
            break
        world = reveal(_edited(world, window, target_of(window), window.box(target_of(window)).insert(part)))
    return world


def target_of(window: Window) -> str:
    """Name of the text that keys go to; empty if none does."""
    return window.focus or (APPS[window.app].typed if window.dialog is None else "")


def _edited(world: DesktopWorld, window: Window, name: str, content: TextBox) -> DesktopWorld:
    return world if content == window.form.get(name) else world.with_window(window.put(name, content))


def _in_window(world: DesktopWorld, window: Window, name: str) -> DesktopWorld | None:
    """Shortcuts of the app, unless a text field has the focus and takes the key; then editing keys."""
    app = APPS[window.app]
    action = app.keys.get(name)
    in_field = bool(window.focus)
    if in_field:
        edited = _in_field(world, window, name)
        if edited is not None:
            return edited
    if action is not None:
        return reveal(app.actions[f"{app.key}.{action}"](world, window.key))
    if app.typed and not in_field:
        edited = _edit(world, window, app.typed, name, lines=app.lines)
        return None if edited is None else reveal(edited)
    if name in ("prior", "next"):
        return _page(world, window, down=name == "next")
    if len(name) == 1 and f"{app.key}.type" in app.actions:
        return app.actions[f"{app.key}.type"](world, window.key, name)
    return world if name in ("escape", "tab") else None


def _in_field(world: DesktopWorld, window: Window, name: str) -> DesktopWorld | None:
    if name == "return":
        return _submit(world, window)
    if name == "escape":
        return world.with_window(replace(window, focus=""))
    if name == "tab":
        return _next_field(world, window)
    return _edit(world, window, window.focus, name, lines=False)


def _in_dialog(world: DesktopWorld, window: Window, name: str) -> DesktopWorld | None:
    """Escape closes the box, Enter is its last button, and its field takes the rest."""
    box = window.dialog
    assert box is not None
    if name == "escape":
        return apply(world, Dismiss())
    if name == "return":
        last = box.buttons[-1].effect if box.buttons else None
        return apply(apply(world, Dismiss()), last)
    if name == "tab":
        return _next_field(world, window)
    return _edit(world, window, window.focus, name, lines=False) if window.focus else None


def _edit(world: DesktopWorld, window: Window, target: str, name: str, *, lines: bool) -> DesktopWorld | None:
    """An editing key in a text; None if it is none."""
    content = window.box(target)
    *held, key = name.split("+") if name != "+" else ["+"]
    extend, far = "shift" in held, "ctrl" in held
    if key in MOVES and "alt" not in held:
        return _edited(world, window, target, content.moved(key, extend=extend, word=far))
    clip = {"ctrl+c": "copy", "ctrl+x": "cut", "ctrl+v": "paste", "ctrl+shift+c": "copy", "ctrl+shift+v": "paste"}.get(
        name
    )
    if clip is not None:
        return _clip(world, window, target, clip)
    match name:
        case "backspace":
            return _edited(world, window, target, content.erase())
        case "ctrl+backspace":
            return _edited(world, window, target, content.moved("left", extend=True, word=True).erase())
        case "delete":
            return _edited(world, window, target, content.erase(forward=True))
        case "ctrl+a":
            return _edited(world, window, target, content.select_all())
        case "return" | "shift+return" if lines:
            return _edited(world, window, target, content.insert("\n"))
        case "tab" if lines:
            return _edited(world, window, target, content.insert("    "))
        case "escape" | "tab":
            return world
    if len(key) == 1 and not set(held) - {"shift"}:
        return _edited(world, window, target, content.insert(key.upper() if extend else key))
    return None


def _clip(world: DesktopWorld, window: Window, target: str, verb: str) -> DesktopWorld:
    """Copy, cut or paste text."""
    content = window.box(target)
    if verb == "paste":
        return _edited(world, window, target, content.insert(world.state.clipboard.text))
    if not content.selected:
        return world
    clipboard = replace(world.state.clipboard, text=content.selected, files=())
    world = world.put("clipboard", clipboard)
    return _edited(world, window, target, content.insert("")) if verb == "cut" else world


def fields(world: DesktopWorld, window: Window) -> list[tuple[Placed, Entry]]:
    """The text fields of a window that can be reached, from top to bottom."""
    found = layout(world)
    owner = f"{window.key}!" if window.dialog is not None else window.key
    pairs = zip(found.scene.items, found.owners, strict=True)
    return [(item, item.widget) for item, whose in pairs if whose == owner and isinstance(item.widget, Entry)]


def _submit(world: DesktopWorld, window: Window) -> DesktopWorld:
    """What Enter does in a field; it keeps the focus where that leads nowhere."""
    field = next((field for _, field in fields(world, window) if field.name == window.focus), None)
    return world if field is None else apply(world, field.submit)


def _next_field(world: DesktopWorld, window: Window) -> DesktopWorld:
    names = [field.name for _, field in fields(world, window)]
    if not names:
        return world
    at = names.index(window.focus) + 1 if window.focus in names else 0
    name = names[at % len(names)]
    return world.with_window(replace(window.put(name, window.box(name).select_all()), focus=name))


def _page(world: DesktopWorld, window: Window, *, down: bool) -> DesktopWorld:
    region = next((r for r in layout(world).scene.regions if r.id == f"{window.key} body"), None)
    if region is None:
        return world
    seen = (region.box[3] - region.box[1]) / world.screen.scale
    return scroll_by(world, region, seen * (0.9 if down else -0.9))


def reveal(world: DesktopWorld) -> DesktopWorld:
    """Scroll the focused window's text so that its caret can be seen; terminals show their end."""
    window = world.focused
    if window is None or window.dialog is not None or not APPS[window.app].typed:
        return world
    if not APPS[window.app].lines:
        free = window.scroll.without("body")
        return world if free == window.scroll else world.with_window(replace(window, scroll=free))
    region = next((r for r in layout(world).scene.regions if r.id == f"{window.key} body"), None)
    if region is None or not region.reach:
        return world
    top = row_of(window.box(APPS[window.app].typed), columns(world, window)) * LINE
    seen = (region.box[3] - region.box[1]) / world.screen.scale
    if region.offset <= top <= region.offset + seen - LINE:
        return world
    return scroll_by(world, region, (top - region.offset) if top < region.offset else top + LINE - seen - region.offset)


def _on_top(name: str) -> Callable[[DesktopWorld], DesktopWorld]:
    """A shortcut that does something to the focused window."""

    def run(world: DesktopWorld) -> DesktopWorld:
        window = world.focused
        if window is None:
            raise Rejected("no window is open")
        return apply(world, Do(name, (window.key,)))

    return run


def _applications(world: DesktopWorld) -> DesktopWorld:
    menu: Menu | None = world.ui.menu
    return world.with_ui(menu=None) if menu is not None else apply(world, Show(application_menu(world)))


DESKTOP: dict[str, Callable[[DesktopWorld], DesktopWorld]] = {
    "alt+f4": _on_top("window.close"),
    "alt+f9": _on_top("window.minimise"),
    "super+h": _on_top("window.minimise"),
    "alt+f10": _on_top("window.maximise"),
    "super+up": _on_top("window.maximise"),
    "super+down": _on_top("window.maximise"),
    "alt+tab": windows.next_window,
    "super+d": windows.show_desktop,
    "ctrl+alt+d": windows.show_desktop,
    "super": _applications,
    "alt+f1": _applications,
    "ctrl+alt+t": lambda world: windows.launch(world, "terminal"),
    "super+e": lambda world: windows.launch(world, "files"),
}
"""Shortcuts that work everywhere."""
