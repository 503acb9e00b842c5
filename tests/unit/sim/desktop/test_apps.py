"""Settings, browser, calculator, and the panel."""

import pytest

from cuarl.sim.desktop.device import Rejected, step
from cuarl.sim.desktop.panel import clock_text
from cuarl.types import Click, Drag
from tests.unit.sim.desktop.mouse import click, desktop, find, labels, paths, press, write


def test_a_switch_flips_its_path_and_twice_with_a_double_click():
    world = desktop("settings/mouse")
    assert click(world, "Natural scrolling").state.input.natural_scrolling is True
    assert click(world, "Natural scrolling", count=2).state.input.natural_scrolling is False


def test_a_choice_is_made_in_a_menu_at_the_pointer():
    world = click(desktop("settings/power"), "Power mode")
    assert labels(world) == ["Performance", "Balanced", "Power saver"]
    assert find(world, "Balanced").checked and not find(world, "Performance").checked
    assert click(world, "Power saver").state.power.mode == "Power saver"
    assert press(world, "Escape").ui.menu is None


def test_a_slider_is_clicked_and_dragged():
    world = desktop("settings/display")
    box = find(world, "Brightness").box
    y = box[3] - 12
    low, high = step(world, Click(x=box[0] + 4, y=y)), step(world, Drag(path=((box[0] + 60, y), (box[2] - 2, y))))
    assert (low.state.display.brightness, high.state.display.brightness) == (0, 100)


def test_dark_style_and_accent_change_how_things_look():
    world = desktop("settings/appearance", appearance__dark_style=False)
    dark = click(world, "Dark style")
    assert dark.style.dark and not world.style.dark
    assert click(click(world, "Accent colour"), "Green").style.accent == 1


def test_airplane_mode_leaves_the_network_and_joins_again():
    world = click(desktop("settings/wifi"), "Airplane mode")
    assert world.state.network.connected == "" and "Office" not in labels(world)
    assert click(world, "Airplane mode").state.network.connected == "HomeNet"
    assert click(desktop("settings/wifi"), "Office").state.network.connected == "Office"


def test_a_user_is_added_once_and_removed_after_a_question():
    world = write(click(desktop("settings/users"), "Name of a new user"), "Zoe", submit=True)
    assert [u.name for u in world.state.users.people] == ["Sam Reed", "Kim Lowe", "Zoe"]
    assert not find(world, "Add User").enabled
    world = click(world, "Zoe", role="row")
    assert click(world, "Cancel").state == world.state
    assert [u.name for u in click(world, "Remove").state.users.people] == ["Sam Reed", "Kim Lowe"]


def test_a_name_is_applied():
    world = write(click(desktop("settings/bluetooth"), "New device name"), "studio")
    assert click(world, "Apply").state.bluetooth.name == "studio"


def test_the_browser_goes_to_typed_addresses_and_back():
    world = write(press(desktop("browser/news.test"), "ctrl+l"), "wiki.test", submit=True)
    assert world.focused.page == "wiki.test" and world.state.browser.history[0] == "wiki.test"
    back = click(world, "Back")
    assert back.focused.page == "news.test" and click(back, "Forward").focused.page == "wiki.test"
    assert click(world, "Lighthouse").focused.page == "wiki.test/lighthouse"
    assert write(press(world, "ctrl+l"), "apple cake", submit=True).focused.page == "findly.test?q=apple cake"


def test_pages_are_bookmarked_and_forgotten():
    world = click(desktop("browser/weather.test"), "Bookmark this page")
    assert world.state.browser.bookmarks == ("news.test", "wiki.test", "weather.test")
    assert click(world, "Remove bookmark").state.browser.bookmarks == ("news.test", "wiki.test")
    assert press(desktop("browser/weather.test"), "ctrl+d").state == world.state


def test_a_download_lands_under_a_free_name_and_is_announced():
    world = click(desktop("browser/example.com"), "example.txt")
    assert "Downloads/example.txt" in paths(world) and world.ui.notice == "Downloaded example.txt"
    world = click(click(world, "Dismiss"), "example.txt")
    assert "Downloads/example (copy).txt" in paths(world)


def test_the_calculator_takes_clicks_and_keys():
    world = click(desktop("calculator"), "7", "Multiply", "8", "Equals")
    assert world.state.calculator.result == "56"
    assert click(world, "Add", "4", "Equals").state.calculator.result == "60"
    assert write(desktop("calculator"), "(1+2)*3=").state.calculator.result == "9"
    assert press(desktop("calculator"), "9", "8", "BackSpace", "Return").state.calculator.result == "9"
    assert write(desktop("calculator"), "1/0=").state.calculator.result == "Error"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "00:40"),
        ({"datetime__use_24h": False}, "12:40 AM"),
        ({"datetime__show_seconds": True}, "00:40:00"),
        ({"datetime__show_weekday": True, "datetime__show_date": True}, "Mon 15 Jun 00:40"),
    ],
)
def test_the_clock_obeys_the_settings(settings, text):
    world = desktop(seed=0, **settings)
    look = world.look
    assert (look.minutes, look.day) == (40, 15)
    assert clock_text(world) == text


def test_the_tray_switches_and_leads_to_the_settings():
    world = click(desktop(), "Sound")
    assert click(world, "Mute").state.sound.muted is True
    assert click(world, "Sound settings").focused.page == "sound"


def test_nothing_takes_text_in_the_settings():
    with pytest.raises(Rejected):
        write(desktop("settings/sound"), "abc")
