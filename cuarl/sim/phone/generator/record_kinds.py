"""Kinds of goals about what people keep: notes, contacts, conversations, mails, files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.sim.phone.apps.settings.apps import size_text
from cuarl.sim.phone.generator.device import FOLDERS, Item, number
from cuarl.sim.phone.generator.part import Part, Scope, answer, equals, kind
from cuarl.tasks.task import Check


def has(path: str, value: Mapping[str, Any]) -> Check:
    """The check that a list has an item."""
    return Check(path=path, op="has", value=value)


def lacks(path: str, value: Mapping[str, Any]) -> Check:
    """The check that a list has no such item."""
    return Check(path=path, op="lacks", value=value)


def any_of(scope: Scope, items: list[Item]) -> tuple[int, Item]:
    """The position of one item, and the item."""
    at = scope.draw.below(len(items))
    return at, items[at]


# --- notes ---------------------------------------------------------------------------------------------------------

NOTES = ("notes",)


@kind("note.add", "notes", "input", weight=2)
def add_note(scope: Scope) -> Part | None:
    """Write a note."""
    title, text = scope.device.words.title(scope.draw), scope.device.words.sentence(scope.draw)
    plan = (
        {"open": "notes/new"},
        {"type": title, "into": "Title"},
        {"type": text, "into": "Note"},
        {"tap": "Save note"},
    )
    words, check = {"title": title, "text": text}, has("notes", {"title": title, "text": text})
    return Part(title, words, (check,), 9, NOTES, uses=NOTES, plan=plan)


@kind("note.delete", "notes", "app")
def delete_note(scope: Scope) -> Part | None:
    """Delete a note."""
    at, note = any_of(scope, scope.device.notes)
    plan = ({"open": f"notes/note:{at}"}, {"tap": "Delete note"}, {"tap": "Delete"})
    title = note["title"]
    return Part(title, {"title": title}, (lacks("notes", {"title": title}),), 6, NOTES, uses=NOTES, plan=plan)


@kind("note.pin", "notes", "app")
def pin_note(scope: Scope) -> Part | None:
    """Pin a note, or unpin it."""
    at, note = any_of(scope, scope.device.notes)
    on = scope.draw.chance(0.5)
    note["pinned"] = not on
    pin = "pin" if on else "unpin"
    plan = ({"open": f"notes/note:{at}"}, {"tap": f"{pin.capitalize()} note"})
    words, check = {"title": note["title"], "pin": pin}, equals(f"notes.{at}.pinned", on)
    return Part(note["title"], words, (check,), 5, NOTES, uses=NOTES, plan=plan)


@kind("note.archive", "notes", "app")
def archive_note(scope: Scope) -> Part | None:
    """Put a note away."""
    at, note = any_of(scope, scope.device.notes)
    title = note["title"]
    return Part(title, {"title": title}, (equals(f"notes.{at}.archived", True),), 5, NOTES, uses=NOTES)


@kind("note.append", "notes", "input")
def append_note(scope: Scope) -> Part | None:
    """Write something at the end of a note."""
    at, note = any_of(scope, scope.device.notes)
    more = f", {scope.device.words.noun(scope.draw)}"
    text = note["text"] + more
    plan = ({"open": f"notes/edit:{at}"}, {"type": text, "into": "Note"}, {"tap": "Save note"})
    words = {"title": note["title"], "text": more}
    return Part(note["title"], words, (equals(f"notes.{at}.text", text),), 8, NOTES, uses=NOTES, plan=plan)


@kind("note.lookup", "notes", "app", last=True)
def read_note(scope: Scope) -> Part | None:
    """Say what a note says."""
    at, note = any_of(scope, scope.device.notes)
    plan = ({"open": f"notes/note:{at}"}, {"answer": note["text"]})
    words = {"title": note["title"]}
    return Part(note["title"], words, (answer(note["text"]),), 5, NOTES, uses=NOTES, plan=plan)


# --- contacts ------------------------------------------------------------------------------------------------------

CONTACTS = ("contacts",)


@kind("contact.add", "contacts", "input", weight=2)
def add_contact(scope: Scope) -> Part | None:
    """Add a person."""
    name, phone = scope.device.words.person(scope.draw), number(scope.draw)
    plan = (
        {"open": "contacts/new"},
        {"type": name, "into": "Name"},
        {"type": phone, "into": "Phone"},
        {"tap": "Save contact"},
    )
    check = has("contacts", {"name": name, "phone": phone})
    return Part(name, {"name": name, "phone": phone}, (check,), 9, CONTACTS, uses=CONTACTS, plan=plan)


@kind("contact.delete", "contacts", "app")
def delete_contact(scope: Scope) -> Part | None:
    """Delete a person."""
    at, person = any_of(scope, scope.device.contacts)
    name = person["name"]
    plan = ({"open": f"contacts/person:{at}"}, {"tap": "Delete contact"}, {"tap": "Delete"})
    return Part(name, {"name": name}, (lacks("contacts", {"name": name}),), 7, CONTACTS, uses=CONTACTS, plan=plan)


@kind("contact.star", "contacts", "app")
def star_contact(scope: Scope) -> Part | None:
    """Make a person a favourite, or no longer."""
    at, person = any_of(scope, scope.device.contacts)
    on = scope.draw.chance(0.5)
    person["starred"] = not on
    words = {"name": person["name"], "to": "to" if on else "from", "add": "add" if on else "remove"}
    return Part(person["name"], words, (equals(f"contacts.{at}.starred", on),), 6, CONTACTS, uses=CONTACTS)


@kind("contact.email", "contacts", "input")
def contact_email(scope: Scope) -> Part | None:
    """Write down a person's address."""
    at, person = any_of(scope, scope.device.contacts)
    email, person["email"] = f"{scope.device.words.made_up(scope.draw)}@mail.test", ""
    plan = ({"open": f"contacts/edit:{at}"}, {"type": email, "into": "Email"}, {"tap": "Save contact"})
    words, check = {"name": person["name"], "email": email}, equals(f"contacts.{at}.email", email)
    return Part(person["name"], words, (check,), 9, CONTACTS, uses=CONTACTS, plan=plan)


