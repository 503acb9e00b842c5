from cuarl.sim.phone import device
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.task import TaskInstance
from cuarl.types import Button, Click, Drag, LongPress, Swipe, TypeText

PAGES = [{"apps": ["notes", "maps", "music"]}, {"apps": ["clock"]}]


def phone(**preset):
    preset = {"launcher.pages": PAGES, **preset}
    return prepare(TaskInstance(task_id="t", goal="g", preset=preset), Look(), PROFILES["small"])


def centre(world, label):
    return next(e for e in elements(world) if e.label == label).centre


def tap(world, label):
    x, y = centre(world, label)
    return device.step(world, Click(x=x, y=y))


def hold(world, label):
    x, y = centre(world, label)
    return device.step(world, LongPress(x=x, y=y))


def layout(world):
    return [(page.apps, [(f.name, f.apps) for f in page.folders]) for page in world.state.launcher.pages]


def test_tap_on_an_icon_brings_its_app_to_the_front():
    assert tap(phone(), "Notes").ui.app == "notes"


def test_swipe_up_opens_the_drawer_with_every_installed_app():
    world = device.step(phone(), Swipe(x=96, y=250, x2=96, y2=100))
    shown = {e.label for e in elements(world) if e.role == "icon"}
    assert world.ui.overlay == "drawer" and {"Calculator", "Instagram", "Weather"} <= shown


def test_search_in_the_drawer_leaves_what_matches():
    world = device.step(phone(), Swipe(x=96, y=250, x2=96, y2=100))
    world = device.step(tap(world, "Search apps"), TypeText(text="cal"))
    assert {e.label for e in elements(world) if e.role == "icon"} == {"Calculator", "Calendar"}


def test_sideways_swipe_turns_the_page_and_stops_at_the_last():
    world = phone()
    for _ in range(3):
        world = device.step(world, Swipe(x=160, y=200, x2=30, y2=200))
    assert world.ui.home_page == 1 and "Clock" in {e.label for e in elements(world)}


def test_long_press_menu_moves_an_icon_to_the_next_page():
    world = tap(hold(phone(), "Maps"), "Move to next page")
    assert layout(world) == [(("notes", "music"), []), (("clock", "maps"), [])]


def test_icon_dropped_on_another_makes_a_folder_that_can_be_renamed():
    world = phone()
    start, end = centre(world, "Maps"), centre(world, "Music")
    world = device.step(world, Drag(path=(start, end)))
    assert layout(world)[0] == (("notes",), [("Folder", ("music", "maps"))])
    world = tap(tap(tap(world, "Folder"), "Folder"), "Name")
    world = world.put("ui.form.home.folder", "")
    world = tap(device.step(world, TypeText(text="Tools")), "OK")
    assert layout(world)[0] == (("notes",), [("Tools", ("music", "maps"))])


def test_uninstalled_app_is_gone_from_home_drawer_and_recents():
    world = tap(phone(), "Notes")
    world = device.step(world, Button(name="home"))
    world = tap(tap(hold(world, "Notes"), "Uninstall"), "OK")
    assert world.get("apps.notes.installed") is False and world.ui.recents == ()
    assert "Notes" not in {e.label for e in elements(world)}


def test_system_app_offers_no_uninstall():
    world = phone(**{"launcher.pages": [{"apps": ["clock", "music"]}]})
    assert "Uninstall" in {e.label for e in elements(hold(world, "Music"))}
    assert "Uninstall" not in {e.label for e in elements(hold(world, "Clock"))}


def test_notification_swiped_aside_is_gone_and_the_shade_stays_open():
    posted = [{"app": "mail", "title": "One"}, {"app": "clock", "title": "Two"}]
    world = phone(**{"notifications.items": posted, "ui.overlay": "shade"})
    x, y = centre(world, "One")
    world = device.step(world, Swipe(x=x, y=y, x2=x + 60, y2=y))
    assert [n.title for n in world.state.notifications.items] == ["Two"] and world.ui.overlay == "shade"


def test_card_swiped_out_of_recents_stops_its_app():
    world = device.step(tap(phone(), "Notes"), Button(name="recents"))
    x, y = centre(world, "Notes")
    world = device.step(world, Swipe(x=x, y=y, x2=x - 60, y2=y))
    assert world.ui.recents == () and world.get("apps.notes.running") is False
