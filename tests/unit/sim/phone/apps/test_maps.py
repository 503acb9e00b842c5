import pytest

from cuarl.sim.kit.widgets import Display, Paragraph
from cuarl.sim.phone.apps.maps import PLACES, distance_km
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.view import view
from tests.unit.sim.phone.apps.finger import back, crawl, device, tap, type_into


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


def texts(world):
    return [item.widget.text for item in view(world).items if isinstance(item.widget, Display | Paragraph)]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("maps/main", seed, profile))
    assert {"maps/main", "maps/saved", "maps/settings", "maps/place:Blue Cup", "maps/route:Blue Cup"} <= pages


@pytest.mark.parametrize("name", PLACES)
def test_every_place_shows_whatever_is_tapped(name):
    crawl(device(f"maps/place:{name}"), depth=1)


def test_near_places_come_first():
    shown = rows(device("maps/main", profile="tall"))
    assert len(shown) > 3
    assert [distance_km(PLACES[n]) for n in shown] == sorted(distance_km(PLACES[n]) for n in shown)


def test_search_and_kinds_narrow_the_list():
    assert rows(type_into(device("maps/main"), "Search places", "mill")) == ["Corner Bakery"]
    world = tap(device("maps/main"), "Food")
    assert rows(world) == ["Green Bowl", "Pasta House"]
    assert len(rows(tap(world, "Food"))) > 2


def test_a_place_is_saved_and_removed():
    world = tap(device("maps/place:Art Museum"), "Save place")
    assert world.state.maps.saved == ("Old Harbour", "Art Museum")
    assert tap(world, "Remove from saved").state.maps.saved == ("Old Harbour",)
    assert rows(tap(back(world), "Saved places")) == ["Old Harbour", "Art Museum"]


def test_the_way_takes_longer_on_foot():
    world = tap(device("maps/place:Art Museum"), "Directions")
    assert "10 min" in texts(world)
    assert "46 min" in texts(tap(world, "Walk"))


def test_distances_are_shown_in_the_chosen_unit():
    world = tap(device("maps/settings"), "Distances", "Miles")
    assert world.state.maps.miles
    assert "2.4 mi to Art Museum" in texts(device("maps/route:Art Museum", **{"maps.miles": True}))


def test_without_location_no_distance_is_known():
    off = {"location.enabled": False}
    assert not any(" min" in text for text in texts(device("maps/route:Blue Cup", **off)))
    assert tap(device("maps/main", **off), "Location is off").ui.page == "settings/location"
    denied = device("maps/main", **{"apps.maps.location": False})
    assert tap(denied, "Location is off").ui.page == "settings/app_permissions:maps"


def test_a_place_is_called():
    assert tap(device("maps/place:Pasta House"), "Call").state.phone.in_call == "555-0204"
