"""What Android's accessibility tells of the simulated phone's screen, as ``uiautomator dump`` writes it.

As on a phone, a row of a list is a thing that can be touched with texts in it, an icon's name is read out and not
shown, an empty field shows its hint, and neither the status bar, the navigation bar nor the keyboard is in it, since
they are windows of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.scene import Box, Placed, Scene
from cuarl.sim.phone.chrome import NavKey, StatusBar
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import World

HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
LAUNCHER = "com.android.launcher3"
MARGIN = 2
"""Pixels by which a text in a row is smaller than the row."""
_CLASSES: dict[type[w.Widget], str] = {
    w.Button: "Button", w.IconButton: "ImageButton", w.Fab: "ImageButton", w.Field: "EditText", w.Switch: "Switch",
    w.Slider: "SeekBar", w.Tile: "Switch", w.Picture: "ImageView", w.Card: "FrameLayout", w.Chip: "CheckBox",
    w.Tab: "TextView", w.AppIcon: "TextView", w.FolderIcon: "TextView", w.Day: "TextView", w.Bubble: "TextView",
}  # fmt: skip
_READ_OUT = (w.IconButton, w.Fab, w.Picture, w.Slider, w.AppIcon, w.FolderIcon, w.Tile, w.Switch)
"""What has a description; the latter of them may show their name as well."""
_UNWRITTEN = (w.IconButton, w.Fab, w.Picture, w.Slider, w.Switch)
_ELSEWHERE = (StatusBar, NavKey, w.Key)
"""In windows of their own."""


def dump(world: World, *, turned: int = 0) -> str:
    """The XML of the active window; ``turned`` is by how many quarters the display is turned to its left."""
    scene, app = view(world), world.app(world.ui.app)
    package = app.package if app else LAUNCHER
    root = ElementTree.Element("hierarchy", rotation=str(turned))
    window = _node(root, scene, (0, 0, *scene.size), package, turned, {"class": "android.widget.FrameLayout"})
    for item in scene.items[scene.modal_from :]:
        x0, y0, x1, y1 = item.visible
        if x0 < x1 and y0 < y1 and not isinstance(item.widget, _ELSEWHERE):
            _add(window, scene, item, package, turned)
    return HEAD + ElementTree.tostring(root, encoding="unicode")


def _add(parent: ElementTree.Element, scene: Scene, item: Placed, package: str, turned: int) -> None:
    control = item.widget
    if isinstance(control, w.Row):
        told = {"class": "android.widget.LinearLayout", **_touch(control)}
        row = _node(parent, scene, item.visible, package, turned, told)
        for box, inner in _in_row(control, item.visible):
            _node(row, scene, box, package, turned, inner)
        return
    told = _control(control, package) if isinstance(control, w.Control) else _plain(control)
    if told:
        _node(parent, scene, item.visible, package, turned, told)


def _plain(widget: w.Widget) -> dict[str, str]:
    """A text that is only read; nothing of what says nothing."""
    text = str(getattr(widget, "text", ""))
    return {"class": "android.widget.TextView", "text": text} if text else {}


def _control(control: w.Control, package: str) -> dict[str, str]:
    told = {"class": f"android.widget.{_CLASSES.get(type(control), 'TextView')}", **_touch(control)}
    if isinstance(control, w.Field):
        shown = "•" * len(control.text) if control.hidden else control.text
        name = control.path.rpartition(".")[2] or "field"
        told |= {"text": shown or control.label, "resource-id": f"{package}:id/{name}", "focusable": "true"}
        return told | {"focused": _flag(control.focused), "password": _flag(control.hidden)}
    if isinstance(control, w.IconButton | w.Fab):
        told |= {"resource-id": f"{package}:id/{control.icon}"}
    if isinstance(control, _READ_OUT):
        told |= {"content-desc": control.label}
    if not isinstance(control, _UNWRITTEN):
        told |= {"text": control.label}
    return told


def _touch(control: w.Control) -> dict[str, str]:
    checked: bool | None = getattr(control, "checked", None)
    return {
        "clickable": _flag(control.on_tap is not None or isinstance(control, w.Slider | w.Field)),
        "long-clickable": _flag(control.on_long is not None),
        "checkable": _flag(checked is not None and not isinstance(control, w.Row)),
        "checked": _flag(bool(checked)),
        "enabled": _flag(control.enabled),
    }


def _in_row(row: w.Row, box: Box) -> Iterator[tuple[Box, dict[str, str]]]:
    """The texts of a row, and its switch, one below or beside the other."""
    x0, y0, x1, y1 = box
    middle = (x0 + x1) // 2
    below = y1 - (y1 - y0) // 2 if row.subtitle else y1
    text = "android.widget.TextView"
    if row.label:
        yield _shrunk((x0, y0, middle, below)), {"class": text, "text": row.label, "resource-id": "android:id/title"}
    if row.subtitle:
        told = {"class": text, "text": row.subtitle, "resource-id": "android:id/summary"}
        yield _shrunk((x0, below, middle, y1)), told
    if row.value:
        yield _shrunk((middle, y0, x1, y1)), {"class": text, "text": row.value}
    if row.trailing == "switch":
        told = {"class": "android.widget.Switch", "resource-id": "android:id/switch_widget", "checkable": "true"}
        yield _shrunk((middle, y0, x1, y1)), told | {"checked": _flag(bool(row.checked))}


def _shrunk(box: Box) -> Box:
    x0, y0, x1, y1 = box
    return min(x0 + MARGIN, x1 - 1), min(y0 + MARGIN, y1 - 1), max(x1 - MARGIN, x0 + 1), max(y1 - MARGIN, y0 + 1)


def _node(
    parent: ElementTree.Element, scene: Scene, box: Box, package: str, turned: int, told: dict[str, Any]
) -> ElementTree.Element:
    x0, y0, x1, y1 = box
    width, height = scene.size
    for _ in range(turned):
        x0, y0, x1, y1, width, height = y0, width - x1, y1, width - x0, height, width
    plain = {"index": str(len(parent)), "text": "", "resource-id": "", "package": package, "content-desc": ""}
    flags = dict.fromkeys(("checkable", "checked", "clickable", "focusable", "focused", "scrollable"), "false")
    more = {"enabled": "true", "long-clickable": "false", "password": "false", "selected": "false"}
    bounds = {"bounds": f"[{x0},{y0}][{x1},{y1}]"}
    return ElementTree.SubElement(parent, "node", {**plain, **flags, **more, **told, **bounds})


def _flag(value: bool) -> str:
    return "true" if value else "false"
