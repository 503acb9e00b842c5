"""The phone: recent calls, keypad, people, the running call, blocked numbers."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Effect, Open, Option, Put, Remove, Replace, Seq, Show
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Call
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, switch, text_field, value_row
from cuarl.sim.phone.state import DeviceState

APP = AppModule("phone", home="phone/recent")

KEYPAD = "123456789*0#"
DIRECTIONS = {"in": "Incoming", "out": "Outgoing", "missed": "Missed"}
TABS = (("Recent", "recent", "clock"), ("Keypad", "keypad", "apps"), ("People", "people", "people"))


def digits(number: str) -> str:
    """A number without what is only there to read it."""
    return "".join(ch for ch in number if ch in KEYPAD)


def written(state: DeviceState, typed: str) -> str:
    """A typed number as people write it: as in the address book, else with a dash after the third of seven digits."""
    plain = digits(typed)
    known = next((c.phone for c in state.contacts if plain and digits(c.phone) == plain), "")
    return known or (f"{plain[:3]}-{plain[3:]}" if len(plain) == 7 and plain.isdigit() else plain)


def name_of(state: DeviceState, number: str) -> str:
    """Who has a number; the number itself for strangers."""
    plain = digits(number)
    return next((c.name for c in state.contacts if plain and digits(c.phone) == plain), number)


def number_of(state: DeviceState, name: str) -> str:
    """The number of a person, or of someone who has none but the number."""
    return next((c.phone for c in state.contacts if c.name == name), written(state, name))


def call(state: DeviceState, number: str) -> Effect:
    """Call a number: it goes into the log, and the call's page opens."""
    log = (Call(number, "out"), *state.phone.calls)
    return Seq((Put("phone.in_call", number), Put("phone.calls", log), Open("phone/call")))


def _tabs(ctx: Context) -> tuple[w.Widget, ...]:
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"phone/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    return (w.HBox(tabs, height=32),)


def _settings(ctx: Context) -> tuple[w.IconButton, ...]:
    return (w.IconButton("Call settings", Open("phone/settings"), icon="gear"),)


def _ongoing(ctx: Context) -> tuple[w.Widget, ...]:
    number = ctx.state.phone.in_call
    if not number:
        return ()
    return (w.Card("Return to call", Open("phone/call"), text=name_of(ctx.state, number), icon="phone"),)


@APP.page("recent")
def recent(ctx: Context) -> Screen:
    """The call log, one line a number."""
    calls = ctx.state.phone.calls
    rows = tuple(_recent_row(ctx, number) for number in dict.fromkeys(c.number for c in calls))
    clear = confirmation("Clear call log?", "All calls will be forgotten.", Put("phone.calls", ()), "Clear")
    return Screen(
        "Phone",
        rows or forms.empty("No recent calls"),
        _settings(ctx),
        menu=(Option("Clear call log", Show(clear)),) if calls else (),
        top=_ongoing(ctx),
        bottom=_tabs(ctx),
    )


def _recent_row(ctx: Context, number: str) -> w.HBox:
    calls = [c for c in ctx.state.phone.calls if c.number == number]
    count = f" ({len(calls)})" if len(calls) > 1 else ""
    missed = calls[0].direction == "missed"
    return _caller_row(ctx, number, DIRECTIONS[calls[0].direction] + count, "person", bold=missed)


def _caller_row(ctx: Context, number: str, subtitle: str, icon: str, *, bold: bool = False) -> w.HBox:
    """A row that opens a number's page, with a button that calls it at the end."""
    name = name_of(ctx.state, number)
    row = w.Row(name, Open(f"phone/number:{number}"), subtitle=subtitle, icon=icon, bold=bold)
    return w.HBox((row, w.IconButton(f"Call {name}", call(ctx.state, number), icon="phone")), (5, 1), pad=0, gap=0)


@APP.page("keypad")
def keypad(ctx: Context) -> Screen:
    """The dialer."""
    typed = ctx.state.phone.dialed
    keys = tuple(w.Button(ch, Put("phone.dialed", typed + ch), look="round") for ch in KEYPAD)
    number = written(ctx.state, typed)
    dial = Seq((Put("phone.dialed", ""), call(ctx.state, number)))
    foot = (
        w.IconButton(
            "Add to contacts", forms.start("contacts/new", _blank(number)), icon="person", enabled=bool(typed)
        ),
        w.Button("Call", dial, look="filled", icon="phone", enabled=bool(typed)),
        w.IconButton("Delete digit", Put("phone.dialed", typed[:-1]), icon="backspace", enabled=bool(typed)),
    )
    who = name_of(ctx.state, number)
    shown: tuple[w.Widget, ...] = (
        w.Display(number, 20, height=30),
        w.Paragraph(who if who != number else "", align="centre"),
    )
    body = (*shown, forms.keypad(ctx, keys, 3, taken=194), w.HBox(foot, (1, 1.4, 1), height=34, pad=16))
    return Screen("Phone", body, _settings(ctx), top=_ongoing(ctx), bottom=_tabs(ctx))


def _blank(number: str) -> dict[str, str]:
    return {"contact.name": "", "contact.phone": number, "contact.email": ""}


