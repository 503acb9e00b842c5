import pytest

from cuarl.sim.phone.apps.camera import Viewfinder
from cuarl.sim.phone.records import Photo
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.view import view
from tests.unit.sim.phone.apps.finger import crawl, device, find, tap

PHOTOS = DeviceState().media.photos


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    assert {"camera/main", "camera/settings"} <= crawl(device("camera/main", seed, profile), depth=2)


def test_the_shutter_adds_a_photo_that_the_gallery_shows():
    world = tap(device("camera/main"), "Take photo")
    assert world.state.media.photos[:-1] == PHOTOS
    assert world.state.media.photos[-1].name == "IMG_0005"
    world = tap(world, "Last photo")
    assert world.ui.page == "photos/photo:5"


def test_every_photo_has_a_name_of_its_own():
    world = tap(device("camera/main", **{"media.photos": [{"name": "IMG_0002"}]}), "Take photo", "Take photo")
    assert [p.name for p in world.state.media.photos] == ["IMG_0002", "IMG_0001", "IMG_0003"]


def test_the_other_camera_takes_a_portrait():
    world = tap(device("camera/main"), "Switch camera", "Take photo")
    assert world.state.media.front_camera
    assert world.state.media.photos[-1].subject == "portrait"


def test_a_video_is_kept_when_it_is_stopped():
    world = tap(device("camera/main"), "Video", "Record video")
    assert world.state.media.recording
    assert world.state.media.photos == PHOTOS
    assert not find(world, "Night").enabled
    world = tap(world, "Stop recording")
    assert not world.state.media.recording
    assert world.state.media.photos[-1] == Photo("VID_0001", "sunset")


def test_modes_flash_and_settings_are_kept():
    world = tap(device("camera/main"), "Night", "Flash on", "Camera settings", "Grid lines", "Self-timer", "10 s")
    media = world.state.media
    assert (media.mode, media.flash, media.grid_lines, media.self_timer) == ("Night", True, True, "10 s")


@pytest.mark.parametrize(
    ("denied", "page"),
    [("privacy.camera_access", "settings/privacy"), ("apps.camera.camera", "settings/app_permissions:camera")],
)
def test_without_permission_no_photo_is_taken(denied, page):
    world = device("camera/main", **{denied: False})
    assert tap(world, "Take photo").state.media.photos == PHOTOS
    assert not any(isinstance(item.widget, Viewfinder) for item in view(world).items)
    assert tap(world, "Allow in Settings").ui.page == page
