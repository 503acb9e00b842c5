"""How each widget is drawn, in units on a canvas of its own. Which painter draws which widget is a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.marks import (
    caption,
    disc_colour,
    draw_app_icon,
    draw_check,
    draw_radio,
    draw_switch,
    slider_track,
    text_units,
)
from cuarl.sim.kit.pictures import draw_picture
from cuarl.sim.kit.scene import BODY, HINT, SMALL, TITLE, line_height, row_text
from cuarl.sim.kit.style import Colour, font_px, text_width, wrap

Painter = Callable[[Canvas, Any], None]


def paint_row(c: Canvas, row: w.Row) -> None:
    """A list row: icon, title over subtitle, and a control at the right end."""
    p, middle = c.style.palette, c.height / 2
    left, title, below = row_text(row, c.style, c.width)
    if row.tint:
        draw_app_icon(c, row.tint, 21, middle, 22)
    elif row.icon and c.style.discs:
        c.circle(21, middle, 11, disc_colour(row.icon) if row.enabled else p.faint)
        c.icon(row.icon, 21, middle, 13, (255, 255, 255))
    elif row.icon:
        c.icon(row.icon, 21, middle, 15, p.muted if row.enabled else p.faint)
    high, low = line_height(c.style, TITLE), line_height(c.style, SMALL)
    y = middle - (len(title) * high + len(below) * low) / 2
    ink = p.faint if not row.enabled else p.accent if row.accent else p.text
    for line in title:
        c.text(left, y + high / 2, line, TITLE, ink, bold=c.style.bold or row.bold)
        y += high
    for line in below:
        c.text(left, y + low / 2, line, SMALL, p.muted if row.enabled else p.faint)
        y += low
    _trailing(c, row)


def _trailing(c: Canvas, row: w.Row) -> None:
    p, middle, right = c.style.palette, c.height / 2, c.width
    if row.trailing == "switch":
        draw_switch(c, right - 22, middle, bool(row.checked), row.enabled)
    elif row.trailing == "split":
        c.rect(right - 42, middle - 9, 0.8, 18, p.faint)
    elif row.trailing == "radio":
        draw_radio(c, right - 16, middle, bool(row.checked))
    elif row.trailing == "check":
        draw_check(c, right - 16, middle, bool(row.checked))
    elif row.trailing == "chevron":
        c.icon("chevron", right - 13, middle, 9, p.muted)
    if row.value:
        end = right - (24 if row.trailing == "chevron" else 10)
        c.text(end, middle, row.value, SMALL, p.muted, align="right")


def paint_switch(c: Canvas, widget: w.Switch) -> None:
    """A bare switch."""
    draw_switch(c, c.width - 22, c.height / 2, widget.checked, widget.enabled)


def paint_header(c: Canvas, widget: w.Header) -> None:
    """A section title in the accent colour."""
    c.text(12, c.height - 9, widget.text, SMALL, c.style.palette.accent, bold=True, width=c.width - 24)


def paint_paragraph(c: Canvas, widget: w.Paragraph) -> None:
    """Wrapped text."""
    p, high = c.style.palette, line_height(c.style, widget.size)
    lines = wrap(widget.text, font_px(c.style, widget.size), (c.width - 24) * c.style.scale)
    x = {"left": 12.0, "centre": c.width / 2, "right": c.width - 12}[widget.align]
    for i, line in enumerate(lines):
        c.text(x, 4 + (i + 0.5) * high, line, widget.size, p.muted if widget.muted else p.text, align=widget.align)


def paint_display(c: Canvas, widget: w.Display) -> None:
    """One large line."""
    x = {"left": 12.0, "centre": c.width / 2, "right": c.width - 12}[widget.align]
    ink = c.style.palette.text
    c.text(x, c.height / 2, widget.text, widget.size, ink, align=widget.align)


def paint_bubble(c: Canvas, widget: w.Bubble) -> None:
    """A chat message: mine on the right in the accent colour."""
    p, high = c.style.palette, line_height(c.style, BODY)
    lines = wrap(widget.label, font_px(c.style, BODY), (c.width - 70) * c.style.scale)
    longest = max(text_units(c, line, BODY) for line in lines)
    width, height = longest + 18, len(lines) * high + 8
    left = c.width - 10 - width if widget.mine else 10.0
    c.rounded(left, 3, width, height, 9, p.tonal if widget.mine else p.raised)
    for i, line in enumerate(lines):
        c.text(left + 9, 7 + (i + 0.5) * high, line, BODY, p.on_tonal if widget.mine else p.text)


def paint_slider(c: Canvas, widget: w.Slider) -> None:
    """Label above, track with a handle below."""
    p = c.style.palette
    left, right = slider_track(c.width, bool(widget.icon))
    share = (widget.value - widget.low) / (widget.high - widget.low)
    x, y = left + share * (right - left), c.height - 14
    if widget.icon:
        c.icon(widget.icon, 18, y, 14, p.muted)
    if widget.label:
        c.text(12, 9, widget.label, SMALL + 1, p.text, width=c.width - 24)
    c.rounded(left, y - 2.5, right - left, 5, 2.5, p.faint)
    if x - left > 1:
        c.rounded(left, y - 2.5, x - left, 5, 2.5, p.accent)
    c.circle(x, y, 7, p.accent)


def paint_button(c: Canvas, widget: w.Button) -> None:
    """A pill with text, an icon, or both."""
    p = c.style.palette
    x, y, width, height = 1.0, 3.0, c.width - 2, c.height - 6
    if widget.look == "round":
        width = height = min(width, height)
        x = (c.width - width) / 2
    fill: Colour | None = {"filled": p.accent, "tonal": p.tonal, "round": p.tonal}.get(widget.look)
    ink = {"filled": p.on_accent, "tonal": p.on_tonal, "round": p.on_tonal}.get(widget.look, p.accent)
    if widget.danger:
        ink = p.danger if widget.look != "filled" else p.on_accent
    if not widget.enabled:
        fill, ink = (p.raised if fill else None), p.faint
    if fill:
        c.rounded(x, y, width, height, height / 2, fill)
    elif widget.look == "outlined":
        c.outline(x, y, width, height, height / 2, p.faint, 1.2)
    middle = c.height / 2
    if widget.icon and widget.look == "round":
        c.icon(widget.icon, c.width / 2, middle, 14, ink)
    elif widget.icon:
        room = width - 27
        left = (c.width - 17 - min(room, text_units(c, widget.label, BODY))) / 2
        c.icon(widget.icon, left + 6, middle, 12, ink)
        c.text(left + 17, middle, widget.label, BODY, ink, width=room)
    else:
        size = 14.0 if widget.look == "round" else BODY + 0.5
        c.text(
            c.width / 2, middle, widget.label, size, ink, align="centre", width=width - 4, bold=widget.look != "round"
        )


def paint_icon_button(c: Canvas, widget: w.IconButton) -> None:
    """A bare icon."""
    p = c.style.palette
    ink = p.faint if not widget.enabled else p.accent if widget.active else p.text
    c.icon(widget.icon, c.width / 2, c.height / 2, 14, (255, 255, 255) if widget.white else ink)


def paint_fab(c: Canvas, widget: w.Fab) -> None:
    """The floating action button."""
    p = c.style.palette
    c.rounded(0.5, 1.5, c.width - 1, c.height - 1, 10, p.faint)
    c.rounded(0, 0, c.width, c.height - 1.5, 10, p.accent)
    c.icon(widget.icon, c.width / 2, c.height / 2, 15, p.on_accent)


def paint_field(c: Canvas, widget: w.Field) -> None:
    """A text field: its hint, or its text under the floating hint, and the cursor."""
    p, left, margin = c.style.palette, 15.0, widget.MARGIN
    if widget.search:
        c.rounded(margin, 4, c.width - 2 * margin, c.height - 8, (c.height - 8) / 2, p.raised)
        c.icon("search", 22, c.height / 2, 12, p.muted)
        left = 34.0
    else:
        ink, thick = (p.accent, 1.6) if widget.focused else (p.muted, 1.0)
        c.outline(margin, 4, c.width - 2 * margin, c.height - 8, 5, ink, thick)
    room = c.width - left - (margin + widget.CROSS if widget.crossed else 16)
    text = "*" * len(widget.text) if widget.hidden else widget.text
    floating = bool(text) and not widget.search
    if floating:
        c.text(left, 10.5, widget.label, HINT, p.accent if widget.focused else p.muted, width=room)
    elif not text:
        hint_y = 19.0 if widget.lines > 1 else c.height / 2
        c.text(left + (3 if widget.focused else 0), hint_y, widget.label, TITLE, p.muted, width=room)
    lines, high = _tail(c, text, room, widget.lines), line_height(c.style, TITLE)
    y = c.height / 2 if not floating and widget.lines == 1 else 23.0 if floating else 19.0
    for i, line in enumerate(lines):
        c.text(left, y + i * high, line, TITLE, p.text)
    if widget.focused:
        y += (len(lines) - 1) * high
        c.rect(left + text_units(c, lines[-1], TITLE) + 1, y - high / 2, 1.2, high, p.accent)


def _tail(c: Canvas, text: str, room: float, lines: int) -> tuple[str, ...]:
    """The last ``lines`` lines of a text; of a single line its end."""
    px, width = font_px(c.style, TITLE), room * c.style.scale
    if lines > 1:
        return wrap(text, px, width, False, len(text) + 1)[-lines:]
    while text and text_width(text, px) > width:
        text = text[1:]
    return (text,)


def paint_tab(c: Canvas, widget: w.Tab) -> None:
    """A tab: underlined text, or an icon over text."""
    p = c.style.palette
    ink = p.accent if widget.selected else p.muted
    if widget.icon:
        if widget.selected:
            c.rounded(c.width / 2 - 15, 2, 30, 15, 7.5, p.tonal)
        c.icon(widget.icon, c.width / 2, 9.5, 12, p.on_tonal if widget.selected else p.muted)
        c.text(c.width / 2, c.height - 7, widget.label, 9, ink, align="centre", width=c.width)
        return
    c.text(c.width / 2, c.height / 2, widget.label, BODY, ink, align="centre", width=c.width - 2, bold=widget.selected)
    if widget.selected:
        c.rounded(c.width / 2 - 16, c.height - 3, 32, 2.4, 1.2, p.accent)


def paint_chip(c: Canvas, widget: w.Chip) -> None:
    """A small rounded box."""
    p = c.style.palette
    if widget.selected:
        c.rounded(1, 2, c.width - 2, c.height - 4, 6, p.tonal)
    else:
        c.outline(1, 2, c.width - 2, c.height - 4, 6, p.faint, 1.1)
    ink = p.on_tonal if widget.selected else p.text
    c.text(c.width / 2, c.height / 2, widget.label, SMALL, ink, align="centre", width=c.width - 6)


def paint_app(c: Canvas, widget: w.AppIcon) -> None:
    """A launcher icon with its name."""
    p = c.style.palette
    size = 30.0 if widget.named else 28.0
    cy = 17.0 if widget.named else c.height / 2
    draw_app_icon(c, widget.app, c.width / 2, cy, size)
    if widget.badge:
        c.circle(c.width / 2 + size / 2 - 3, cy - size / 2 + 3, 4, (226, 58, 50))
    if widget.named:
        caption(c, widget.label, p.text if not widget.on_wallpaper else (255, 255, 255), widget.on_wallpaper)


def paint_folder(c: Canvas, widget: w.FolderIcon) -> None:
    """A launcher folder."""
    p = c.style.palette
    c.rounded(c.width / 2 - 15, 2, 30, 30, 10, p.raised)
    for i, app in enumerate(widget.apps[:4]):
        draw_app_icon(c, app, c.width / 2 - 6 + 12 * (i % 2), 11 + 12 * (i // 2), 10)
    caption(c, widget.label, (255, 255, 255), True)


def paint_tile(c: Canvas, widget: w.Tile) -> None:
    """A quick-settings tile."""
    p = c.style.palette
    c.rounded(0, 0, c.width, c.height, 11, p.accent if widget.checked else p.faint)
    ink = p.on_accent if widget.checked else p.text
    c.icon(widget.icon, 14, c.height / 2, 13, ink)
    words = wrap(widget.label, font_px(c.style, SMALL), (c.width - 27) * c.style.scale, True, 2)
    lines = [(line, True) for line in (words if " " in widget.label else (widget.label,))]
    if widget.subtitle:
        lines = [lines[0], (widget.subtitle, False)]
    for i, (line, bold) in enumerate(lines):
        y = c.height / 2 + (i - (len(lines) - 1) / 2) * 12
        c.text(24, y, line, c.fitted(line, SMALL, c.width - 26, bold=bold), ink, bold=bold, width=c.width - 26)


def paint_picture(c: Canvas, widget: w.Picture) -> None:
    """A drawn picture."""
    c.picture(draw_picture(widget.subject, c.size))
    if widget.badge:
        c.rounded(3, c.height - 15, text_units(c, widget.badge, 9) + 8, 12, 4, (0, 0, 0))
        c.text(7, c.height - 9, widget.badge, 9, (255, 255, 255))
    if widget.selected:
        c.outline(0, 0, c.width, c.height, 2, c.style.palette.accent, 3)


def paint_card(c: Canvas, widget: w.Card) -> None:
    """A raised box."""
    p, left = c.style.palette, 20.0
    c.rounded(8, 2, c.width - 16, c.height - 4, 9, p.raised)
    if widget.tint:
        draw_app_icon(c, widget.tint, 26, c.height / 2, 22)
        left = 44.0
    elif widget.icon:
        c.icon(widget.icon, 25, c.height / 2, 15, p.accent)
        left = 44.0
    lines = (
        wrap(widget.text, font_px(c.style, SMALL), (c.width - left - 14) * c.style.scale, False, 3)
        if widget.text
        else ()
    )
    high, low = line_height(c.style, BODY), line_height(c.style, SMALL)
    y = c.height / 2 - (high + len(lines) * low) / 2
    c.text(left, y + high / 2, widget.label, BODY, p.text, bold=True, width=c.width - left - 14)
    for i, line in enumerate(lines):
        c.text(left, y + high + (i + 0.5) * low, line, SMALL, p.muted)


def paint_key(c: Canvas, widget: w.Key) -> None:
    """A key of the keyboard."""
    p = c.style.palette
    special = len(widget.char) > 1 and widget.char != "space"
    c.rounded(0.6, 1, c.width - 1.2, c.height - 2, 4, p.tonal if widget.active or special else p.page)
    ink = p.on_tonal if widget.active or special else p.text
    if widget.icon:
        c.icon(widget.icon, c.width / 2, c.height / 2, 12, ink)
    else:
        c.text(c.width / 2, c.height / 2, widget.label, TITLE if len(widget.label) == 1 else SMALL, ink, align="centre")


def paint_day(c: Canvas, widget: w.Day) -> None:
    """A day of a month."""
    p = c.style.palette
    if widget.selected:
        c.circle(c.width / 2, c.height / 2, 10, p.accent)
    elif widget.today:
        c.ring(c.width / 2, c.height / 2, 10, p.accent)
    c.text(c.width / 2, c.height / 2, widget.label, SMALL, p.on_accent if widget.selected else p.text, align="centre")
    if widget.marked:
        y = c.height / 2 + 6.8 if widget.selected else c.height - 2.5
        c.circle(c.width / 2, y, 1.6, p.on_accent if widget.selected else p.accent)


def paint_divider(c: Canvas, widget: w.Divider) -> None:
    """A hairline."""
    c.rect(12, c.height / 2, c.width - 24, 0.8, c.style.palette.faint)


def paint_title(c: Canvas, widget: w.Title) -> None:
    """The app bar's title."""
    c.text(4, c.height / 2, widget.text, 14, c.style.palette.text, bold=True, width=c.width - 4)


