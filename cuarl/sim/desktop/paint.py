"""How the desktop's own widgets are drawn, in units on a canvas of their own."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageFilter

from cuarl.sim.desktop import widgets as d
from cuarl.sim.desktop.glyphs import draw_cells
from cuarl.sim.kit.canvas import Canvas, rounded_mask
from cuarl.sim.kit.cover import Mask, mask_of
from cuarl.sim.kit.marks import draw_app_icon, draw_radio, draw_switch, text_units
from cuarl.sim.kit.paint import PAINTERS, paint_slider
from cuarl.sim.kit.style import Colour

WHITE: Colour = (255, 255, 255)
RADIUS = 6.0
TEXT, SMALL = 11.0, 9.5
"""Font sizes, units before the desktop's density."""
DISCS: dict[str, Colour] = {"red": (236, 95, 86), "amber": (242, 189, 62), "green": (97, 196, 84)}
KINDS: dict[str, Colour] = {
    "folder": (98, 160, 234), "note": (150, 152, 160), "file": (205, 92, 84), "photo": (88, 168, 110),
    "music": (190, 120, 200), "trash": (150, 156, 164),
}  # fmt: skip
"""Colours of files' icons."""


def paint_shadow(c: Canvas, shadow: d.Shadow) -> None:
    """A soft dark edge."""
    c.cover(_shadow(c.size, c.style.px(5)))


