import pytest

from cuarl.sim.kit.widgets import Paragraph
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import Contact
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.view import view
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

PEOPLE = DeviceState().contacts


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone"), (2, "small")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("contacts/list", seed, profile))
    assert {"contacts/list", "contacts/person:0", "contacts/new", "contacts/edit:0"} <= pages


def test_a_new_contact_is_added_at_the_end():
    world = tap(device("contacts/list"), "New contact")
    assert not find(world, "Save contact").enabled
    world = type_into(type_into(type_into(world, "Name", "Hana Ito "), "Phone", "555-0177"), "Email", "hana@mail.test")
    world = tap(world, "Save contact")
    assert world.state.contacts == (*PEOPLE, Contact("Hana Ito", "555-0177", "hana@mail.test"))
    assert (world.ui.page, world.ui.focus) == ("contacts/list", "")


def test_leaving_the_form_adds_nothing_and_forgets_what_was_typed():
    world = type_into(tap(device("contacts/list"), "New contact"), "Name", "Nobody")
    world = back(back(world))
    assert world.ui.page == "contacts/list"
    assert world.state.contacts == PEOPLE
    assert find(tap(world, "New contact"), "Name").value == ""


def test_editing_starts_from_what_is_stored_and_keeps_the_star():
    world = tap(device("contacts/list"), "Dan Okafor", "Edit contact", "Clear phone")
    world = tap(type_into(world, "Phone", "555-0200"), "Save contact")
    assert world.state.contacts[3] == Contact("Dan Okafor", "555-0200", "dan@mail.test", starred=True)
    assert world.ui.page == "contacts/person:3"


def test_a_contact_is_deleted_only_after_the_question():
    world = tap(device("contacts/list"), "Ben Ortiz", "Delete contact")
    assert tap(world, "Cancel").state == world.state
    world = tap(world, "Delete")
    assert [c.name for c in world.state.contacts] == [c.name for c in PEOPLE if c.name != "Ben Ortiz"]
    assert world.ui.page == "contacts/list"


def test_a_page_of_a_deleted_contact_says_so():
    world = device("contacts/person:0", contacts=[])
    assert any(
        isinstance(item.widget, Paragraph) and item.widget.text == "It was deleted." for item in view(world).items
    )
    assert not any(e.label == "Edit contact" for e in elements(world))


@pytest.mark.parametrize(("text", "names"), [("an", ["Dan Okafor"]), ("0142", ["Eva Lind"]), ("zz", [])])
def test_the_search_looks_into_names_and_numbers(text, names):
    world = type_into(device("contacts/list"), "Search contacts", text)
    assert [e.label for e in elements(world) if e.role == "row"] == names
    assert len([e for e in elements(tap(world, "Clear search contacts")) if e.role == "row"]) > 1


def test_a_star_moves_a_person_to_the_favourites():
    world = tap(device("contacts/person:4"), "Favourite")
    assert world.state.contacts[4].starred
    assert [e.label for e in elements(back(world)) if e.role == "row"][:2] == ["Dan Okafor", "Eva Lind"]


def test_calling_and_texting_lead_to_the_other_apps():
    world = tap(device("contacts/person:4"), "Call")
    assert (world.ui.page, world.state.phone.in_call) == ("phone/call", "555-0142")
    assert tap(device("contacts/person:4"), "Text").ui.page == "messages/thread:Eva Lind"
    assert back(tap(device("contacts/person:4"), "Text")).ui.page == "messages/threads"
