"""The windows of a display, as the window manager tells them (EWMH)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Window:
    """A managed window. ``x``, ``y``, ``width`` and ``height`` are pixels of its inside, without the frame."""

    app: str
    """Instance name of its class in lower case, mostly the program's name."""
    title: str
    x: int
    y: int
    width: int
    height: int
    top: int
    """Height of the frame above it, which has the title and the buttons."""
    focused: bool
    minimised: bool
    maximised: bool
    dialog: bool


def list_windows(display: Any) -> list[Window]:
    """All windows from the lowest to the topmost. ``display`` is an ``Xlib.display.Display``."""
    from Xlib.error import BadDrawable, BadWindow

    root = display.screen().root
    active = (_longs(display, root, "_NET_ACTIVE_WINDOW") or [0])[0]
    found = []
    for number in _longs(display, root, "_NET_CLIENT_LIST_STACKING"):
        try:
            found.append(_window(display, root, display.create_resource_object("window", number), number == active))
        except (BadWindow, BadDrawable):  # closed just now
            continue
    return found


def _window(display: Any, root: Any, window: Any, focused: bool) -> Window:
    geometry = window.get_geometry()
    corner = root.translate_coords(window, 0, 0)
    states = {display.get_atom_name(atom) for atom in _longs(display, window, "_NET_WM_STATE")}
    types = {display.get_atom_name(atom) for atom in _longs(display, window, "_NET_WM_WINDOW_TYPE")}
    names = window.get_wm_class() or ("", "")
    frame = _longs(display, window, "_NET_FRAME_EXTENTS") or [0, 0, 0, 0]
    return Window(
        app=str(names[0]).lower(),
        title=_title(display, window),
        x=corner.x,
        y=corner.y,
        width=geometry.width,
        height=geometry.height,
        top=frame[2],
        focused=focused,
        minimised="_NET_WM_STATE_HIDDEN" in states,
        maximised={"_NET_WM_STATE_MAXIMIZED_HORZ", "_NET_WM_STATE_MAXIMIZED_VERT"} <= states,
        dialog="_NET_WM_WINDOW_TYPE_DIALOG" in types,
    )


def _title(display: Any, window: Any) -> str:
    for name in ("_NET_WM_NAME", "WM_NAME"):
        found = window.get_full_property(display.intern_atom(name), 0)
        if found is not None:
            value = found.value
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return ""


def _longs(display: Any, window: Any, name: str) -> list[int]:
    found = window.get_full_property(display.intern_atom(name), 0)
    return [] if found is None else [int(number) for number in found.value]
