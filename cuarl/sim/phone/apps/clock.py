"""The clock: alarms, world clock, timer, stopwatch. Time stands still on this device, so nothing rings or runs out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Effect, Open, Put, Remove, Replace, Seq, Show, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Alarm, Stopwatch, Timer
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import choice, confirmation, link, slider, switch, text_field

APP = AppModule("clock", home="clock/alarms")

TABS = (("Alarm", "alarms", "alarm"), ("World", "world", "language"), ("Timer", "timer", "timeout"),
    ("Stopwatch", "stopwatch", "clock"))  # fmt: skip
ZONES: Mapping[str, int] = {
    "Berlin": 60, "Cairo": 120, "Delhi": 330, "Lima": -300, "London": 0, "Nairobi": 180, "New York": -300, "Oslo": 60,
    "Seoul": 540, "Sydney": 600, "Tokyo": 540, "Toronto": -300,
}  # fmt: skip
"""Minutes ahead of universal time."""

PRESS_SECONDS = 7
"""What a running stopwatch gains with each press: the only time that passes here."""

DIGITS = "ui.form.timer.digits"


def _screen(ctx: Context, body: tuple[w.Widget, ...], fab: w.Fab | None = None) -> Screen:
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"clock/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    gear = w.IconButton("Clock settings", Open("clock/settings"), icon="gear")
    return Screen("Clock", body, (gear,), bottom=(w.HBox(tabs, (1, 1, 1, 1.3), height=32, gap=0, pad=2),), fab=fab)


# --- alarms --------------------------------------------------------------------------------------------------------


@APP.page("alarms")
def alarms(ctx: Context) -> Screen:
    """Alarms by time, each with its switch."""
    ordered = sorted(enumerate(ctx.state.clock.alarms), key=lambda pair: pair[1].minutes)
    rows = tuple(_alarm_row(ctx, alarm, i) for i, alarm in ordered)
    fab = w.Fab("Add alarm", forms.start("clock/new", _values(Alarm(8 * forms.HOUR))))
    return _screen(ctx, rows or forms.empty("No alarms"), fab)


def _alarm_row(ctx: Context, alarm: Alarm, index: int) -> w.Row:
    label, path = forms.time_text(ctx, alarm.minutes), f"clock.alarms.{index}"
    own = w.Switch(label, Toggle(f"{path}.enabled"), checked=alarm.enabled)
    edit = forms.start(f"clock/edit:{index}", _values(alarm))
    return w.Row(label, edit, subtitle=alarm.label or "Every day", icon="alarm", trailing="split", switch=own)


def _values(alarm: Alarm) -> dict[str, object]:
    return {"alarm.minutes": alarm.minutes, "alarm.label": alarm.label, "alarm.vibrate": alarm.vibrate}


@APP.page("new")
def new(ctx: Context) -> Screen:
    """The form of a new alarm; another one at the same time is replaced."""
    alarm = _entered(ctx, enabled=True)
    kept = tuple(a for a in ctx.state.clock.alarms if a.minutes != alarm.minutes)
    return _form(ctx, "Add alarm", alarm, Put("clock.alarms", (*kept, alarm)))


@APP.page("edit")
def edit(ctx: Context) -> Screen:
    """The form that changes or deletes an alarm."""
    old = forms.at(ctx.state.clock.alarms, ctx.arg)
    if old is None:
        return forms.gone("Edit alarm")
    rest = forms.without(ctx.state.clock.alarms, int(ctx.arg))
    ask = confirmation(
        "Delete alarm?", forms.time_text(ctx, old.minutes), forms.finish(Put("clock.alarms", rest)), "Delete"
    )
    delete = w.IconButton("Delete alarm", Show(ask), icon="trash")
    alarm = _entered(ctx, enabled=old.enabled)
    return _form(ctx, "Edit alarm", alarm, Put(f"clock.alarms.{ctx.arg}", alarm), delete)


def _entered(ctx: Context, *, enabled: bool) -> Alarm:
    minutes = int(ctx.form("alarm.minutes", 8 * forms.HOUR))
    return Alarm(minutes, enabled, str(ctx.form("alarm.label")).strip(), bool(ctx.form("alarm.vibrate", True)))


def _form(ctx: Context, title: str, alarm: Alarm, save: Effect, *more: w.IconButton) -> Screen:
    vibrate = Put("ui.form.alarm.vibrate", not alarm.vibrate)
    body = (
        w.Display(forms.time_text(ctx, alarm.minutes), 26, height=34),
        *forms.time_picker(ctx, "alarm.minutes"),
        text_field(ctx, "Label", "ui.form.alarm.label"),
        w.Row("Vibrate", vibrate, icon="vibrate", trailing="switch", checked=alarm.vibrate),
    )
    saved = forms.finish(save, toast=f"Alarm set for {forms.time_text(ctx, alarm.minutes)}")
    return Screen(title, body, (*more, forms.save_button("Save alarm", saved)))


# --- world clock ---------------------------------------------------------------------------------------------------


@APP.page("world")
def world(ctx: Context) -> Screen:
    """The time here and in the chosen cities."""
    rows = tuple(
        w.Row(
            city,
            Show(confirmation(f"Remove {city}?", "", Remove("clock.cities", city), "Remove")),
            subtitle=_ahead(ctx, city),
            value=_time_in(ctx, city),
            icon="language",
        )
        for city in ctx.state.clock.cities
    )
    here = forms.time_text(ctx, ctx.world.look.minutes)
    body = (w.Display(here, 30, height=44), w.Paragraph(ctx.state.system.timezone, align="centre"), w.Divider(), *rows)
    return _screen(ctx, body, w.Fab("Add city", forms.start("clock/cities", {"clock.city": ""})))


def _shift(ctx: Context, city: str) -> int:
    return ZONES.get(city, 0) - ZONES.get(ctx.state.system.timezone, 0)


def _time_in(ctx: Context, city: str) -> str:
    return forms.time_text(ctx, ctx.world.look.minutes + _shift(ctx, city))


def _ahead(ctx: Context, city: str) -> str:
    hours = _shift(ctx, city) / forms.HOUR
    return f"{abs(hours):g} h {'ahead' if hours > 0 else 'behind'}" if hours else "Same time"


@APP.page("cities")
def cities(ctx: Context) -> Screen:
    """Cities that can be added."""
    query = str(ctx.form("clock.city")).lower()
    rows = tuple(
        w.Row(city, forms.finish(Append("clock.cities", city)), value=_time_in(ctx, city))
        for city in ZONES
        if city not in ctx.state.clock.cities and query in city.lower()
    )
    field = text_field(ctx, "Search cities", "ui.form.clock.city", search=True)
    return Screen("Add city", rows or forms.empty("No such city"), top=(field,))


# --- timer ---------------------------------------------------------------------------------------------------------


@APP.page("timer")
def timer(ctx: Context) -> Screen:
    """The keypad of a new timer, or the set timer."""
    return _screen(ctx, _countdown(ctx.state.clock.timer) if ctx.state.clock.timer.seconds else _keypad(ctx))


def _countdown(timer: Timer) -> tuple[w.Widget, ...]:
    label, icon = ("Pause", "pause") if timer.running else ("Resume", "play")
    buttons = (
        w.Button(label, Put("clock.timer.running", not timer.running), look="filled", icon=icon),
        w.Button("Delete", Put("clock.timer", Timer()), icon="trash"),
    )
    return (
        w.Space(50),
        w.Display(_span(timer.seconds), 34),
        w.Paragraph("Running" if timer.running else "Paused", align="centre"),
        w.Space(20),
        w.HBox(buttons, pad=24),
    )


def _keypad(ctx: Context) -> tuple[w.Widget, ...]:
    typed = str(ctx.get(DIGITS))
    padded = typed.rjust(6, "0")
    keys = tuple(w.Button(key, Put(DIGITS, _typed(typed, key)), look="round") for key in (*"123456789", "00", "0"))
    erase = w.Button("Erase", Put(DIGITS, typed[:-1]), look="round", icon="backspace")
    seconds = int(padded[:2]) * 3600 + int(padded[2:4]) * 60 + int(padded[4:])
    run = Seq((Put("clock.timer", Timer(seconds, running=True)), Put(DIGITS, "")))
    start = w.Button("Start timer", run, look="filled", icon="play", enabled=seconds > 0)
    shown = f"{padded[:2]}h {padded[2:4]}m {padded[4:]}s"
    return (
        w.Display(shown, 24, height=38),
        forms.keypad(ctx, (*keys, erase), 3, taken=178),
        w.Space(4),
        w.HBox((start,), pad=40),
    )


def _typed(typed: str, key: str) -> str:
    """Digits shift in from the right; there is room for six."""
    longer = (typed + key).lstrip("0")
    return longer if len(longer) <= 6 else typed


def _span(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes:02d}:{left:02d}"


# --- stopwatch -----------------------------------------------------------------------------------------------------


@APP.page("stopwatch")
def stopwatch(ctx: Context) -> Screen:
    """The stopwatch with its laps, the last on top."""
    path, now = "clock.stopwatch", ctx.state.clock.stopwatch
    later = now.seconds + PRESS_SECONDS
    if now.running:
        first = w.Button("Stop", Put(path, replace(now, running=False, seconds=later)), look="filled", icon="pause")
        lapped = replace(now, seconds=later, laps=(*now.laps, later))
        second = w.Button("Lap", Put(path, lapped), icon="plus")
    else:
        first = w.Button("Start", Put(f"{path}.running", True), look="filled", icon="play")
        second = w.Button("Reset", Put(path, Stopwatch()), icon="reset", enabled=now != Stopwatch())
    laps = tuple(w.Row(f"Lap {i + 1}", value=_span(s)) for i, s in reversed(tuple(enumerate(now.laps))))
    body = (
        w.Space(16),
        w.Display(_span(now.seconds), 36),
        w.Space(12),
        w.HBox((first, second), pad=24),
        w.Divider(),
        *laps,
    )
    return _screen(ctx, body)


# --- settings ------------------------------------------------------------------------------------------------------


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Clock settings."""
    sounds = ("Sunrise", "Bells", "Beacon", "Rooster")
    rows = (
        switch(ctx, "24-hour format", "system.use_24h"),
        choice(ctx, "Alarm sound", "sound.alarm_sound", {s: s for s in sounds}),
        slider(ctx, "Alarm volume", "sound.alarm"),
        switch(ctx, "Alarms in quiet mode", "sound.dnd_alarms", "Despite Do not disturb"),
        switch(ctx, "Notifications", "apps.clock.notifications"),
        link(ctx, "Date & time", "settings/date_time"),
    )
    return Screen("Clock settings", ctx.shuffled(rows))
