"""Messages: conversations, drafts, a new message, archived conversations."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Append, Dialog, Effect, Focus, Open, Option, Put, Replace, Seq, Show, Toast
from cuarl.sim.phone import forms
from cuarl.sim.phone.apps.phone import call, digits, name_of, number_of
from cuarl.sim.phone.records import Message, Thread
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, link, switch, text_field

APP = AppModule("messages", home="messages/threads")

TO, BODY, QUERY = "ui.form.message.to", "ui.form.message.body", "ui.form.messages.query"


@APP.page("threads")
def threads(ctx: Context) -> Screen:
    """Conversations, the pinned first."""
    query = str(ctx.get(QUERY)).lower()
    shown = [(t, i) for i, t in enumerate(ctx.state.messages) if not t.archived and query in _searched(t)]
    rows = tuple(_row(ctx, t, i) for t, i in sorted(shown, key=lambda pair: not pair[0].pinned))
    return Screen(
        "Messages",
        rows or forms.empty("Nothing found" if query else "No conversations"),
        (w.IconButton("Message settings", Open("messages/settings"), icon="gear"),),
        top=(text_field(ctx, "Search messages", QUERY, search=True),),
        fab=w.Fab("New message", forms.start("messages/new", {"message.to": "", "message.body": ""}), icon="message"),
    )


def _searched(thread: Thread) -> str:
    return " ".join((thread.to, *(m.text for m in thread.messages))).lower()


def _row(ctx: Context, thread: Thread, index: int) -> w.Row:
    last = thread.messages[-1] if thread.messages else None
    text = f"{'You: ' if last.mine else ''}{last.text}" if last else ""
    return w.Row(
        thread.to,
        _open(thread, index),
        Show(Dialog(thread.to, options=_options(ctx, thread, index))),
        subtitle=f"Draft: {thread.draft}" if thread.draft else text,
        icon="pin" if thread.pinned else "person",
        bold=thread.unread,
        value="New" if thread.unread else "",
    )


def _open(thread: Thread, index: int) -> Effect:
    """Opening a conversation marks it as read."""
    show = Open(f"messages/thread:{thread.to}")
    return Seq((Put(f"messages.{index}.unread", False), show)) if thread.unread else show


def _options(ctx: Context, thread: Thread, index: int) -> tuple[Option, ...]:
    path = f"messages.{index}"

    def turn(on: str, off: str, name: str) -> Option:
        now = bool(getattr(thread, name))
        return Option(off if now else on, Put(f"{path}.{name}", not now))

    return (
        turn("Pin", "Unpin", "pinned"),
        turn("Archive", "Unarchive", "archived"),
        turn("Mark as unread", "Mark as read", "unread"),
        Option("Delete", Show(_deletion(ctx, thread, index))),
    )


def _deletion(ctx: Context, thread: Thread, index: int, *, leave: bool = False) -> Dialog:
    effect: Effect = Put("messages", forms.without(ctx.state.messages, index))
    if leave:
        effect = forms.finish(effect)
    return confirmation("Delete conversation?", f"All messages with {thread.to} will be lost.", effect, "Delete")


@APP.page("thread")
def thread(ctx: Context) -> Screen:
    """A conversation; what is typed is its draft until it is sent."""
    index = next((i for i, t in enumerate(ctx.state.messages) if t.to == ctx.arg), -1)
    if index < 0:
        return _first_message(ctx)
    found = ctx.state.messages[index]
    draft = f"messages.{index}.draft"
    sent = replace(found, messages=(*found.messages, Message(found.draft, mine=True)), draft="")
    send = Put(f"messages.{index}", sent)
    number = number_of(ctx.state, found.to)
    delete = w.IconButton("Delete conversation", Show(_deletion(ctx, found, index, leave=True)), icon="trash")
    reach = (Option("Call", call(ctx.state, number)),) if number else ()
    block = Option("Block number", Append("phone.blocked", number))
    return Screen(
        found.to,
        tuple(w.Bubble(m.text, mine=m.mine) for m in found.messages),
        (delete,),
        menu=(*reach, *_options(ctx, found, index)[:3], *((block,) if number else ())),
        bottom=(_composer(ctx, draft, send),),
        footing=True,
    )


def _composer(ctx: Context, path: str, send: Effect, *, ready: bool = True) -> w.HBox:
    written = bool(str(ctx.get(path)).strip()) and ready
    field = text_field(ctx, "Text message", path, submit=send if written else None)
    return w.HBox((field, w.IconButton("Send", send, icon="send", enabled=written, active=True)), (6, 1), pad=2, gap=0)


def _first_message(ctx: Context) -> Screen:
    """The conversation with someone to whom nothing was sent yet."""
    path = f"ui.form.message.first.{ctx.arg}"
    started = Thread(ctx.arg, (Message(str(ctx.get(path)), mine=True),))
    send = Seq((Put("messages", (started, *ctx.state.messages)), Put(path, "")))
    return Screen(ctx.arg, forms.empty("No messages yet"), bottom=(_composer(ctx, path, send),))


@APP.page("new")
def new(ctx: Context) -> Screen:
    """A new message: to whom, with suggestions, and its text."""
    typed, text = str(ctx.get(TO)).strip(), str(ctx.get(BODY))
    to = _recipient(ctx, typed)
    send = _kept(ctx, to, Message(text, mine=True), "")
    show = Replace(f"messages/thread:{to}")
    draft = forms.finish(_kept(ctx, to, None, text), toast="Draft saved")
    known = [c for c in ctx.state.contacts if c.phone and typed.lower() in f"{c.name.lower()} {c.phone}"]
    rows = tuple(w.Row(c.name, Seq((Put(TO, c.name), Focus(BODY))), subtitle=c.phone, icon="person") for c in known)
    return Screen(
        "New message",
        () if typed == to and any(c.name == to for c in known) else rows,
        (w.IconButton("Save draft", draft, icon="archive", enabled=bool(to and text.strip())),),
        top=(text_field(ctx, "To", TO, submit=Focus(BODY)),),
        bottom=(_composer(ctx, BODY, Seq((Focus(""), send, show, Toast("Sent"))), ready=bool(to)),),
    )


def _recipient(ctx: Context, typed: str) -> str:
    """The person or number that was meant by what was typed; empty if it is neither."""
    person = next((c.name for c in ctx.state.contacts if typed and c.name.lower() == typed.lower()), "")
    number = number_of(ctx.state, typed) if len(digits(typed)) >= 3 else ""
    return person or (name_of(ctx.state, number) if number else "")


def _kept(ctx: Context, to: str, message: Message | None, draft: str) -> Put:
    """The conversation with ``to`` with one more message, or with a draft; a new one is first in the list."""
    index = next((i for i, t in enumerate(ctx.state.messages) if t.to == to), -1)
    old = ctx.state.messages[index] if index >= 0 else Thread(to)
    more = (message,) if message else ()
    changed = replace(old, messages=(*old.messages, *more), draft=draft or old.draft)
    if index >= 0:
        return Put(f"messages.{index}", changed)
    return Put("messages", (changed, *ctx.state.messages))


@APP.page("archived")
def archived(ctx: Context) -> Screen:
    """Archived conversations."""
    rows = tuple(_row(ctx, t, i) for i, t in enumerate(ctx.state.messages) if t.archived)
    return Screen("Archived", rows or forms.empty("Nothing archived"))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Message settings."""
    count = sum(t.archived for t in ctx.state.messages)
    rows = (
        switch(ctx, "Notifications", "apps.messages.notifications"),
        switch(ctx, "Bubbles", "notifications.bubbles", "Float over other apps"),
        switch(ctx, "Suggest words", "system.suggestions"),
        switch(ctx, "Spell checker", "system.spell_checker"),
        link(ctx, "Archived", "messages/archived", f"{count} conversations"),
        link(ctx, "Blocked numbers", "phone/blocked", f"{len(ctx.state.phone.blocked)} blocked"),
    )
    return Screen("Message settings", ctx.shuffled(rows))
