"""One window laid out: frame, title bar, toolbar, sidebar, content and the box over it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from cuarl.sim.desktop.geometry import TITLE, Rect, frame_of
from cuarl.sim.desktop.lines import BAR
from cuarl.sim.desktop.registry import APPS, Context, Pane
from cuarl.sim.desktop.widgets import (
    Caption,
    Item,
    Push,
    Ruled,
    ScrollBar,
    Shadow,
    TitleBar,
    WindowBox,
    WindowButton,
)
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.device.memory import remember
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Dismiss, Do, Option, Seq, Show
from cuarl.sim.kit.scene import Box, Placed, Region, Spot, place, stack, total_height

BUTTON = 19.0
SIDE = 108.0
FOOT = 16.0
SHADOW = 6.0


class Shown(NamedTuple):
    """A window to lay out."""

    world: DesktopWorld
    window: Window
    focused: bool


@dataclass(frozen=True, slots=True)
class WindowLayout:
    """A window's items in painting order; those from ``modal_from`` on belong to the box over it."""

    items: tuple[Placed, ...]
    regions: tuple[Region, ...]
    modal_from: int
    body: tuple[Spot, ...]
    side: tuple[Spot, ...]
    """The scrolling content and sidebar, unscrolled."""
    title: str


def _parts(shown: Shown) -> tuple[object, ...]:
    world = shown.world
    return world.state, world.look, world.screen, shown.window, shown.focused


@remember(128, _parts)
def window_layout(shown: Shown) -> WindowLayout:
    """Lay a window out."""
    return _Builder(shown).build()


def pane_of(shown: Shown) -> Pane:
    """What an app shows in a window."""
    return APPS[shown.window.app].build(Context(shown.world, shown.window, shown.focused))


def title_of_window(world: DesktopWorld, window: Window) -> str:
    """The title of a window."""
    return window_layout(Shown(world, window, window is world.focused)).title


