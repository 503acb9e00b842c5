"""Notes: the list with its search, a note, the form that writes one, archived notes."""

from __future__ import annotations

from dataclasses import replace

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Open, Option, Put, Show, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.records import Note
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, text_field

APP = AppModule("notes", home="notes/list")

QUERY = "ui.form.notes.query"


@APP.page("list")
def note_list(ctx: Context) -> Screen:
    """Notes as cards, the pinned first."""
    return Screen(
        "Notes",
        _cards(ctx, archived=False),
        (w.IconButton("Archived notes", Open("notes/archived"), icon="archive"),),
        top=(text_field(ctx, "Search notes", QUERY, search=True),),
        fab=w.Fab("New note", forms.start("notes/new", _values(Note("")))),
    )


@APP.page("archived")
def archived(ctx: Context) -> Screen:
    """Notes that were put away."""
    return Screen("Archived notes", _cards(ctx, archived=True))


def _cards(ctx: Context, *, archived: bool) -> tuple[w.Widget, ...]:
    query = "" if archived else str(ctx.get(QUERY)).lower()
    found = [
        (note, i)
        for i, note in enumerate(ctx.state.notes)
        if note.archived == archived and query in f"{note.title} {note.text}".lower()
    ]
    cards = tuple(
        w.Card(_title(note), Open(f"notes/note:{i}"), text=note.text, icon="pin" if note.pinned else "")
        for note, i in sorted(found, key=lambda pair: not pair[0].pinned)
    )
    return cards or forms.empty("Nothing found" if query else "No notes here")


def _title(note: Note) -> str:
    return note.title or "Untitled"


def _values(note: Note) -> dict[str, str]:
    return {"note.title": note.title, "note.text": note.text}


@APP.page("note")
def note(ctx: Context) -> Screen:
    """One note."""
    found = forms.at(ctx.state.notes, ctx.arg)
    if found is None:
        return forms.gone("Note")
    path, notes = f"notes.{ctx.arg}", ctx.state.notes
    delete = forms.finish(Put("notes", forms.without(notes, int(ctx.arg))), toast="Note deleted")
    archive = forms.finish(Toggle(f"{path}.archived"), toast="Note restored" if found.archived else "Note archived")
    actions = (
        w.IconButton(
            "Unpin note" if found.pinned else "Pin note", Toggle(f"{path}.pinned"), icon="pin", active=found.pinned
        ),
        w.IconButton("Edit note", forms.start(f"notes/edit:{ctx.arg}", _values(found)), icon="edit"),
        w.IconButton("Delete note", Show(confirmation("Delete note?", _title(found), delete, "Delete")), icon="trash"),
    )
    copy = forms.finish(Put("notes", (replace(found, title=f"{_title(found)} copy"), *notes)), toast="Note copied")
    body = (
        w.Space(2),
        w.Paragraph(_title(found), 15, muted=False),
        w.Paragraph(found.text or "No text", 12, muted=not found.text),
        w.Space(6),
        w.Divider(),
        w.Row("Restore note" if found.archived else "Archive note", archive, icon="archive"),
    )
    return Screen("Note", body, actions, menu=(Option("Make a copy", copy),))


@APP.page("new")
def new(ctx: Context) -> Screen:
    """The form of a new note, which is put first."""
    return _form(ctx, "New note", _entered(ctx, Note("")), "notes")


@APP.page("edit")
def edit(ctx: Context) -> Screen:
    """The form that changes a note."""
    old = forms.at(ctx.state.notes, ctx.arg)
    if old is None:
        return forms.gone("Edit note")
    return _form(ctx, "Edit note", _entered(ctx, old), f"notes.{ctx.arg}")


def _entered(ctx: Context, old: Note) -> Note:
    return replace(old, title=str(ctx.form("note.title")).strip(), text=str(ctx.form("note.text")).strip())


def _form(ctx: Context, title: str, entered: Note, path: str) -> Screen:
    save: Effect = Put(path, (entered, *ctx.state.notes) if path == "notes" else entered)
    body = (
        text_field(ctx, "Title", "ui.form.note.title"),
        text_field(ctx, "Note", "ui.form.note.text", lines=5),
    )
    ready = bool(entered.title or entered.text)
    return Screen(title, body, (forms.save_button("Save note", forms.finish(save, toast="Note saved"), enabled=ready),))