@kind("contact.lookup", "contacts", "app", last=True, weight=2)
def look_up_contact(scope: Scope) -> Part | None:
    """Say a person's number or address."""
    at, person = any_of(scope, scope.device.contacts)
    field, what = scope.draw.choose((("phone", "phone number"), ("email", "e-mail address")))
    plan = ({"open": f"contacts/person:{at}"}, {"answer": person[field]})
    words = {"name": person["name"], "what": what}
    return Part(person["name"], words, (answer(person[field]),), 5, CONTACTS, uses=CONTACTS, plan=plan)


@kind("contact.call", "contacts", "app", last=True)
def call_contact(scope: Scope) -> Part | None:
    """Call a person."""
    at, person = any_of(scope, scope.device.contacts)
    plan = ({"open": f"contacts/person:{at}"}, {"tap": "Call"})
    check = equals("phone.in_call", person["phone"])
    touches = ("contacts", "phone")
    words = {"name": person["name"]}
    return Part(person["name"], words, (check,), 5, touches, uses=CONTACTS, plan=plan, allow=("phone.calls",))


# --- conversations -------------------------------------------------------------------------------------------------

THREADS, TALK = ("threads", "contacts"), ("messages", "contacts")


@kind("message.send", "messages", "input", weight=2)
def send_message(scope: Scope) -> Part | None:
    """Send a message in a conversation that is there."""
    name, text = any_of(scope, scope.device.threads)[1]["to"], scope.device.words.sentence(scope.draw)
    plan = ({"open": f"messages/thread:{name}"}, {"type": text, "into": "Text message"}, {"tap": "Send"})
    check = has("messages", {"to": name, "messages": [{"text": text, "mine": True}], "draft": ""})
    return Part(name, {"name": name, "text": text}, (check,), 7, TALK, uses=THREADS, plan=plan)


@kind("thread.pin", "messages", "app")
def pin_thread(scope: Scope) -> Part | None:
    """Pin a conversation."""
    return _thread_option(scope, "Pin", "pinned")


@kind("thread.archive", "messages", "app")
def archive_thread(scope: Scope) -> Part | None:
    """Put a conversation away."""
    return _thread_option(scope, "Archive", "archived")


