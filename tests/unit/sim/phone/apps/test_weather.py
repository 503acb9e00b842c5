import pytest

from cuarl.sim.kit.widgets import Display
from cuarl.sim.phone.apps.weather import FORECASTS
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.view import view
from tests.unit.sim.phone.apps.finger import back, crawl, device, tap, type_into


def temperature(world):
    return next(item.widget.text for item in view(world).items if isinstance(item.widget, Display))


def cards(world):
    return [e.label for e in elements(world) if e.role == "card"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("weather/today", seed, profile))
    assert {"weather/today", "weather/cities", "weather/alert", "weather/settings"} <= pages


@pytest.mark.parametrize("city", [*FORECASTS, "Atlantis"])
def test_every_city_is_shown(city):
    assert any(e.label == "Choose city" for e in elements(device("weather/today", **{"weather.city": city})))


def test_another_city_is_chosen():
    world = tap(type_into(tap(device("weather/today"), "Choose city"), "Search cities", "tok"), "Tokyo")
    assert (world.state.weather.city, world.ui.page, temperature(world)) == ("Tokyo", "weather/today", "24 C")


def test_leaving_the_cities_keeps_the_city():
    assert back(tap(device("weather/today"), "Choose city")).state.weather.city == "Berlin"


def test_temperatures_are_shown_in_the_chosen_unit():
    world = tap(device("weather/settings"), "Units", "Fahrenheit")
    assert world.state.weather.fahrenheit
    assert temperature(back(world)) == "64 F"


def test_alerts_are_shown_while_they_are_on():
    assert cards(device("weather/today")) == ["Heavy rain tonight"]
    assert cards(device("weather/today", **{"weather.alerts": False})) == []
    assert cards(device("weather/today", **{"weather.city": "Tokyo"})) == []
