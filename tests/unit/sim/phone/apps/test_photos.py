import pytest

from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.state import DeviceState
from cuarl.types import Button, LongPress
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

PHOTOS = DeviceState().media.photos


def pictures(world):
    return [e.label for e in elements(world) if e.role == "image"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("photos/grid", seed, profile))
    expected = {
        "photos/grid",
        "photos/albums",
        "photos/favourites",
        "photos/photo:0",
        "photos/album:Camera",
        "photos/move:0",
    }
    assert expected <= pages


def test_the_newest_picture_is_first():
    assert pictures(device("photos/grid")) == [p.name for p in reversed(PHOTOS)]


def test_a_heart_puts_a_picture_among_the_favourites():
    world = tap(device("photos/grid"), "Favourites")
    assert pictures(world) == []
    world = back(tap(world, "Photos", "IMG_0003", "Add favourite"))
    assert world.state.media.photos[2].favourite
    assert pictures(tap(world, "Favourites")) == ["IMG_0003"]


def test_a_picture_is_deleted_only_after_the_question():
    world = tap(device("photos/photo:1"), "Delete photo")
    assert tap(world, "Cancel").state == world.state
    world = tap(world, "Delete")
    assert [p.name for p in world.state.media.photos] == ["IMG_0001", "IMG_0003", "IMG_0004", "Poster"]
    assert world.ui.page == "photos/grid"


def test_a_long_press_offers_to_delete():
    world = device("photos/grid")
    x, y = find(world, "Poster").centre
    world = tap(step(world, LongPress(x=x, y=y)), "Delete", "Delete")
    assert world.state.media.photos == PHOTOS[:-1]


def test_a_picture_moves_to_another_album_or_a_new_one():
    world = tap(device("photos/photo:0"), "Album", "Download")
    assert (world.state.media.photos[0].album, world.ui.page) == ("Download", "photos/photo:0")
    world = tap(type_into(tap(world, "Album"), "New album", "Trip"), "Create")
    assert world.state.media.photos[0].album == "Trip"
    assert pictures(tap(device("photos/albums", **{"media.photos": [{"name": "a", "album": "Trip"}]}), "Trip")) == ["a"]


def test_a_picture_becomes_the_wallpaper():
    world = tap(device("photos/photo:1"), "Set as wallpaper")
    assert (world.state.display.wallpaper, world.wallpaper) == ("Sunset", "sunset")


def test_a_screenshot_is_found_in_its_album():
    world = tap(step(device("photos/albums"), Button(name="power")), "Screenshot", "Screenshots", "Screenshot_1")
    assert world.state.media.photos[5].kind == "screenshot"
    assert world.ui.page == "photos/photo:5"
    assert tap(world, "Set as wallpaper").wallpaper == "screen"
