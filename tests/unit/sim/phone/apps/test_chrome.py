import pytest

from cuarl.sim.device.sites import SITES, Link, resolve, search
from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import File, Photo
from cuarl.types import TypeText
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap

HOME = "about:home"


def visit(world, text):
    return step(tap(world, "Search or type URL", role="field"), TypeText(text=text, submit=True))


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


def test_every_page_shows_whatever_is_tapped():
    pages = crawl(device("chrome/main"))
    assert {f"chrome/{p}" for p in ("main", "tabs", "bookmarks", "history", "downloads", "settings")} <= pages


def test_every_site_shows_whatever_is_tapped():
    for url in SITES:
        crawl(device("chrome/main", **{"browser.url": url}), depth=1)


def test_every_link_leads_somewhere():
    assert not [b.url for s in SITES.values() for b in s.blocks if isinstance(b, Link) and b.url not in SITES]


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("example.com", "example.com"),
        ("https://www.Example.com/", "example.com"),
        (" gbox.ai/docs ", "gbox.ai/docs"),
        ("Android test", "findly.test?q=Android test"),
        ("cake", "findly.test?q=cake"),
        ("what is wiki.test", "findly.test?q=what is wiki.test"),
        ("about:home", HOME),
    ],
)
def test_what_is_typed_is_an_address_or_a_search(typed, url):
    assert resolve(typed, "Findly") == url


def test_the_search_puts_the_best_page_first():
    assert search("Android test")[0] == "wiki.test/android"
    assert search("zebra") == ()


def test_typing_an_address_opens_it_in_the_tab():
    world = visit(device("chrome/main"), "example.com")
    browser = world.state.browser
    assert (browser.url, browser.tabs, browser.history) == ("example.com", ("example.com",), ("example.com",))
    assert find(world, "Search or type URL").value == "example.com"
    assert "More information" in rows(world)


def test_results_of_a_search_lead_to_pages():
    world = tap(visit(device("chrome/main"), "apple cake"), "Apple cake")
    assert world.state.browser.url == "recipes.test/cake"


def test_the_field_is_empty_when_tapped_and_unchanged_when_left():
    world = tap(visit(device("chrome/main"), "example.com"), "Search or type URL", role="field")
    assert find(world, "Search or type URL").value == ""
    world = back(step(world, TypeText(text="gb")))
    assert world.state.browser.url == "example.com"
    assert find(world, "Search or type URL").value == "example.com"


def test_a_suggestion_opens_its_page():
    world = step(tap(device("chrome/main"), "Search or type URL", role="field"), TypeText(text="recip"))
    assert tap(world, "recipes.test/soup").state.browser.url == "recipes.test/soup"


def test_back_goes_through_the_pages_before_leaving_the_app():
    world = tap(visit(device("chrome/main"), "gbox.ai"), "Documentation")
    assert world.state.browser.url == "gbox.ai/docs"
    world = back(world)
    assert (world.state.browser.url, world.state.browser.tabs) == ("gbox.ai", ("gbox.ai",))
    world = back(world)
    assert (world.state.browser.url, world.ui.app) == (HOME, "chrome")
    assert back(world).ui.app == ""


def test_a_download_lands_in_the_folder_and_is_listed():
    world = tap(visit(device("chrome/main"), "gbox.ai"), "logo.svg")
    assert world.state.files[-1] == File("Download/logo.svg", size_kb=12)
    world = tap(world, "More options", "Downloads")
    assert "logo.svg" in rows(world)
    assert tap(world, "logo.svg").ui.page == "files/file:Download/logo.svg"


def test_a_second_download_of_the_same_file_is_asked_about_and_numbered():
    once = tap(device("chrome/main", **{"browser.url": "gbox.ai"}), "logo.svg", "logo.svg")
    assert tap(once, "Cancel").state == once.state
    assert tap(once, "Download").state.files[-1].path == "Download/logo (1).svg"


def test_a_download_makes_the_missing_folder():
    world = tap(device("chrome/main", **{"browser.url": "gbox.ai", "files": []}), "logo.svg")
    assert [f.path for f in world.state.files] == ["Download", "Download/logo.svg"]


def test_an_image_is_saved_to_the_gallery():
    world = tap(device("chrome/main", **{"browser.url": "pictures.test"}), "Dunes", "Save")
    assert world.state.media.photos[-1] == Photo("Dunes", "dunes", "download", album="Download")


def test_the_star_adds_and_removes_a_bookmark():
    before = visit(device("chrome/main"), "gbox.ai")
    world = tap(before, "Add bookmark")
    assert world.state.browser.bookmarks[-1] == "gbox.ai"
    assert tap(world, "Remove bookmark").state.browser.bookmarks == before.state.browser.bookmarks


def test_bookmarks_open_and_are_removed_on_their_page():
    world = device("chrome/bookmarks")
    opened = tap(world, "Example Domain")
    assert (opened.ui.page, opened.state.browser.url) == ("chrome/main", "example.com")
    assert tap(world, "Remove Example Domain").state.browser.bookmarks == ("news.test", "weather.test")


def test_tabs_are_opened_switched_and_closed():
    world = tap(visit(device("chrome/main"), "example.com"), "More options", "New tab")
    assert (world.state.browser.tabs, world.state.browser.url) == (("example.com", HOME), HOME)
    world = tap(visit(world, "gbox.ai"), "Tabs")
    first = tap(world, "1. Example Domain")
    assert (first.ui.page, first.state.browser.url) == ("chrome/main", "example.com")
    closed = tap(world, "Close tab 2")
    assert (closed.state.browser.tabs, closed.state.browser.url) == (("example.com",), "example.com")
    last = tap(closed, "Close tab 1")
    assert (last.state.browser.tabs, last.state.browser.url) == ((HOME,), HOME)


def test_history_is_cleared_only_after_the_question():
    world = tap(visit(visit(device("chrome/main"), "gbox.ai"), "example.com"), "More options", "History")
    assert rows(world) == ["example.com", "gbox.ai"]
    asked = tap(world, "Clear history")
    assert tap(asked, "Cancel").state == world.state
    assert tap(asked, "Clear").state.browser.history == ()


def test_without_a_network_pages_do_not_load():
    offline = {
        "browser.url": "gbox.ai",
        "network.wifi.enabled": False,
        "network.wifi.connected": "",
        "network.mobile_data": False,
    }
    assert rows(device("chrome/main", **offline)) == []
    assert "logo.svg" in rows(device("chrome/main", **{**offline, "network.mobile_data": True}))


def test_settings_choose_the_search_engine():
    world = tap(device("chrome/settings"), "Search engine", "Lantern")
    assert visit(back(world), "tea").state.browser.url == "lantern.test?q=tea"
