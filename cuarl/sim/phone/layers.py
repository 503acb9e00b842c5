"""Layers over the screen: notification shade, quick settings, recents, power menu, dialogs, keyboard, toast."""

from __future__ import annotations

from dataclasses import dataclass

from cuarl.sim.device.order import permutation
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.effects import (
    Dialog,
    Dismiss,
    Do,
    Focus,
    Launch,
    Open,
    Overlay,
    Put,
    Remove,
    Seq,
    Submit,
    Toggle,
)
from cuarl.sim.kit.marks import draw_app_icon
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.kit.scene import BODY, Spot, spread, stack, total_height
from cuarl.sim.phone.apps import build
from cuarl.sim.phone.chrome import NAV_HEIGHT, STATUS_HEIGHT, clock
from cuarl.sim.phone.reading import remember_reads
from cuarl.sim.phone.world import WIDTH, World

TILES: tuple[tuple[str, str, str], ...] = (
    ("Wi-Fi", "wifi", "network.wifi.enabled"),
    ("Bluetooth", "bluetooth", "network.bluetooth.enabled"),
    ("Airplane", "airplane", "network.airplane_mode"),
    ("Do not disturb", "dnd", "sound.dnd"),
    ("Auto-rotate", "rotate", "display.auto_rotate"),
    ("Battery Saver", "saver", "battery.saver"),
    ("Dark theme", "dark", "display.dark_theme"),
    ("Location", "location", "location.enabled"),
    ("Hotspot", "hotspot", "network.hotspot"),
    ("Mobile data", "data", "network.mobile_data"),
    ("Night Light", "night", "display.night_light"),
    ("Nearby Share", "share", "network.nearby_share"),
)
"""Label, icon and path of the quick-settings tiles."""


@remember_reads(128)
def shade(world: World) -> list[Spot]:
    """The notification shade: four tiles, the notifications, Clear all."""
    items = world.state.notifications.items
    body: list[w.Widget] = [w.Space(4), w.HBox(tuple(tiles(world)[:2]), height=34), w.Space(4)]
    body += [w.HBox(tuple(tiles(world)[2:4]), height=34), w.Space(6)]
    for note in items:
        gone = Remove("notifications.items", note)
        effect = Seq((gone, Launch(note.app)))
        body.append(w.Card(note.title, effect, on_swipe=gone, text=note.text, tint=note.app))
    if items:
        clear = Seq((Put("notifications.items", ()), Overlay("")))
        body.append(
            w.HBox(
                (w.Button("Manage", Seq((Overlay(""), Open("settings/notifications")))), w.Button("Clear all", clear)),
                pad=16,
            )
        )
    else:
        body += [w.Paragraph("No notifications", align="centre"), w.Space(6)]
    return stack(body, world.style, 0, STATUS_HEIGHT, WIDTH)


@remember_reads(128)
def quick(world: World) -> list[Spot]:
    """Quick settings: brightness and all tiles."""
    light = world.state.display.brightness
    bright = w.Slider("", path="display.brightness", value=light, low=1, high=255, icon="brightness")
    body: list[w.Widget] = [Moment(clock(world)), bright, w.Space(2), w.Grid(tuple(tiles(world)), 2, 34, gap=6, pad=8)]
    return stack(body, world.style, 0, STATUS_HEIGHT, WIDTH)


def tiles(world: World) -> list[w.Tile]:
    """Quick-settings tiles in this device's order; the usual four stay among the first six."""
    first = permutation(world.look.seed, "tiles", 6)
    rest = permutation(world.look.seed, "more tiles", len(TILES) - 6)
    found = []
    for i in (*first, *(6 + j for j in rest)):
        label, name, path = TILES[i]
        found.append(w.Tile(label, Toggle(path), icon=name, checked=bool(world.get(path))))
    return found


@remember_reads(128)
def recents(world: World) -> list[Spot]:
    """Cards of the apps in use; a swipe up or its cross removes one."""
    body: list[w.Widget] = [w.Space(6)]
    for key in world.ui.recents:
        app = world.app(key)
        if app:
            page = world.ui.stacks.get(key, ("",))[-1]
            stop = Do("system.close_app", (key,))
            close = w.IconButton(f"Close {app.name}", stop, icon="close", white=True)
            title = build(world, page).title if page else ""
            menu = Do("home.recents_menu", (key,))
            card = Preview(app.name, Launch(key), menu, on_swipe=stop, app=key, title=title)
            body.append(w.HBox((card, close), (6, 1), height=58, gap=0, pad=8))
            body.append(w.Space(6))
    if world.ui.recents:
        body.append(w.HBox((w.Button("Clear all", Do("system.close_all"), look="filled"),), pad=50))
    else:
        body += [w.Space(90), w.Paragraph("No recent items", align="centre", muted=False)]
    return stack(body, world.style, 0, STATUS_HEIGHT, WIDTH)


