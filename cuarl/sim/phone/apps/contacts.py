"""Contacts: the list with its search, a person's page, the form that adds or changes one."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, Open, Put, Show, Toggle
from cuarl.sim.phone import forms
from cuarl.sim.phone.apps.phone import call
from cuarl.sim.phone.records import Contact
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import confirmation, text_field, value_row

APP = AppModule("contacts", home="contacts/list")

QUERY = "ui.form.contacts.query"
FIELDS = (("Name", "name"), ("Phone", "phone"), ("Email", "email"))


@APP.page("list")
def contact_list(ctx: Context) -> Screen:
    """All people by name, the starred first; the search looks into names and numbers."""
    query = str(ctx.get(QUERY)).lower()
    found = [(c, i) for i, c in enumerate(ctx.state.contacts) if query in c.name.lower() or query in c.phone]
    starred = [(c, i) for c, i in found if c.starred]
    others = [(c, i) for c, i in found if not c.starred]
    body: list[w.Widget] = []
    for title, people in (("Favourites", starred), (f"All contacts ({len(others)})", others)):
        if people:
            body.append(w.Header(title))
            body += [_row(c, i) for c, i in sorted(people, key=lambda p: (p[0].name.lower(), p[1]))]
    nothing = forms.empty("Nobody found" if query else "No contacts yet")
    return Screen(
        "Contacts",
        tuple(body) or nothing,
        top=(text_field(ctx, "Search contacts", QUERY, search=True),),
        fab=w.Fab("New contact", forms.start("contacts/new", _values(Contact("")))),
    )


def _row(contact: Contact, index: int) -> w.Row:
    icon = "star" if contact.starred else "person"
    return w.Row(contact.name, Open(f"contacts/person:{index}"), subtitle=contact.phone, icon=icon)


@APP.page("person")
def person(ctx: Context) -> Screen:
    """One person."""
    contact = forms.at(ctx.state.contacts, ctx.arg)
    if contact is None:
        return forms.gone("Contact")
    path = f"contacts.{ctx.arg}"
    ring = call(ctx.state, contact.phone)
    reach = (
        w.Button("Call", ring, look="filled", icon="phone", enabled=bool(contact.phone)),
        w.Button("Text", Open(f"messages/thread:{contact.name}"), icon="message"),
    )
    body: list[w.Widget] = [w.Space(4), w.Display(contact.name, 20, height=36), w.HBox(reach, pad=12), w.Divider()]
    body.append(value_row("Phone", contact.phone or "None", icon="phone"))
    body.append(value_row("Email", contact.email or "None", icon="mail"))
    body.append(w.Row("Favourite", Toggle(f"{path}.starred"), icon="star", trailing="switch", checked=contact.starred))
    delete = forms.finish(Put("contacts", forms.without(ctx.state.contacts, int(ctx.arg))), toast="Contact deleted")
    ask = confirmation("Delete contact?", f"{contact.name} will be removed.", delete, "Delete")
    actions = (
        w.IconButton("Edit contact", forms.start(f"contacts/edit:{ctx.arg}", _values(contact)), icon="edit"),
        w.IconButton("Delete contact", Show(ask), icon="trash"),
    )
    return Screen("Contact", tuple(body), actions)


def _values(contact: Contact) -> dict[str, str]:
    return {f"contact.{name}": getattr(contact, name) for _, name in FIELDS}


@APP.page("new")
def new(ctx: Context) -> Screen:
    """The form of a new person."""
    contact = _entered(ctx, Contact(""))
    return _form(ctx, "New contact", contact, Put("contacts", (*ctx.state.contacts, contact)))


@APP.page("edit")
def edit(ctx: Context) -> Screen:
    """The form that changes a person."""
    old = forms.at(ctx.state.contacts, ctx.arg)
    if old is None:
        return forms.gone("Edit contact")
    contact = _entered(ctx, old)
    return _form(ctx, "Edit contact", contact, Put(f"contacts.{ctx.arg}", contact))


def _entered(ctx: Context, old: Contact) -> Contact:
    name, phone, email = (str(ctx.form(f"contact.{key}")).strip() for _, key in FIELDS)
    return Contact(name, phone, email, old.starred)


def _form(ctx: Context, title: str, contact: Contact, save: Effect) -> Screen:
    body = tuple(text_field(ctx, label, f"ui.form.contact.{name}") for label, name in FIELDS)
    saved = forms.finish(save, toast="Contact saved")
    return Screen(title, body, (forms.save_button("Save contact", saved, enabled=bool(contact.name)),))
