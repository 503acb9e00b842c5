import pytest

from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import Note
from cuarl.sim.phone.state import DeviceState
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

NOTES = DeviceState().notes


def cards(world):
    return [e.label for e in elements(world) if e.role == "card"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone"), (2, "small")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("notes/list", seed, profile))
    assert {"notes/list", "notes/archived", "notes/note:1", "notes/new", "notes/edit:1"} <= pages


def test_a_new_note_comes_first():
    world = tap(device("notes/list"), "New note")
    assert not find(world, "Save note").enabled
    world = tap(type_into(type_into(world, "Title", "Trip"), "Note", "Pack the tent"), "Save note")
    assert world.state.notes == (Note("Trip", "Pack the tent"), *NOTES)
    assert world.ui.page == "notes/list"


def test_leaving_the_form_keeps_nothing():
    world = back(back(type_into(device("notes/new"), "Title", "Trip")))
    assert world.state.notes == NOTES


def test_a_note_is_changed_in_place():
    world = type_into(tap(device("notes/list"), "Groceries", "Edit note"), "Note", ", salt")
    world = tap(world, "Save note")
    assert world.state.notes[0] == Note("Groceries", "Milk, bread, apples, salt")
    assert world.ui.page == "notes/note:0"


def test_a_note_is_deleted_only_after_the_question():
    world = tap(device("notes/note:1"), "Delete note")
    assert tap(world, "Cancel").state == world.state
    assert tap(world, "Delete").state.notes == (NOTES[0], NOTES[2])


def test_of_two_equal_notes_only_one_is_deleted():
    same = [{"title": "A", "text": "b"}] * 2
    assert tap(device("notes/note:1", notes=same), "Delete note", "Delete").state.notes == (Note("A", "b"),)


def test_a_pinned_note_is_shown_first():
    world = back(tap(device("notes/note:2"), "Pin note"))
    assert world.state.notes[2].pinned
    assert cards(world) == ["Wi-Fi guest", "Groceries", "Ideas"]


def test_an_archived_note_can_be_restored():
    world = tap(device("notes/note:0"), "Archive note")
    assert cards(world) == ["Ideas", "Wi-Fi guest"]
    world = tap(world, "Archived notes")
    assert cards(world) == ["Groceries"]
    assert tap(world, "Groceries", "Restore note").state.notes == NOTES


def test_a_copy_stands_before_the_notes():
    world = tap(device("notes/note:1"), "More options", "Make a copy")
    assert world.state.notes[0] == Note("Ideas copy", "Paint the shelf")
    assert world.state.notes[1:] == NOTES


def test_the_search_looks_into_titles_and_texts():
    assert cards(type_into(device("notes/list"), "Search notes", "DESK")) == ["Wi-Fi guest"]
    assert cards(type_into(device("notes/list"), "Search notes", "xyz")) == []