def _thread_option(scope: Scope, option: str, field: str) -> Part:
    at, thread = any_of(scope, scope.device.threads)
    name = thread["to"]
    plan = ({"open": "messages/threads"}, {"long_press": name, "role": "row"}, {"tap": option})
    return Part(name, {"name": name}, (equals(f"messages.{at}.{field}", True),), 5, TALK, uses=THREADS, plan=plan)


@kind("thread.delete", "messages", "app")
def delete_thread(scope: Scope) -> Part | None:
    """Delete a conversation."""
    name = any_of(scope, scope.device.threads)[1]["to"]
    plan = ({"open": f"messages/thread:{name}"}, {"tap": "Delete conversation"}, {"tap": "Delete"})
    return Part(name, {"name": name}, (lacks("messages", {"to": name}),), 6, TALK, uses=THREADS, plan=plan)


@kind("message.lookup", "messages", "app", last=True)
def read_message(scope: Scope) -> Part | None:
    """Say what someone wrote."""
    thread = any_of(scope, scope.device.threads)[1]
    name, text = thread["to"], thread["messages"][-1]["text"]
    plan = ({"open": f"messages/thread:{name}"}, {"answer": text})
    return Part(name, {"name": name}, (answer(text),), 5, TALK, uses=THREADS, plan=plan)


# --- mail ----------------------------------------------------------------------------------------------------------

MAILS = ("mails",)


@kind("mail.star", "mail", "app")
def star_mail(scope: Scope) -> Part | None:
    """Give a mail a star, or take it."""
    at, mail = any_of(scope, scope.device.mails)
    on = scope.draw.chance(0.5)
    mail["starred"] = not on
    words = {"subject": mail["subject"], "add": "add" if on else "remove", "to": "to" if on else "from"}
    return Part(mail["subject"], words, (equals(f"mails.{at}.starred", on),), 5, MAILS, uses=MAILS)


@kind("mail.archive", "mail", "app")
def archive_mail(scope: Scope) -> Part | None:
    """Put a mail away."""
    at, mail = any_of(scope, scope.device.mails)
    subject = mail["subject"]
    return Part(subject, {"subject": subject}, (equals(f"mails.{at}.archived", True),), 5, MAILS, uses=MAILS)


@kind("mail.unread", "mail", "app")
def unread_mail(scope: Scope) -> Part | None:
    """Mark a mail as unread."""
    at, mail = any_of(scope, scope.device.mails)
    subject = mail["subject"]
    plan = ({"open": "mail/inbox"}, {"long_press": subject, "role": "row"}, {"tap": "Mark as unread"})
    return Part(subject, {"subject": subject}, (equals(f"mails.{at}.read", False),), 5, MAILS, uses=MAILS, plan=plan)


@kind("mail.delete", "mail", "app")
def delete_mail(scope: Scope) -> Part | None:
    """Delete a mail."""
    at, mail = any_of(scope, scope.device.mails)
    subject = mail["subject"]
    plan = ({"open": f"mail/mail:{at}"}, {"tap": "Delete mail"}, {"tap": "Delete"})
    return Part(subject, {"subject": subject}, (lacks("mails", {"subject": subject}),), 6, MAILS, uses=MAILS, plan=plan)


@kind("mail.send", "mail", "input")
def send_mail(scope: Scope) -> Part | None:
    """Send a mail."""
    return _written(scope, "Send", draft=False)


@kind("mail.draft", "mail", "input")
def draft_mail(scope: Scope) -> Part | None:
    """Keep a mail as a draft."""
    return _written(scope, "Save draft", draft=True)


def _written(scope: Scope, button: str, *, draft: bool) -> Part:
    to = f"{scope.device.words.made_up(scope.draw)}@mail.test"
    subject, text = scope.device.words.title(scope.draw), scope.device.words.sentence(scope.draw)
    fields = (("To", to), ("Subject", subject), ("Message", text))
    plan = ({"open": "mail/new"}, *({"type": value, "into": label} for label, value in fields), {"tap": button})
    check = has("mails", {"to": to, "subject": subject, "text": text, "draft": draft})
    return Part(subject, {"to": to, "subject": subject, "text": text}, (check,), 13, MAILS, uses=MAILS, plan=plan)


