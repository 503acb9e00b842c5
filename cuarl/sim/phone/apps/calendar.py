"""The calendar: one month, its agenda, an event, the form that adds or changes one."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Open, Put, Replace, Show
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Event
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, switch, text_field, value_row

APP = AppModule("calendar", home="calendar/month")

MONTH, DAYS, TODAY = "June", 30, 18
"""The month that every device shows. It starts on a Monday."""
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
TABS = (("Month", "month", "calendar"), ("Agenda", "agenda", "menu"))


def day_text(day: int) -> str:
    """A day of the month: ``Thu, 18 June``."""
    return f"{WEEKDAYS[(day - 1) % 7]}, {day} {MONTH}"


def _screen(ctx: Context, body: tuple[w.Widget, ...], day: int) -> Screen:
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"calendar/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    return Screen(
        MONTH,
        body,
        (
            w.IconButton("Search events", forms.start("calendar/search", {"calendar.query": ""}), icon="search"),
            w.IconButton("Calendar settings", Open("calendar/settings"), icon="gear"),
        ),
        bottom=(w.HBox(tabs, height=32),),
        fab=w.Fab("New event", forms.start("calendar/new", _values(Event("", day)))),
    )


@APP.page("month")
def month(ctx: Context) -> Screen:
    """The month, days with events marked, and the events of the chosen day."""
    chosen = int(ctx.form("calendar.day", TODAY))
    grid = _days(ctx, "calendar.day", chosen)
    rows = _rows(ctx, [(e, i) for i, e in enumerate(ctx.state.events) if e.day == chosen])
    quiet = (w.Paragraph("Nothing planned"),)
    return _screen(ctx, (*grid, w.Header(day_text(chosen)), *(rows or quiet)), chosen)


def _days(ctx: Context, name: str, chosen: int) -> tuple[w.Widget, ...]:
    """A month of days that write to the form ``name``."""
    busy = {e.day for e in ctx.state.events}
    names = tuple(w.Display(day[:2], 9.5) for day in WEEKDAYS)
    days = tuple(
        w.Day(str(d), Put(f"ui.form.{name}", d), today=d == TODAY, marked=d in busy, selected=d == chosen)
        for d in range(1, DAYS + 1)
    )
    return w.HBox(names, height=18, gap=2, pad=6), w.Grid(days, 7, 24, gap=2)


def _rows(ctx: Context, events: list[tuple[Event, int]]) -> tuple[w.Widget, ...]:
    ordered = sorted(events, key=lambda pair: (pair[0].day, pair[0].minutes))
    return tuple(
        w.Row(e.title, Open(f"calendar/event:{i}"), subtitle=e.place, value=forms.time_text(ctx, e.minutes))
        for e, i in ordered
    )


@APP.page("agenda")
def agenda(ctx: Context) -> Screen:
    """All events by day."""
    body = _by_day(ctx, list(enumerate(ctx.state.events)))
    return _screen(ctx, body or forms.empty("No events"), TODAY)


def _by_day(ctx: Context, events: list[tuple[int, Event]]) -> tuple[w.Widget, ...]:
    body: list[w.Widget] = []
    for day in sorted({e.day for _, e in events}):
        body += [w.Header(day_text(day)), *_rows(ctx, [(e, i) for i, e in events if e.day == day])]
    return tuple(body)


@APP.page("search")
def search(ctx: Context) -> Screen:
    """Events whose title or place has the typed text."""
    query = str(ctx.form("calendar.query")).lower()
    found = [(i, e) for i, e in enumerate(ctx.state.events) if query in f"{e.title} {e.place}".lower()]
    field = text_field(ctx, "Search events", "ui.form.calendar.query", search=True)
    return Screen("Search", _by_day(ctx, found) or forms.empty("Nothing found"), top=(field,))


@APP.page("event")
def event(ctx: Context) -> Screen:
    """One event."""
    found = forms.at(ctx.state.events, ctx.arg)
    if found is None:
        return forms.gone("Event")
    delete = forms.finish(Put("events", forms.without(ctx.state.events, int(ctx.arg))), toast="Event deleted")
    actions = (
        w.IconButton("Edit event", forms.start(f"calendar/edit:{ctx.arg}", _values(found)), icon="edit"),
        w.IconButton("Delete event", Show(confirmation("Delete event?", found.title, delete, "Delete")), icon="trash"),
    )
    body = (
        w.Space(4),
        w.Paragraph(found.title, 16, muted=False),
        value_row("Day", day_text(found.day), icon="calendar"),
        value_row("Time", forms.time_text(ctx, found.minutes), icon="clock"),
        value_row("Place", found.place or "None", icon="location"),
    )
    return Screen("Event", body, actions)


def _values(event: Event) -> dict[str, object]:
    return {
        "event.title": event.title,
        "event.day": event.day,
        "event.minutes": event.minutes,
        "event.place": event.place,
    }


@APP.page("new")
def new(ctx: Context) -> Screen:
    """The form of a new event."""
    entered = _entered(ctx, Event("", TODAY))
    return _form(ctx, "New event", entered, Put("events", (*ctx.state.events, entered)))


@APP.page("edit")
def edit(ctx: Context) -> Screen:
    """The form that changes an event."""
    old = forms.at(ctx.state.events, ctx.arg)
    if old is None:
        return forms.gone("Edit event")
    entered = _entered(ctx, old)
    return _form(ctx, "Edit event", entered, Put(f"events.{ctx.arg}", entered))


def _entered(ctx: Context, old: Event) -> Event:
    return replace(
        old,
        title=str(ctx.form("event.title")).strip(),
        day=int(ctx.form("event.day", old.day)),
        minutes=int(ctx.form("event.minutes", old.minutes)),
        place=str(ctx.form("event.place")).strip(),
    )


def _form(ctx: Context, title: str, entered: Event, save: Effect) -> Screen:
    body = (
        text_field(ctx, "Title", "ui.form.event.title"),
        w.Row("Day", Open("calendar/day"), value=day_text(entered.day), icon="calendar"),
        w.Row("Time", Open("calendar/time"), value=forms.time_text(ctx, entered.minutes), icon="clock"),
        text_field(ctx, "Place", "ui.form.event.place"),
    )
    saved = forms.finish(save, toast="Event saved")
    return Screen(title, body, (forms.save_button("Save event", saved, enabled=bool(entered.title)),))


@APP.page("day")
def day(ctx: Context) -> Screen:
    """The day of the event in the form."""
    chosen = int(ctx.form("event.day", TODAY))
    done = forms.save_button("Set day", forms.finish())
    return Screen("Day", (w.Display(day_text(chosen), 16, height=34), *_days(ctx, "event.day", chosen)), (done,))


@APP.page("time")
def time(ctx: Context) -> Screen:
    """The time of the event in the form."""
    chosen = int(ctx.form("event.minutes", 9 * forms.HOUR))
    done = forms.save_button("Set time", forms.finish())
    shown = w.Display(forms.time_text(ctx, chosen), 24, height=34)
    return Screen("Time", (shown, *forms.time_picker(ctx, "event.minutes")), (done,))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Calendar settings."""
    rows = (
        switch(ctx, "Notifications", "apps.calendar.notifications"),
        switch(ctx, "Contacts' birthdays", "apps.calendar.contacts", "Reads your contacts"),
        switch(ctx, "Sync in background", "apps.calendar.background_data"),
        switch(ctx, "24-hour format", "system.use_24h"),
        switch(ctx, "Device time zone", "system.auto_timezone"),
    )
    return Screen("Calendar settings", ctx.shuffled(rows))