@APP.page("people")
def people(ctx: Context) -> Screen:
    """Everyone with a number, the starred first."""
    with_number = [c for c in ctx.state.contacts if c.phone]
    known = sorted(with_number, key=lambda c: (not c.starred, c.name))
    rows = tuple(_caller_row(ctx, c.phone, c.phone, "star" if c.starred else "person") for c in known)
    body = rows or forms.empty("No contacts with a number")
    return Screen("Phone", body, _settings(ctx), top=_ongoing(ctx), bottom=_tabs(ctx))


@APP.page("number")
def number(ctx: Context) -> Screen:
    """What is known of a number and what can be done with it."""
    number, phone = ctx.arg, ctx.state.phone
    name = name_of(ctx.state, number)
    forget = Put("phone.calls", tuple(c for c in phone.calls if c.number != number))
    actions: tuple[w.Widget, ...] = (
        w.Button("Call", call(ctx.state, number), look="filled", icon="phone"),
        w.Button("Text", Open(f"messages/thread:{name}"), icon="message"),
    )
    rows: list[w.Widget] = [w.Space(4), w.Display(name, 18, height=30), w.HBox(actions, pad=12), w.Divider()]
    rows.append(value_row("Number", number, icon="phone"))
    if name == number:
        rows.append(w.Row("Add to contacts", forms.start("contacts/new", _blank(number)), icon="person"))
    rows.append(_block_row(ctx, number))
    rows.append(
        w.Row(
            "Delete from log", Show(confirmation("Delete calls?", name, forms.finish(forget), "Delete")), icon="trash"
        )
    )
    calls = [c for c in phone.calls if c.number == number]
    rows.append(w.Header(f"{len(calls)} in the log"))
    rows += [w.Row(DIRECTIONS[c.direction], icon="clock") for c in calls]
    return Screen("Call details", tuple(rows))


def _block_row(ctx: Context, number: str) -> w.Row:
    if number in ctx.state.phone.blocked:
        return w.Row("Unblock number", Remove("phone.blocked", number), icon="dnd")
    text = "You will not get calls or texts from it."
    return w.Row(
        "Block number",
        Show(confirmation(f"Block {number}?", text, Append("phone.blocked", number), "Block")),
        icon="dnd",
    )


@APP.page("call")
def running_call(ctx: Context) -> Screen:
    """The running call."""
    number = ctx.state.phone.in_call
    if not number:
        return Screen("Call ended", forms.empty("There is no call."))
    name = name_of(ctx.state, number)
    toggles = (("Mute", "mute"), ("Speaker", "volume"), ("Hold", "pause"))
    buttons = tuple(_call_toggle(ctx, label, icon) for label, icon in toggles)
    body = (
        w.Space(24),
        w.Display(name, 20),
        w.Paragraph(number if name != number else "Calling", align="centre"),
        w.Space(26),
        w.HBox(buttons, height=34, pad=10),
        w.Space(26),
        w.HBox(
            (
                w.Button(
                    "End call", forms.finish(Put("phone.in_call", ""), toast="Call ended"), look="filled", icon="close"
                ),
            ),
            pad=44,
        ),
    )
    return Screen("Calling", body)


def _call_toggle(ctx: Context, label: str, icon: str) -> w.Tab:
    path = f"ui.form.call.{label.lower()}"
    on = bool(ctx.get(path))
    return w.Tab(label, Put(path, not on), selected=on, icon=icon)


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Call settings."""
    blocked = ctx.state.phone.blocked
    rows = (
        switch(ctx, "Caller ID", "phone.caller_id", "Show who calls"),
        link(ctx, "Blocked numbers", "phone/blocked", f"{len(blocked)} blocked"),
        switch(ctx, "Dial pad tones", "sound.dial_pad_tones"),
        switch(ctx, "Vibrate for calls", "sound.vibrate_on_ring"),
        switch(ctx, "Power key ends call", "accessibility.power_ends_call"),
        switch(ctx, "Flash alerts", "accessibility.flash_alerts", "Blink when it rings"),
    )
    return Screen("Call settings", ctx.shuffled(rows))


@APP.page("blocked")
def blocked(ctx: Context) -> Screen:
    """Blocked numbers; a tap asks whether to unblock one."""
    rows = tuple(
        w.Row(
            name_of(ctx.state, n),
            Show(confirmation(f"Unblock {n}?", "It can call you again.", Remove("phone.blocked", n), "Unblock")),
            subtitle=n,
            icon="dnd",
        )
        for n in ctx.state.phone.blocked
    )
    add = w.Fab("Block a number", forms.start("phone/block", {"phone.block": ""}))
    return Screen("Blocked numbers", rows or forms.empty("No blocked numbers"), fab=add)


@APP.page("block")
def block(ctx: Context) -> Screen:
    """The form that blocks a number."""
    typed = written(ctx.state, str(ctx.form("phone.block")))
    effect = forms.finish(Append("phone.blocked", typed), toast="Number blocked")
    body = (
        text_field(ctx, "Phone number", "ui.form.phone.block"),
        w.HBox((w.Button("Block", effect, look="filled", enabled=bool(typed)),), pad=50),
    )
    return Screen("Block a number", body)