@kind("mail.lookup", "mail", "app", last=True, weight=2)
def look_up_mail(scope: Scope) -> Part | None:
    """Say who wrote a mail."""
    mail = any_of(scope, scope.device.mails)[1]
    plan = ({"open": "mail/inbox"}, {"answer": mail["sender"]})
    return Part(
        mail["subject"], {"subject": mail["subject"]}, (answer(mail["sender"]),), 4, MAILS, uses=MAILS, plan=plan
    )


# --- files ---------------------------------------------------------------------------------------------------------

FILES = ("files",)


def _some_file(scope: Scope) -> tuple[Item, str, str]:
    """A file, its folder and its name."""
    file = scope.draw.choose([f for f in scope.device.files if not f.get("folder")])
    folder, _, name = file["path"].rpartition("/")
    return file, folder, name


@kind("file.delete", "files", "app")
def delete_file(scope: Scope) -> Part | None:
    """Delete a file."""
    file, folder, name = _some_file(scope)
    plan = ({"open": f"files/file:{file['path']}"}, {"tap": "Delete file"}, {"tap": "Delete"})
    words, check = {"name": name, "folder": folder}, lacks("files", {"path": file["path"]})
    return Part(name, words, (check,), 7, FILES, uses=FILES, plan=plan)


@kind("file.move", "files", "app")
def move_file(scope: Scope) -> Part | None:
    """Move a file into another folder."""
    file, folder, name = _some_file(scope)
    target = scope.draw.choose([f for f in FOLDERS if f != folder])
    plan = ({"open": f"files/move:{file['path']}"}, {"tap": target, "role": "row"})
    checks = (has("files", {"path": f"{target}/{name}"}), lacks("files", {"path": file["path"]}))
    return Part(name, {"name": name, "folder": folder, "target": target}, checks, 7, FILES, uses=FILES, plan=plan)


@kind("file.copy", "files", "app")
def copy_file(scope: Scope) -> Part | None:
    """Copy a file into another folder."""
    file, folder, name = _some_file(scope)
    target = scope.draw.choose([f for f in FOLDERS if f != folder])
    plan = ({"open": f"files/copy:{file['path']}"}, {"tap": target, "role": "row"})
    words, check = {"name": name, "folder": folder, "target": target}, has("files", {"path": f"{target}/{name}"})
    return Part(name, words, (check,), 7, FILES, uses=FILES, plan=plan)


@kind("file.rename", "files", "input")
def rename_file(scope: Scope) -> Part | None:
    """Give a file another name."""
    file, folder, name = _some_file(scope)
    new = f"{scope.device.words.noun(scope.draw)}.{name.rpartition('.')[2]}"
    if any(f["path"].endswith(f"/{new}") for f in scope.device.files):
        return None
    plan = (
        {"open": f"files/rename:{file['path']}"},
        {"type": new, "into": "Name"},
        {"tap": "Rename", "role": "button"},
    )
    checks = (has("files", {"path": f"{folder}/{new}"}), lacks("files", {"path": file["path"]}))
    words = {"name": name, "folder": folder, "new": new}
    return Part(name, words, checks, 8 + len(name), FILES, uses=FILES, plan=plan)


@kind("folder.new", "files", "input")
def new_folder(scope: Scope) -> Part | None:
    """Make a folder."""
    folder, name = scope.draw.choose(FOLDERS), scope.device.words.noun(scope.draw).capitalize()
    plan = ({"open": f"files/new:{folder}"}, {"type": name, "into": "Folder name"}, {"tap": "Create"})
    check = has("files", {"path": f"{folder}/{name}", "folder": True})
    return Part(name, {"name": name, "folder": folder}, (check,), 7, FILES, uses=FILES, plan=plan)


@kind("file.lookup", "files", "app", last=True)
def file_size(scope: Scope) -> Part | None:
    """Say how large a file is."""
    file, folder, name = _some_file(scope)
    told = size_text(file["size_kb"])
    plan = ({"open": f"files/file:{file['path']}"}, {"answer": told})
    return Part(name, {"name": name, "folder": folder}, (answer(told),), 5, FILES, uses=FILES, plan=plan)