def dialog(world: World, box: Dialog, bottom: float) -> tuple[Spot, list[Spot]]:
    """A dialog's box and what is in it, centred between the status bar and ``bottom``.

    A menu hangs at the top right.
    """
    style, menu = world.style, box.kind == "menu"
    left, width = (84.0, 104.0) if menu else (12.0, WIDTH - 24.0)
    body: list[w.Widget] = [w.Space(6)]
    if box.title:
        body += [w.Space(2), w.Paragraph(box.title, 13, muted=False)]
    if box.text:
        body.append(w.Paragraph(box.text))
    for line in box.inputs:
        text, focused = str(world.get(line.path)), world.ui.focus == line.path
        body.append(w.Field(line.label, Focus(line.path), path=line.path, text=text, focused=focused))
    for option in box.options:
        effect = Seq((Dismiss(), option.effect)) if option.effect else Dismiss()
        trailing = "radio" if option.checked is not None else ""
        body.append(w.Row(option.label, effect, trailing=trailing, checked=option.checked))  # type: ignore[arg-type]
    if box.buttons:
        buttons = tuple(
            w.Button(b.label, Seq((Dismiss(), b.effect)) if b.effect else Dismiss(), look="text") for b in box.buttons
        )
        body.append(w.HBox(buttons, pad=6))
    body.append(w.Space(6))
    spots = stack(body, style, left, 0, width)
    height = total_height(spots, 0)
    top = STATUS_HEIGHT + 4 if menu else max(STATUS_HEIGHT + 4, (STATUS_HEIGHT + bottom - height) / 2)
    moved = [s._replace(y=s.y + top) for s in spots]
    return Spot(w.Bar("sheet-box"), left, top, width, min(height, bottom - top - 4)), moved


def keyboard_rows(world: World) -> tuple[w.HBox, ...]:
    """Rows of the on-screen keyboard."""
    ui = world.ui
    letters = ("1234567890", "@#$_&-+()/", "*\"':;!?,") if ui.symbols else ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    rows = [tuple(_key(ch.upper() if ui.shift and not ui.symbols else ch) for ch in line) for line in letters]
    special = w.Key("Shift", Do("keys.shift"), char="shift", icon="shift", active=ui.shift)
    if ui.symbols:
        special = w.Key("=", Do("keys.type", ("=",)), char="=")
    erase = w.Key("Backspace", Do("keys.erase"), char="erase", icon="erase")
    page = w.Key("ABC" if ui.symbols else "?123", Do("keys.page"), char="page")
    space = w.Key("Space", Do("keys.type", (" ",)), char="space")
    enter = w.Key("Enter", Submit(), char="enter", icon="enter", active=True)
    pads = (2.0, 2.0 if len(rows[1]) == 10 else 11.0, 2.0)
    wide = (1.5, *(1.0 for _ in rows[2]), 1.5)
    return (
        w.HBox(rows[0], gap=1, pad=pads[0], height=25),
        w.HBox(rows[1], gap=1, pad=pads[1], height=25),
        w.HBox((special, *rows[2], erase), wide, gap=1, pad=pads[2], height=25),
        w.HBox((page, _key(","), space, _key("."), enter), (1.6, 1, 5, 1, 1.6), gap=1, pad=2, height=25),
    )


def _key(ch: str) -> w.Key:
    return w.Key(ch, Do("keys.type", (ch,)), char=ch)


KEYBOARD_HEIGHT = 104.0


@remember_reads(128)
def keyboard(world: World) -> list[Spot]:
    """The keyboard above the navigation bar."""
    top = world.profile.height - NAV_HEIGHT - KEYBOARD_HEIGHT
    spots = [Spot(w.Bar("keys"), 0, top, WIDTH, KEYBOARD_HEIGHT)]
    y = top + 2
    for row in keyboard_rows(world):
        spots.extend(spread(row, world.style, 0, y, WIDTH, row.height))
        y += row.height
    return spots


@dataclass(frozen=True, slots=True)
class Preview(w.Control):
    """An app's card in recents."""

    role = "card"
    app: str = ""
    title: str = ""


def paint_preview(c: Canvas, card: Preview) -> None:
    """Draw a card of recents."""
    p = c.style.palette
    c.rounded(0, 0, c.width, c.height, 10, p.page)
    c.rounded(0, 0, c.width, 26, 10, p.raised)
    c.rect(0, 14, c.width, 12, p.raised)
    draw_app_icon(c, card.app, 16, 13, 18)
    c.text(30, 13, card.label, BODY, p.text, bold=True, width=c.width - 34)
    c.text(12, 42, card.title, BODY, p.muted, width=c.width - 16)


@dataclass(frozen=True, slots=True)
class Moment(w.Widget):
    """The large clock of quick settings."""

    text: str = ""


def paint_moment(c: Canvas, moment: Moment) -> None:
    """Draw the clock."""
    c.text(14, c.height / 2, moment.text, 18, c.style.palette.text)


@dataclass(frozen=True, slots=True)
class Snack(w.Widget):
    """A short message at the bottom."""

    text: str = ""


def paint_snack(c: Canvas, snack: Snack) -> None:
    """Draw a toast."""
    p = c.style.palette
    c.rounded(0, 0, c.width, c.height, c.height / 2, p.text)
    c.text(c.width / 2, c.height / 2, snack.text, BODY, p.page, align="centre", width=c.width - 12)


PAINTERS.update({Preview: paint_preview, Moment: paint_moment, Snack: paint_snack})
