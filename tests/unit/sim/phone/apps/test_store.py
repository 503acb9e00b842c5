import pytest

from cuarl.sim.phone.elements import elements
from tests.unit.sim.phone.apps.finger import crawl, device, find, tap, type_into


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("store/apps", seed, profile, **{"apps.music.installed": False}))
    assert {f"store/{p}" for p in ("apps", "updates", "installed", "app:music", "app:chrome", "settings")} <= pages


def test_an_app_that_is_missing_comes_first_and_can_be_installed():
    world = device("store/apps", **{"apps.weather.installed": False})
    assert rows(world)[0] == "Weather"
    world = tap(world, "Weather", "Install")
    assert world.app("weather").installed
    assert tap(world, "Open").ui.page == "weather/today"


def test_an_app_is_uninstalled_only_after_the_question():
    world = tap(device("store/app:instagram"), "Uninstall")
    assert tap(world, "Cancel").state == world.state
    world = tap(world, "Uninstall")
    assert not world.app("instagram").installed
    assert find(world, "Install").enabled


def test_a_part_of_the_system_stays():
    assert not find(device("store/app:clock"), "Uninstall").enabled


def test_one_app_or_all_are_updated():
    world = tap(device("store/apps"), "Updates")
    assert tap(world, "Update Facebook").state.store.pending == ("maps",)
    world = tap(world, "Update all")
    assert (world.state.store.pending, rows(world)) == ((), [])
    world = tap(device("store/app:maps"), "Update")
    assert world.state.store.pending == ("facebook",)
    assert find(world, "Open").enabled


def test_an_app_that_is_gone_has_no_update():
    assert rows(device("store/updates", **{"apps.maps.installed": False})) == ["Facebook"]


def test_the_search_looks_into_names_and_categories():
    assert rows(type_into(device("store/apps"), "Search apps", "social")) == ["Facebook", "Instagram"]
    assert rows(type_into(device("store/apps"), "Search apps", "zz")) == []
