import pytest

from cuarl.sim.desktop.device import Rejected, step
from cuarl.sim.desktop.geometry import frame_of, work_area
from cuarl.types import Click, Drag, Move, Scroll
from tests.unit.sim.desktop.mouse import click, desktop, drag, find, labels, press


def apps(world):
    return [window.app for window in world.ui.windows if not window.minimised]


def test_an_app_starts_from_the_application_menu():
    world = click(desktop(), "Applications")
    assert set(labels(world)) == {"Files", "Terminal", "Text Editor", "Web Browser", "Calculator", "Settings"}
    assert apps(click(world, "Text Editor")) == ["editor"]


@pytest.mark.parametrize("seed", range(4))
def test_windows_open_inside_of_the_work_area(seed):
    world = desktop("files/", "settings/sound", "editor/", "browser/", "terminal", "calculator", seed=seed)
    area = work_area(world)
    for window in world.ui.windows:
        frame = frame_of(world, window)
        assert frame.x >= area.x and frame.y >= area.y and frame.right <= area.right and frame.bottom <= area.bottom


def test_a_click_brings_a_window_to_the_top_and_one_below_does_not_react():
    world = desktop("settings/sound", "calculator")
    key = world.ui.windows[0].key
    window = world.window(key)
    raised = step(world, Click(x=window.x + window.width - 20, y=window.y + 8))
    assert raised.focused.key == key and raised.state == world.state


def test_a_window_is_minimised_and_comes_back_from_the_panel():
    world = click(desktop("files/", "terminal"), "Minimise")
    assert apps(world) == ["files"] and len(world.ui.windows) == 2
    world = click(world, "sam@desk: ~", role="task")
    assert world.focused.app == "terminal"
    assert apps(click(world, "sam@desk: ~", role="task")) == ["files"]


def test_a_window_fills_the_screen_and_is_restored():
    world = desktop("files/")
    before = frame_of(world, world.focused)
    large = click(world, "Maximise")
    assert frame_of(large, large.focused) == work_area(large)
    assert frame_of(click(large, "Restore"), large.focused) == work_area(large)
    restored = click(large, "Restore")
    assert frame_of(restored, restored.focused) == before
    assert click(world, "Home", role="titlebar", count=2).focused.maximised


def test_a_window_is_dragged_by_its_title_and_stays_reachable():
    world = desktop("files/")
    before = world.focused
    moved = drag(world, "Home", 30, 20, role="titlebar").focused
    assert (moved.x - before.x, moved.y - before.y) == (30, 20)
    far = step(world, Drag(path=((before.x + 100, before.y + 8), (479, 319)))).focused
    assert far.x <= work_area(world).right - 40 and far.y < work_area(world).bottom


def test_a_window_is_resized_by_its_corner_but_not_to_nothing():
    window = desktop("files/").focused
    world = desktop("files/")
    corner = window.x + window.width - 3, window.y + window.height - 3
    smaller = step(world, Drag(path=(corner, (corner[0] - 60, corner[1] - 40)))).focused
    assert (smaller.width, smaller.height) == (window.width - 60, window.height - 40)
    tiny = step(world, Drag(path=(corner, (window.x, window.y)))).focused
    assert tiny.width >= 100 and tiny.height >= 100


@pytest.mark.parametrize(
    ("chords", "shown"),
    [
        (("alt+F4",), ["settings"]),
        (("alt+Tab",), ["terminal", "settings"]),
        (("super+d",), []),
        (("super+d", "super+d"), ["settings", "terminal"]),
        (("super+h",), ["settings"]),
        (("ctrl+alt+t",), ["settings", "terminal", "terminal"]),
        (("super+e",), ["settings", "terminal", "files"]),
    ],
)
def test_shortcuts_of_the_desktop(chords, shown):
    assert apps(press(desktop("settings/sound", "terminal"), *chords)) == shown


def test_the_middle_button_closes_a_window_from_the_panel():
    world = click(desktop("files/", "calculator"), "Calculator", role="task", button="middle")
    assert apps(world) == ["files"]


def test_the_menu_of_a_title_bar_closes_the_window():
    world = click(desktop("files/"), "Home", role="titlebar", button="right")
    assert labels(world) == ["Minimise", "Maximise", "Close"]
    assert apps(click(world, "Close")) == []


def test_a_click_beside_a_menu_only_closes_it():
    world = click(desktop("settings/sound"), "Applications")
    after = step(world, Click(x=300, y=150))
    assert after.ui.menu is None and after.state == world.state and after.ui.windows == world.ui.windows


def test_icons_on_the_desktop_open_with_a_double_click():
    world = desktop(seed=5)
    once = click(world, "Trash")
    assert once.ui.picked == "Trash" and not once.ui.windows
    assert click(world, "Trash", count=2).focused.page == "trash:"
    assert click(world, "welcome.txt", count=2).focused.page == "Desktop/welcome.txt"


def test_the_desktop_has_a_menu_of_its_own():
    world = step(desktop(seed=5), Click(x=240, y=150, button="right"))
    assert click(world, "Open Terminal").focused.app == "terminal"


def test_a_resting_pointer_names_a_button():
    world = desktop("files/")
    x, y = find(world, "New folder").centre
    rested = step(world, Move(x=x, y=y))
    assert rested.ui.tip == "New folder"
    assert press(rested, "F2").ui.tip == ""


def test_the_wheel_scrolls_what_is_under_the_pointer():
    world = desktop("settings/sound")
    x, y = find(world, "Balance").centre
    below = step(world, Scroll(x=x, y=y, direction="down", amount=300))
    assert "System sounds" in labels(below) and "System sounds" not in labels(world)
    assert step(below, Scroll(x=x, y=y, direction="up", amount=900)).focused.scroll.get("body") == 0


def test_a_scroll_bar_can_be_dragged():
    world = desktop("settings/sound")
    frame = frame_of(world, world.focused)
    x, top = round(frame.right - 5), round(frame.y + 40)
    assert "System sounds" in labels(step(world, Drag(path=((x, top), (x, round(frame.bottom) - 3)))))


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Click(x=480, y=5), "outside"),
        (Click(x=5, y=320), "outside"),
        (Move(x=999, y=1), "outside"),
        (Drag(path=((999, 1), (5, 5))), "outside"),
    ],
)
def test_what_lies_outside_is_rejected(action, reason):
    with pytest.raises(Rejected, match=reason):
        step(desktop("files/"), action)


@pytest.mark.parametrize(
    ("pages", "keys"), [((), "a"), (("settings/sound",), "ctrl+q"), (("files/",), "F7"), ((), "alt+F4")]
)
def test_keys_without_a_meaning_are_rejected(pages, keys):
    with pytest.raises(Rejected):
        press(desktop(*pages), keys)