class _Builder:
    """Collects the items of one window."""

    def __init__(self, shown: Shown) -> None:
        self.world, self.window, self.focused = shown
        self.style, self.frame = self.world.style, frame_of(self.world, self.window)
        self.screen: Box = (0, 0, self.world.screen.width_px, self.world.screen.height_px)
        self.pane = pane_of(shown)
        self.items: list[Placed] = []
        self.regions: list[Region] = []
        self.side: list[Spot] = []

    def add(self, spots: list[Spot], clip: Box | None = None, ground: str = "page") -> None:
        """Place spots that don't scroll."""
        self.items += place(spots, self.style, clip or self.screen, ground=ground)

    def box(self, rect: Rect) -> Box:
        """Units to pixels."""
        px = self.style.px
        return px(rect.x), px(rect.y), px(rect.right), px(rect.bottom)

    def build(self) -> WindowLayout:
        """Everything in order."""
        frame, pane = self.frame, self.pane
        self._frame()
        y = frame.y + TITLE
        if pane.toolbar:
            rows = stack(pane.toolbar, self.style, frame.x + 1, y, frame.width - 2)
            height = total_height(rows, y)
            self.add([Spot(Ruled("bar", "bottom"), frame.x + 1, y, frame.width - 2, height + 1)])
            self.add(rows, ground="bar")
            y += height + 1
        bottom = frame.bottom - 1 - (FOOT if pane.foot else 0)
        left = frame.x + 1
        if pane.side:
            left = self._side(y, bottom)
        body = self._body(Rect(left, y, frame.right - 1 - left, bottom - y))
        if pane.foot:
            self.add([Spot(Ruled("bar", "top"), frame.x + 1, bottom, frame.width - 2, FOOT)])
            self.add(
                [Spot(Caption(pane.foot, strong=False), frame.x + 1, bottom + 1, frame.width - 2, FOOT - 1)],
                ground="bar",
            )
        modal_from = len(self.items)
        if self.window.dialog is not None:
            self._dialog(self.window.dialog)
        return WindowLayout(
            tuple(self.items), tuple(self.regions), modal_from, tuple(body), tuple(self.side), pane.title
        )

    def _frame(self) -> None:
        frame, look, window = self.frame, self.world.look, self.window
        if not window.maximised:
            self._shadow()
        self.add([Spot(WindowBox(), frame.x, frame.y + TITLE, frame.width, frame.height - TITLE)])
        toggle = Do("window.maximise", (window.key,))
        pad = 3 * BUTTON + 7
        bar = TitleBar(
            self.pane.title,
            None,
            Show(self._menu()),
            focused=self.focused,
            centred=look.centred_title,
            square=window.maximised,
            pad=pad,
            left_buttons=look.buttons == "left",
            on_double=toggle,
        )
        self.add([Spot(bar, frame.x, frame.y, frame.width, TITLE)], ground="")
        self.add(self._buttons(), ground="")

    def _shadow(self) -> None:
        """Only the strips around the window: pasting what the window covers would cost most of a frame."""
        frame, s = self.frame, SHADOW
        spot = Spot(Shadow(), frame.x - s, frame.y - s + 2, frame.width + 2 * s, frame.height + 2 * s)
        corner = frame.y + 6
        for strip in (
            Rect(spot.x, spot.y, spot.width, corner - spot.y),
            Rect(spot.x, corner, s, spot.height),
            Rect(frame.right, corner, s, spot.height),
            Rect(frame.x, frame.bottom, frame.width, s + 2),
        ):
            x0, y0, x1, y1 = self.box(strip)
            clip = max(0, x0), max(0, y0), min(x1, self.screen[2]), min(y1, self.screen[3])
            self.add([spot], clip, ground="")

    def _menu(self) -> Dialog:
        key = self.window.key
        size = "Restore" if self.window.maximised else "Maximise"
        names = (("Minimise", "minimise"), (size, "maximise"), ("Close", "close"))
        return Dialog("window", options=tuple(Option(n, Do(f"window.{a}", (key,))) for n, a in names), kind="menu")

    def _buttons(self) -> list[Spot]:
        look, key, frame = self.world.look, self.window.key, self.frame
        big = self.window.maximised
        kinds = [
            ("Minimise", "win_min", "minimise", "amber"),
            ("Restore" if big else "Maximise", "win_restore" if big else "win_max", "maximise", "green"),
            ("Close", "close", "close", "red"),
        ]
        x = frame.right - 3 * BUTTON - 4
        if look.buttons == "left":
            kinds, x = [kinds[2], kinds[0], kinds[1]], frame.x + 4
        return [
            Spot(
                WindowButton(
                    label,
                    Do(f"window.{action}", (key,)),
                    icon=icon,
                    disc=colour if look.round_buttons else "",
                    focused=self.focused,
                ),
                x + i * BUTTON,
                frame.y + 1,
                BUTTON,
                TITLE - 1,
            )
            for i, (label, icon, action, colour) in enumerate(kinds)
        ]

    def _side(self, top: float, bottom: float) -> float:
        """The sidebar; gives its right edge."""
        x = self.frame.x + 1
        width = min(SIDE, self.frame.width * 0.32)
        self.add([Spot(Ruled("bar", "right"), x, top, width, bottom - top)])
        side = (w.Space(3), *self.pane.side, w.Space(3))
        bar = 5 if total_height(stack(side, self.style, x, top, width), top) > bottom - top else 1
        self.side = stack(side, self.style, x, top, width - bar)
        self._scroller("side", self.side, Rect(x, top, width - 1, bottom - top), "bar")
        return x + width

    def _body(self, rect: Rect) -> list[Spot]:
        pane = self.pane
        if pane.sheet is not None:
            self.add([Spot(pane.sheet, *rect)])
        else:
            self.add([Spot(Ruled(pane.ground), *rect)])
        spots = stack(pane.body, self.style, rect.x, rect.y, rect.width - BAR)
        self._scroller("body", spots, rect, pane.ground, end=pane.footing)
        return spots

    def _scroller(self, name: str, spots: list[Spot], rect: Rect, ground: str, *, end: bool = False) -> None:
        reach = max(0, round(total_height(spots, rect.y) - rect.height))
        offset = min(self.window.scroll.get(name, reach if end else 0), reach)
        clip = self.box(rect)
        self.regions.append(Region(f"{self.window.key} {name}", clip, offset, reach))
        self.items += place(spots, self.style, clip, offset, f"{self.window.key} {name}", ground)
        if reach:
            height = clip[3] - clip[1]
            length = max(12, round(height * rect.height / (rect.height + reach)))
            top = round((height - length) * offset / reach)
            bar = ScrollBar(region=f"{self.window.key} {name}", top=top, length=length)
            self.add([Spot(bar, rect.right - BAR + 1, rect.y, BAR - 2, rect.height)], ground="")

    def _dialog(self, dialog: Dialog) -> None:
        """The box in the middle of the window: title, text, fields, a list, buttons."""
        frame = self.frame
        width = min(230.0, frame.width - 16)
        context = Context(self.world, self.window, self.focused)
        head: list[w.Widget] = [w.Space(4), Caption(dialog.title, centred=True)]
        if dialog.text:
            head.append(w.Paragraph(dialog.text, 10.5, align="centre"))
        accept = dialog.buttons[-1].effect if dialog.buttons else None
        for line in dialog.inputs:
            entry = context.entry(line.label, line.path, Seq((Dismiss(), accept)) if accept else Dismiss())
            focused = self.focused and self.window.focus == line.path
            head.append(w.HBox((replace(entry, focused=focused),), height=27, pad=8))
        options = [Item(o.label, _closing(o), icon="note") for o in dialog.options]
        foot = w.HBox(
            tuple(
                Push(b.label, _closing(b), look="suggested" if i and i == len(dialog.buttons) - 1 else "plain")
                for i, b in enumerate(dialog.buttons)
            ),
            height=26,
            gap=4,
            pad=8,
        )
        self._dialog_box(head, options, foot, width)

    def _dialog_box(self, head: list[w.Widget], options: list[Item], foot: w.HBox, width: float) -> None:
        """Place a box of so wide a content, as high as it needs and the window allows."""
        frame, ground = self.frame, "raised" if self.style.dark else "page"
        head_height = total_height(stack(head, self.style, 0, 0, width - 2), 0)
        listed_height = min(21.0 * len(options), frame.height - TITLE - 44 - head_height)
        height = head_height + listed_height + 36
        x = frame.x + (frame.width - width) / 2
        y = frame.y + max(TITLE + 2, (frame.height - height) / 2)
        self.add([Spot(Shadow(), x - SHADOW, y - SHADOW + 2, width + 2 * SHADOW, height + 2 * SHADOW)], ground="")
        self.add([Spot(Ruled(ground, "all"), x, y, width, height)], ground="")
        self.add(stack(head, self.style, x + 2, y + 1, width - 4), ground=ground)
        low = y + head_height + 1
        if options:
            listed = stack(options, self.style, x + 4, low, width - 8 - BAR)
            self.regions.clear()
            self._scroller("dialog", listed, Rect(x + 4, low, width - 8, listed_height), ground)
        self.add(stack((foot,), self.style, x + 2, low + listed_height + 3, width - 4), ground=ground)


def _closing(option: Option) -> Seq:
    """An option's effect, the box closed first."""
    return Seq((Dismiss(), option.effect)) if option.effect else Seq((Dismiss(),))
