import pytest

from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import Event
from cuarl.sim.phone.state import DeviceState
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

EVENTS = DeviceState().events


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("calendar/month", seed, profile), depth=4)
    assert {"calendar/agenda", "calendar/event:1", "calendar/new", "calendar/edit:1", "calendar/time"} <= pages


def test_a_day_shows_its_events():
    world = tap(device("calendar/month"), "12")
    assert [e.label for e in elements(world) if e.role == "row"] == ["Dentist"]


def test_a_new_event_is_on_the_chosen_day():
    world = tap(device("calendar/month"), "25", "New event")
    world = tap(type_into(world, "Title", "Concert"), "Time", "20", ":15", "Set time")
    world = tap(type_into(world, "Place", "Town hall"), "Save event")
    assert world.state.events == (*EVENTS, Event("Concert", 25, 1215, "Town hall"))
    assert world.ui.page == "calendar/month"


def test_an_event_needs_a_title_and_leaving_adds_nothing():
    world = tap(device("calendar/month"), "New event")
    assert not find(world, "Save event").enabled
    assert back(back(type_into(world, "Title", "Concert"))).state.events == EVENTS


def test_an_event_is_moved_to_another_day():
    world = tap(device("calendar/agenda"), "Dentist", "Edit event", "Day", "15", "Set day", "Save event")
    assert world.state.events[0] == Event("Dentist", 15, 570, "Main Street 4")
    assert world.ui.page == "calendar/event:0"


def test_an_event_is_deleted_only_after_the_question():
    world = tap(device("calendar/event:1"), "Delete event")
    assert tap(world, "Cancel").state == world.state
    assert tap(world, "Delete").state.events == (EVENTS[0], EVENTS[2])


def test_the_agenda_is_in_order_of_time():
    late = {"title": "Late", "day": 12, "minutes": 1300}
    early = {"title": "Early", "day": 12, "minutes": 100}
    world = device("calendar/agenda", events=[late, {"title": "Last", "day": 30}, early])
    assert [e.label for e in elements(world) if e.role == "row"] == ["Early", "Late", "Last"]


def test_the_search_looks_into_titles_and_places():
    world = type_into(tap(device("calendar/month"), "Search events"), "Search events", "main")
    assert [e.label for e in elements(world) if e.role == "row"] == ["Dentist"]