@lru_cache(maxsize=256)
def _shadow(size: tuple[int, int], soft: int) -> Image.Image:
    mask = Image.new("L", size, 0)
    inner = (max(1, size[0] - 2 * soft), max(1, size[1] - 2 * soft))
    mask.paste(rounded_mask(*inner, 4 * soft).point(lambda v: v * 90 // 255), (soft, soft))
    return mask.filter(ImageFilter.GaussianBlur(soft * 0.55))


def paint_window(c: Canvas, box: d.WindowBox) -> None:
    """The ground below the title bar, with a hairline at its sides and bottom."""
    c.rect(0, 0, c.width, c.height, _edge(c))
    c.rect(1, 0, c.width - 2, c.height - 1, c.style.palette.page)


def _edge(c: Canvas) -> Colour:
    """Colour of the line around a window."""
    return c.style.palette.faint if not c.style.dark else (70, 70, 78)


def paint_titlebar(c: Canvas, bar: d.TitleBar) -> None:
    """The title on the header's colour under a hairline; a window without the focus is paler."""
    p, radius = c.style.palette, 0.0 if bar.square else RADIUS
    fill = p.raised if bar.focused else p.bar
    c.rounded(0, 0, c.width, c.height + RADIUS * 2, radius, _edge(c))
    c.rounded(1, 1, c.width - 2, c.height + RADIUS * 2, max(0.0, radius - 0.8), fill)
    c.rect(1, c.height - 0.9, c.width - 2, 0.9, p.faint)
    ink = p.text if bar.focused else p.muted
    room = c.width - bar.pad - 10
    if bar.centred and text_units(c, bar.label, TEXT) + 4 < c.width - 2 * bar.pad:
        c.text(c.width / 2, c.height / 2, bar.label, TEXT, ink, align="centre", bold=True)
    else:
        c.text(bar.pad if bar.left_buttons else 10, c.height / 2, bar.label, TEXT, ink, bold=True, width=room)


def paint_window_button(c: Canvas, button: d.WindowButton) -> None:
    """A coloured disc, or a bare mark."""
    p = c.style.palette
    if button.disc:
        c.circle(c.width / 2, c.height / 2, 5.2, DISCS[button.disc] if button.focused else p.faint)
        c.icon(button.icon, c.width / 2, c.height / 2, 5.5, (70, 40, 30) if button.focused else p.muted)
        return
    c.icon(button.icon, c.width / 2, c.height / 2, 9, p.text if button.focused else p.muted)


def paint_panel_button(c: Canvas, button: d.PanelButton) -> None:
    """An icon and a text on the panel."""
    p = c.style.palette
    if button.active:
        c.rounded(1, 2, c.width - 2, c.height - 4, 4, p.tonal)
    ink = p.on_tonal if button.active else p.text
    if not button.text:
        c.icon(button.icon, c.width / 2, c.height / 2, 12, ink)
        return
    left = 6.0
    if button.icon:
        c.icon(button.icon, 12, c.height / 2, 12, ink)
        left = 22.0
    c.text(left, c.height / 2, button.text, TEXT, ink, bold=bool(button.icon))


def paint_task(c: Canvas, task: d.Task) -> None:
    """An entry of the panel: the app's icon, its title, a line under the active one."""
    p = c.style.palette
    if task.active:
        c.rounded(1, 2, c.width - 2, c.height - 4, 4, p.tonal)
    elif not task.minimised:
        c.rounded(1, 2, c.width - 2, c.height - 4, 4, p.raised)
    draw_app_icon(c, task.app, 12, c.height / 2, 14)
    if task.labelled:
        ink = p.on_tonal if task.active else p.muted if task.minimised else p.text
        c.text(23, c.height / 2, task.label, SMALL, ink, width=c.width - 26)
    if not task.minimised:
        width = c.width - 12 if task.active else 6
        c.rounded((c.width - width) / 2, c.height - 3, width, 1.6, 0.8, p.accent if task.active else p.muted)


def draw_file_icon(c: Canvas, icon: str, cx: float, cy: float, size: float) -> None:
    """A file's or folder's icon in its colour; pages have a mark on white."""
    if icon in ("folder", "trash"):
        c.icon(icon, cx, cy, size, KINDS[icon])
        return
    half = size / 2
    c.rounded(cx - half * 0.8, cy - half, size * 0.8, size, size * 0.1, (150, 152, 160))
    c.rounded(cx - half * 0.8 + 0.7, cy - half + 0.7, size * 0.8 - 1.4, size - 1.4, size * 0.08, (252, 252, 253))
    c.icon(icon if icon != "note" else "text", cx, cy, size * 0.5, KINDS.get(icon, KINDS["note"]))


def paint_desk_icon(c: Canvas, icon: d.DeskIcon) -> None:
    """An icon on the wallpaper with its name below."""
    p = c.style.palette
    if icon.picked:
        c.rounded(4, 0, c.width - 8, c.height - 1, 4, p.accent)
    if icon.app:
        draw_app_icon(c, icon.app, c.width / 2, 16, 26)
    else:
        draw_file_icon(c, icon.icon, c.width / 2, 16, 26)
    size = c.fitted(icon.label, TEXT, c.width - 4)
    if not icon.picked:
        width = min(c.width, text_units(c, icon.label, size) + 7)
        mask = _faint_pill(c.style.px(width), c.style.px(12), c.style.px(16))
        c.paste((16, 16, 20), mask, c.style.px((c.width - width) / 2), c.style.px(c.height - 14))
    ink = WHITE if not icon.picked else p.on_accent
    c.text(c.width / 2, c.height - 8, icon.label, size, ink, align="centre", width=c.width - 2)


@lru_cache(maxsize=256)
def _faint_pill(width: int, height: int, radius: int) -> Mask:
    return mask_of(rounded_mask(width, height, radius).point(lambda v: v * 45 // 100))


def paint_menu_entry(c: Canvas, entry: d.MenuEntry) -> None:
    """A line of a menu."""
    p, left = c.style.palette, 22.0 if entry.indent else 10.0
    if entry.app:
        draw_app_icon(c, entry.app, 14, c.height / 2, 14)
        left = 26.0
    elif entry.checked:
        c.icon("check", 11, c.height / 2, 9, p.accent)
    ink = p.text if entry.enabled else p.faint
    c.text(left, c.height / 2, entry.label, TEXT, ink, width=c.width - left - 4)


def paint_item(c: Canvas, item: d.Item) -> None:
    """A line of a list."""
    p = c.style.palette
    if item.selected:
        c.rounded(3, 1, c.width - 6, c.height - 2, 4, p.tonal)
    ink, left = p.on_tonal if item.selected else p.text, 10.0
    if item.icon in KINDS:
        draw_file_icon(c, item.icon, 15, c.height / 2, 13)
        left = 27.0
    elif item.icon:
        c.icon(item.icon, 15, c.height / 2, 11, ink if item.selected else p.muted)
        left = 27.0
    room = c.width - left - 8
    if item.detail:
        c.text(c.width - 10, c.height / 2, item.detail, SMALL, p.muted, align="right")
        room -= text_units(c, item.detail, SMALL) + 6
    c.text(left, c.height / 2, item.label, TEXT, ink, width=room)


def _boxed(c: Canvas, first: bool, last: bool) -> None:
    """A part of a rounded box of settings."""
    p, radius, x, width = c.style.palette, 6.0, 8.0, c.width - 16
    fill = p.raised if c.style.dark else p.page
    line = p.faint
    top, bottom = 0.0 if first else -20.0, c.height if last else c.height + 20
    c.rounded(x, top, width, bottom - top, radius, line)
    c.rounded(x + 0.8, top + 0.8, width - 1.6, bottom - top - 1.6, radius - 0.8, fill)
    if not last:
        c.rect(x + 0.8, c.height - 0.8, width - 1.6, 0.8, p.faint)


def paint_setting(c: Canvas, row: d.Setting) -> None:
    """A line of settings in its box: name, and a switch, mark or value at the right."""
    _boxed(c, row.first, row.last)
    p, middle, right = c.style.palette, c.height / 2, c.width - 8
    ink, room = p.text if row.enabled else p.faint, c.width - 36
    if row.trailing == "switch":
        draw_switch(c, right - 20, middle, bool(row.checked), row.enabled)
        room -= 30
    elif row.trailing == "radio":
        draw_radio(c, right - 14, middle, bool(row.checked))
        room -= 20
    elif row.trailing in ("menu", "chevron"):
        c.icon("down" if row.trailing == "menu" else "chevron", right - 12, middle, 8, p.muted)
        room -= 12
    if row.value:
        end = right - (20 if row.trailing else 10)
        c.text(end, middle, row.value, TEXT, p.muted, align="right")
        room -= text_units(c, row.value, TEXT) + 8
    y = middle - 5.5 if row.subtitle else middle
    c.text(18, y, row.label, TEXT, ink, width=room)
    if row.subtitle:
        c.text(18, middle + 5.5, row.subtitle, SMALL - 0.5, p.muted, width=room)


def paint_level(c: Canvas, level: d.Level) -> None:
    """A slider in its box, with its value."""
    _boxed(c, level.first, level.last)
    paint_slider(c, level)
    c.text(c.width - 18, 9, str(level.value), SMALL, c.style.palette.muted, align="right")


def paint_push(c: Canvas, push: d.Push) -> None:
    """A push button."""
    p = c.style.palette
    fill: Colour | None = {
        "plain": p.raised,
        "suggested": p.accent,
        "key": p.raised,
        "operator": p.tonal,
        "flat": None,
    }[push.look]
    ink = p.on_accent if push.look == "suggested" else p.on_tonal if push.look == "operator" else p.text
    if not push.enabled:
        fill, ink = (p.bar if fill else None), p.faint
    if fill:
        c.rounded(1, 2, c.width - 2, c.height - 4, 4, p.faint)
        c.rounded(1.7, 2.7, c.width - 3.4, c.height - 5.4, 3.5, fill)
    if push.icon:
        c.icon(push.icon, c.width / 2, c.height / 2, 11, ink)
    else:
        size = 13.0 if push.look in ("key", "operator") else TEXT
        c.text(c.width / 2, c.height / 2, push.label, size, ink, align="centre", width=c.width - 4)


def paint_entry(c: Canvas, entry: d.Entry) -> None:
    """A text field with its hint or its text, the selection and the caret."""
    p, left = c.style.palette, entry_left(entry)
    c.rounded(2, 2, c.width - 4, c.height - 4, 4, p.accent if entry.focused else p.faint)
    c.rounded(3, 3, c.width - 6, c.height - 6, 3.2, p.raised if c.style.dark else p.page)
    if entry.icon:
        c.icon(entry.icon, 12, c.height / 2, 10, p.muted)
    content, middle = entry.content, c.height / 2
    if not content.text and not entry.focused:
        c.text(left, middle, entry.label, TEXT, p.muted, width=c.width - left - 6)
        return
    start = entry_start(c, entry)
    shown = content.text[start:]
    a, b = (max(0, n - start) for n in content.selection)
    if entry.focused and a < b:
        x0, x1 = (left + text_units(c, shown[:n], TEXT) for n in (a, b))
        c.rect(x0, middle - 7, min(x1, c.width - 5) - x0, 14, p.tonal)
    c.text(left, middle, shown, TEXT, p.text, width=c.width - left - 5)
    if entry.focused and a == b:
        x = left + text_units(c, shown[: max(0, content.caret - start)], TEXT)
        c.rect(min(x, c.width - 5), middle - 7, 1, 14, p.text)


def entry_left(entry: d.Entry) -> float:
    """Where a field's text starts, units."""
    return 22.0 if entry.icon else 9.0


def entry_start(c: Canvas, entry: d.Entry) -> int:
    """First character that a field shows, so that its caret can be seen."""
    start, room = 0, c.width - entry_left(entry) - 8
    while entry.focused and text_units(c, entry.content.text[start : entry.content.caret], TEXT) > room:
        start += 1
    return start


SHEETS: dict[str, tuple[Colour, Colour, Colour]] = {
    "terminal": ((30, 30, 38), (224, 224, 230), (126, 206, 130)),
    "terminal_light": ((252, 252, 244), (40, 40, 46), (30, 120, 60)),
}
"""Ground, ink and prompt of terminals."""


def _sheet(c: Canvas, name: str) -> tuple[Colour, Colour, Colour]:
    p = c.style.palette
    return SHEETS.get(name, (p.page, p.text, p.accent))


def paint_text_line(c: Canvas, line: d.TextLine) -> None:
    """A line of fixed-width text."""
    p = c.style.palette
    ground, ink, prompt = _sheet(c, line.sheet)
    c.rect(0, 0, c.width, c.height, ground)
    left = d.CELL
    a, b = line.marked
    if b > a:
        marked = p.tonal if line.sheet == "page" else (70, 90, 130)
        c.rect(left + a * d.CELL, 0, (b - a) * d.CELL, c.height, marked)
    ink = p.muted if line.ink == "muted" else ink
    draw_cells(c, line.text[: line.prompt], left, c.height / 2, prompt)
    draw_cells(c, line.text[line.prompt :], left + line.prompt * d.CELL, c.height / 2, ink)
    if line.caret >= 0:
        x = left + line.caret * d.CELL
        if line.sheet == "page":
            c.rect(x - 0.5, 0.5, 1, c.height - 1, ink)
        else:
            c.rect(x, 1, d.CELL, c.height - 2, ink)
            draw_cells(c, line.text[line.caret : line.caret + 1], x, c.height / 2, ground)


def paint_sheet(c: Canvas, sheet: d.Sheet) -> None:
    """The ground of a text."""
    c.rect(0, 0, c.width, c.height, _sheet(c, sheet.fill)[0])


def paint_scroll_bar(c: Canvas, bar: d.ScrollBar) -> None:
    """A thin handle."""
    scale = c.style.scale
    c.rounded(2, bar.top / scale, c.width - 4, bar.length / scale, (c.width - 4) / 2, (150, 150, 158))


def paint_ruled(c: Canvas, strip: d.Ruled) -> None:
    """A filled strip."""
    p = c.style.palette
    fill = p.by_name[strip.fill]
    if strip.edge == "all":
        c.rounded(0, 0, c.width, c.height, 5, p.faint)
        c.rounded(0.8, 0.8, c.width - 1.6, c.height - 1.6, 4.4, fill)
        return
    c.rect(0, 0, c.width, c.height, fill)
    line = 0.8
    edges = {
        "top": (0, 0, c.width, line),
        "bottom": (0, c.height - line, c.width, line),
        "right": (c.width - line, 0, line, c.height),
    }
    if strip.edge:
        c.rect(*edges[strip.edge], p.faint)


def paint_tip(c: Canvas, tip: d.Tip) -> None:
    """A small dark label."""
    c.rounded(0, 0, c.width, c.height, 3, (40, 40, 46))
    c.text(c.width / 2, c.height / 2, tip.text, SMALL, WHITE, align="centre", width=c.width - 4)


def paint_notice(c: Canvas, notice: d.NoticeBox) -> None:
    """A notification."""
    p = c.style.palette
    c.rounded(0, 0, c.width, c.height, 7, p.faint)
    c.rounded(0.8, 0.8, c.width - 1.6, c.height - 1.6, 6.4, p.raised)
    c.icon("bell", 17, c.height / 2, 13, p.accent)
    c.text(32, 14, notice.label, TEXT, p.text, bold=True, width=c.width - 58)
    c.text(32, c.height - 14, notice.text, SMALL, p.muted, width=c.width - 40)


def paint_caption(c: Canvas, heading: d.Caption) -> None:
    """A heading."""
    p = c.style.palette
    ink = p.text if heading.strong else p.muted
    x, align = (c.width / 2, "centre") if heading.centred else (12.0, "left")
    y = c.height / 2 + (2 if heading.strong and not heading.centred else 0)
    c.text(x, y, heading.text, TEXT, ink, bold=heading.strong, align=align, width=c.width - 24)


PAINTERS.update(
    {
        d.Shadow: paint_shadow,
        d.WindowBox: paint_window,
        d.TitleBar: paint_titlebar,
        d.WindowButton: paint_window_button,
        d.PanelButton: paint_panel_button,
        d.Task: paint_task,
        d.DeskIcon: paint_desk_icon,
        d.MenuEntry: paint_menu_entry,
        d.Item: paint_item,
        d.Setting: paint_setting,
        d.Level: paint_level,
        d.Push: paint_push,
        d.Entry: paint_entry,
        d.TextLine: paint_text_line,
        d.Sheet: paint_sheet,
        d.ScrollBar: paint_scroll_bar,
        d.Ruled: paint_ruled,
        d.Tip: paint_tip,
        d.NoticeBox: paint_notice,
        d.Caption: paint_caption,
    }
)