def paint_bar(c: Canvas, widget: w.Bar) -> None:
    """A filled area; a sheet has round upper corners."""
    colour = c.style.palette.by_name[widget.fill.split("-")[0]]
    if widget.fill.startswith("sheet"):
        c.rounded(0, 0, c.width, c.height + (14 if widget.fill == "sheet" else 0), 12, colour)
    else:
        c.rect(0, 0, c.width, c.height, colour)


def paint_nothing(c: Canvas, widget: w.Widget) -> None:
    """Space draws nothing."""


PAINTERS: dict[type[w.Widget], Painter] = {
    w.Row: paint_row, w.Switch: paint_switch, w.Header: paint_header, w.Paragraph: paint_paragraph,
    w.Display: paint_display, w.Bubble: paint_bubble, w.Slider: paint_slider, w.Button: paint_button,
    w.IconButton: paint_icon_button, w.Fab: paint_fab, w.Field: paint_field, w.Tab: paint_tab, w.Chip: paint_chip,
    w.AppIcon: paint_app, w.FolderIcon: paint_folder, w.Tile: paint_tile, w.Picture: paint_picture,
    w.Card: paint_card, w.Key: paint_key, w.Day: paint_day, w.Divider: paint_divider, w.Title: paint_title,
    w.Bar: paint_bar, w.Space: paint_nothing,
}  # fmt: skip
"""Painter by widget class; other modules may add their own widgets' painters."""
