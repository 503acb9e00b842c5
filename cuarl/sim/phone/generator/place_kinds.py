"""Kinds of goals about places: apps, pages, records to open, searches, notifications, the home screen."""

from __future__ import annotations

from cuarl.sim.phone.generator.part import OPEN_APP, Part, Scope, equals, kind
from cuarl.tasks.task import Check

SEARCHES = {
    "mail": ("ui.form.mail.query", "the mail", "Search mail", ""),
    "notes": ("ui.form.notes.query", "the notes", "Search notes", ""),
    "contacts": ("ui.form.contacts.query", "the contacts", "Search contacts", ""),
    "messages": ("ui.form.messages.query", "the messages", "Search messages", ""),
    "music": ("ui.form.music.query", "the songs", "Search songs", ""),
    "files": ("ui.form.files.query", "the files", "Search files", "files/search"),
    "calendar": ("ui.form.calendar.query", "the calendar", "Search events", "calendar/search"),
    "store": ("ui.form.store.query", "the store", "Search apps", ""),
}
"""Path, words, label of the field, page of each app that can be searched."""


def in_front(scope: Scope, key: str) -> Check:
    """The check that an app is in front."""
    return equals("ui.current_app", scope.catalogue.packages[key])


def shown(page: str) -> Check:
    """The check that a page is shown."""
    return equals("ui.current_activity", page)


@kind("app.open", "", "navigation", last=True, weight=2)
def open_app(scope: Scope) -> Part | None:
    """Open an app."""
    key = scope.chosen(scope.apps)
    if key is None:
        return None
    return Part(f"{key}", {"app": scope.catalogue.apps[key]}, (in_front(scope, key),), OPEN_APP, (), app=key)


@kind("page.open", "", "navigation", last=True, weight=7)
def open_page(scope: Scope) -> Part | None:
    """Open a page."""
    if not scope.pages:
        return None
    page = scope.draw.choose(scope.pages)
    app = scope.catalogue.apps.get(page.app, "GBox Keyboard")
    words = {"page": page.title.removeprefix(f"{app} "), "app": app}
    preset = {"system.developer_options": True} if page.id == "settings/developer" else {}
    return Part(page.id, words, (shown(page.id),), OPEN_APP + page.steps, (), preset, app=page.app)


@kind("note.open", "notes", "navigation", last=True, weight=1.5)
def open_note(scope: Scope) -> Part | None:
    """Open a note."""
    at = scope.draw.below(len(scope.device.notes))
    title = scope.device.notes[at]["title"]
    return Part(title, {"title": title}, (shown(f"notes/note:{at}"),), 4, ("notes",), uses=("notes",))


@kind("contact.open", "contacts", "navigation", last=True, weight=1.5)
def open_contact(scope: Scope) -> Part | None:
    """Open a person's page."""
    at = scope.draw.below(len(scope.device.contacts))
    name = scope.device.contacts[at]["name"]
    return Part(name, {"name": name}, (shown(f"contacts/person:{at}"),), 4, ("contacts",), uses=("contacts",))


@kind("thread.open", "messages", "navigation", last=True, weight=1.5)
def open_thread(scope: Scope) -> Part | None:
    """Open a conversation."""
    name = scope.draw.choose(scope.device.threads)["to"]
    check = shown(f"messages/thread:{name}")
    return Part(name, {"name": name}, (check,), 4, ("messages",), uses=("threads", "contacts"))


@kind("mail.open", "mail", "navigation", last=True, weight=1.5)
def open_mail(scope: Scope) -> Part | None:
    """Open a mail."""
    at = scope.draw.below(len(scope.device.mails))
    subject = scope.device.mails[at]["subject"]
    return Part(subject, {"subject": subject}, (shown(f"mail/mail:{at}"),), 4, ("mails",), uses=("mails",))


@kind("file.open", "files", "navigation", last=True, weight=1.5)
def open_file(scope: Scope) -> Part | None:
    """Open a file's page."""
    path = scope.draw.choose([f["path"] for f in scope.device.files if not f.get("folder")])
    folder, _, name = path.rpartition("/")
    words = {"name": name, "folder": folder}
    return Part(name, words, (shown(f"files/file:{path}"),), 5, ("files",), uses=("files",))


@kind("event.open", "calendar", "navigation", last=True, weight=1.5)
def open_event(scope: Scope) -> Part | None:
    """Open a calendar entry."""
    at = scope.draw.below(len(scope.device.events))
    title = scope.device.events[at]["title"]
    check = shown(f"calendar/event:{at}")
    plan = ({"open": "calendar/agenda"}, {"tap": title})
    return Part(title, {"title": title}, (check,), 6, ("events",), uses=("events",), plan=plan)


@kind("search", "", "input", last=True, weight=4)
def search(scope: Scope) -> Part | None:
    """Search an app for something."""
    keys = [key for key in SEARCHES if key in scope.apps]
    if not keys:
        return None
    key, text = scope.draw.choose(keys), scope.device.words.noun(scope.draw)
    if scope.draw.chance(0.4):
        text = f"{scope.draw.choose(scope.device.words.adjectives)} {text}"
    path, what, field, page = SEARCHES[key]
    plan = ({"open": page or f"app/{key}"}, {"type": text, "into": field})
    checks = (Check(path=path, op="icontains", value=text), in_front(scope, key))
    words = {"what": what, "text": text, "app": scope.catalogue.apps[key]}
    return Part(text, words, checks, 5, (path,), {path: ""}, plan=plan, app=key)


# --- notifications and the home screen -----------------------------------------------------------------------------

SHADE = ("notifications.items",)


@kind("notification.open", "home", "system", last=True)
def open_notification(scope: Scope) -> Part | None:
    """Open what a notification tells of."""
    note = scope.draw.choose(scope.device.notifications)
    title = note["title"]
    checks = (in_front(scope, note["app"]), Check(path=SHADE[0], op="lacks", value={"title": title}))
    plan = ({"open": "layer/shade"}, {"tap": title})
    return Part(title, {"title": title}, checks, 3, SHADE, uses=("notifications",), plan=plan)


@kind("notification.dismiss", "home", "system")
def dismiss(scope: Scope) -> Part | None:
    """Swipe a notification away."""
    title = scope.draw.choose(scope.device.notifications)["title"]
    check = Check(path=SHADE[0], op="lacks", value={"title": title})
    plan = ({"open": "layer/shade"}, {"swipe": "right", "on": title})
    return Part(title, {"title": title}, (check,), 4, SHADE, uses=("notifications",), plan=plan)


@kind("home.remove", "home", "system")
def remove_icon(scope: Scope) -> Part | None:
    """Take an app off the home screen."""
    dock = ("phone", "messages", "chrome", "camera")
    key = scope.chosen(tuple(key for key in scope.apps if key not in dock))
    if key is None:
        return None
    others = scope.draw.some([k for k in scope.catalogue.apps if k not in (key, *dock)], scope.draw.between(3, 6))
    at = scope.draw.below(len(others) + 1)
    pages = [{"apps": [*others[:at], key, *others[at:]]}]
    name = scope.catalogue.apps[key]
    plan = ({"open": "home"}, {"long_press": name, "role": "icon"}, {"tap": "Remove from home"})
    return Part(
        f"home {key}",
        {"app": name},
        (equals("launcher.pages.0.apps", others),),
        3,
        ("launcher", "apps"),
        {"launcher.pages": pages},
        plan=plan,
    )
