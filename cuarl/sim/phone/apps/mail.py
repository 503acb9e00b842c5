"""Mail: the inbox and its other folders, a mail, the form that writes one."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Effect, Focus, Open, Option, Put, Replace, Seq, Show, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Mail
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, switch, text_field

APP = AppModule("mail", home="mail/inbox")

ME = "Me"
QUERY = "ui.form.mail.query"
TABS = (("Inbox", "inbox", "mail"), ("Starred", "starred", "star"), ("Sent", "sent", "send"),
    ("Drafts", "drafts", "edit"))  # fmt: skip
FIELDS = (("To", "to", 1), ("Subject", "subject", 1), ("Message", "text", 5))


def is_received(mail: Mail) -> bool:
    """Whether someone else wrote it."""
    return not mail.to and not mail.draft


def _folder(ctx: Context, title: str, shown: list[tuple[int, Mail]], nothing: str) -> Screen:
    query = str(ctx.get(QUERY)).strip().lower()
    found = [(i, m) for i, m in shown if query in f"{m.sender} {m.to} {m.subject} {m.text}".lower()]
    page = ctx.page.partition("/")[2]
    tabs = tuple(w.Tab(label, Replace(f"mail/{key}"), selected=key == page, icon=icon) for label, key, icon in TABS)
    everything = tuple(replace(m, read=True) for m in ctx.state.mails)
    return Screen(
        title,
        tuple(_row(ctx, i, m) for i, m in found) or forms.empty("Nothing found" if query else nothing),
        (w.IconButton("Mail settings", Open("mail/settings"), icon="gear"),),
        menu=(Option("Mark all as read", Put("mails", everything)), Option("Archived", Open("mail/archived"))),
        top=(text_field(ctx, "Search mail", QUERY, search=True),),
        bottom=(w.HBox(tabs, height=32, gap=0, pad=4),),
        fab=w.Fab("Compose", forms.start("mail/new", _values(Mail(ME, ""))), icon="edit"),
    )


def _select(ctx: Context, *, archived: bool = False) -> list[tuple[int, Mail]]:
    return [(i, m) for i, m in enumerate(ctx.state.mails) if m.archived == archived]


@APP.page("inbox")
def inbox(ctx: Context) -> Screen:
    """What was received."""
    found = [(i, m) for i, m in _select(ctx) if is_received(m)]
    unread = sum(not m.read for _, m in found)
    return _folder(ctx, f"Inbox ({unread})" if unread else "Inbox", found, "No mail")


@APP.page("starred")
def starred(ctx: Context) -> Screen:
    """What has a star."""
    return _folder(ctx, "Starred", [(i, m) for i, m in _select(ctx) if m.starred], "Nothing starred")


@APP.page("sent")
def sent(ctx: Context) -> Screen:
    """What was sent."""
    return _folder(ctx, "Sent", [(i, m) for i, m in _select(ctx) if m.to and not m.draft], "Nothing sent yet")


@APP.page("drafts")
def drafts(ctx: Context) -> Screen:
    """What is not sent yet."""
    return _folder(ctx, "Drafts", [(i, m) for i, m in _select(ctx) if m.draft], "No drafts")


@APP.page("archived")
def archived(ctx: Context) -> Screen:
    """What was put away."""
    rows = tuple(_row(ctx, i, m) for i, m in _select(ctx, archived=True))
    return Screen("Archived", rows or forms.empty("Nothing archived"))


def _row(ctx: Context, index: int, mail: Mail) -> w.Row:
    path, new = f"mails.{index}", is_received(mail) and not mail.read
    options = (
        Option("Mark as unread" if mail.read else "Mark as read", Put(f"{path}.read", not mail.read)),
        Option("Remove star" if mail.starred else "Add star", Put(f"{path}.starred", not mail.starred)),
        Option("Unarchive" if mail.archived else "Archive", Put(f"{path}.archived", not mail.archived)),
        Option("Delete", Show(_deletion(ctx, index))),
    )
    return w.Row(
        _subject(mail),
        _open(index, mail),
        Show(Dialog(_subject(mail), options=options)),
        subtitle=mail.sender if is_received(mail) else f"To {mail.to or 'nobody'}",
        icon="star" if mail.starred else "edit" if mail.draft else "person",
        bold=new,
        value="New" if new else "",
    )


def _subject(mail: Mail) -> str:
    return mail.subject or "No subject"


def _open(index: int, mail: Mail) -> Effect:
    """Opening a mail marks it as read; a draft opens in the form."""
    if mail.draft:
        return forms.start(f"mail/edit:{index}", _values(mail))
    show = Open(f"mail/mail:{index}")
    return show if mail.read or mail.to else Seq((Put(f"mails.{index}.read", True), show))


def _deletion(ctx: Context, index: int, *, leave: bool = False) -> Dialog:
    effect: Effect = Put("mails", forms.without(ctx.state.mails, index))
    if leave:
        effect = forms.finish(effect, toast="Mail deleted")
    return confirmation("Delete mail?", _subject(ctx.state.mails[index]), effect, "Delete")


@APP.page("mail")
def mail(ctx: Context) -> Screen:
    """One mail."""
    found = forms.at(ctx.state.mails, ctx.arg)
    if found is None:
        return forms.gone("Mail")
    path = f"mails.{ctx.arg}"
    star = w.IconButton(
        "Remove star" if found.starred else "Add star", Toggle(f"{path}.starred"), icon="star", active=found.starred
    )
    archive = w.IconButton(
        "Unarchive" if found.archived else "Archive",
        forms.finish(Toggle(f"{path}.archived"), toast="Moved to the inbox" if found.archived else "Archived"),
        icon="archive",
    )
    delete = w.IconButton("Delete mail", Show(_deletion(ctx, int(ctx.arg), leave=True)), icon="trash")
    body = (
        w.Paragraph(_subject(found), 15, muted=False),
        w.Row(found.sender, icon="person", subtitle=f"To {found.to or 'me'}"),
        w.Paragraph(found.text or "No text", 12, muted=not found.text),
        w.Space(8),
        _answers(ctx, found),
    )
    unread = Option("Mark as unread", forms.finish(Put(f"{path}.read", False)))
    return Screen("Mail", body, (star, archive, delete), menu=(unread,) if is_received(found) else ())


def _answers(ctx: Context, mail: Mail) -> w.HBox:
    to = _address(ctx, mail.sender) if is_received(mail) else mail.to
    reply = Mail(ME, _prefixed("Re: ", mail.subject), to=to)
    forward = Mail(ME, _prefixed("Fwd: ", mail.subject), mail.text)
    return w.HBox(
        (
            w.Button("Reply", forms.start("mail/new", _values(reply)), icon="back"),
            w.Button("Forward", forms.start("mail/new", _values(forward)), icon="send"),
        ),
        pad=12,
    )


def _prefixed(prefix: str, subject: str) -> str:
    return subject if subject.startswith(prefix) else f"{prefix}{subject}"


def _address(ctx: Context, name: str) -> str:
    """The address of a person in the contacts; what was typed for others."""
    return next((c.email for c in ctx.state.contacts if c.email and c.name.lower() == name.lower()), name)


# --- writing -------------------------------------------------------------------------------------------------------


def _values(mail: Mail) -> dict[str, str]:
    return {f"mail.{name}": getattr(mail, name) for _, name, _ in FIELDS}


@APP.page("new")
def new(ctx: Context) -> Screen:
    """The form of a new mail."""
    return _form(ctx, "Compose", "mails")


@APP.page("edit")
def edit(ctx: Context) -> Screen:
    """The form that goes on with a draft."""
    if forms.at(ctx.state.mails, ctx.arg) is None:
        return forms.gone("Edit draft")
    delete = w.IconButton("Delete draft", Show(_deletion(ctx, int(ctx.arg), leave=True)), icon="trash")
    return _form(ctx, "Edit draft", f"mails.{ctx.arg}", delete)


def _form(ctx: Context, title: str, path: str, *more: w.IconButton) -> Screen:
    to, subject, text = (str(ctx.form(f"mail.{name}")).strip() for _, name, _ in FIELDS)
    written = Mail(ME, subject, text, read=True, to=_address(ctx, to))

    def keep(mail: Mail, toast: str) -> Effect:
        return forms.finish(Put(path, (*ctx.state.mails, mail) if path == "mails" else mail), toast=toast)

    draft = keep(replace(written, draft=True), "Draft saved")
    actions = (
        *more,
        w.IconButton("Save draft", draft, icon="archive", enabled=bool(to or subject or text)),
        w.IconButton("Send", keep(written, "Mail sent"), icon="send", enabled=bool(to), active=True),
    )
    fields = [text_field(ctx, label, f"ui.form.mail.{name}", lines=lines) for label, name, lines in FIELDS]
    return Screen(title, (fields[0], *_suggested(ctx, to), *fields[1:]), actions)


def _suggested(ctx: Context, typed: str) -> tuple[w.Widget, ...]:
    """People whose name or address goes on as what is being typed."""
    if ctx.ui.focus != "ui.form.mail.to" or not typed or not ctx.get("apps.mail.contacts"):
        return ()
    known = [c for c in ctx.state.contacts if c.email and typed.lower() in f"{c.name} {c.email}".lower()]
    return tuple(
        w.Row(
            c.name,
            Seq((Put("ui.form.mail.to", c.email), Focus("ui.form.mail.subject"))),
            subtitle=c.email,
            icon="person",
        )
        for c in known
        if c.email != typed
    )


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Mail settings."""
    rows = (
        switch(ctx, "Notifications", "apps.mail.notifications"),
        switch(ctx, "Suggest people", "apps.mail.contacts", "From your contacts"),
        switch(ctx, "Sync in background", "apps.mail.background_data"),
        link(ctx, "Archived", "mail/archived", f"{len(_select(ctx, archived=True))} mails"),
    )
    return Screen("Mail settings", ctx.shuffled(rows))
