import pytest

from cuarl.sim.desktop.device import Rejected
from cuarl.sim.desktop.elements import elements
from cuarl.sim.desktop.records import File
from cuarl.sim.desktop.state import FILES
from tests.unit.sim.desktop.mouse import click, desktop, drag, find, labels, paths, press, write


def rows(world):
    """Names in the list of the window in front, from top to bottom."""
    listed = [e for e in elements(world) if e.role == "row" and e.box[0] > world.focused.x + 100]
    return [e.label for e in sorted(listed, key=lambda e: e.box[1])]


def test_folders_come_first_and_open_with_a_double_click():
    world = desktop("files/Documents")
    assert rows(world) == ["Archive", "budget.txt", "letter.txt", "minutes.txt"]
    picked = click(world, "Archive")
    assert picked.focused.page == "Documents" and picked.focused.get("picked") == ("Documents/Archive",)
    inside = click(world, "Archive", count=2)
    assert (inside.focused.page, rows(inside)) == ("Documents/Archive", ["old-plan.txt"])
    assert click(inside, "Back").focused.page == "Documents"
    assert click(inside, "Up").focused.page == "Documents"
    assert click(click(inside, "Back"), "Forward").focused.page == "Documents/Archive"


def test_a_text_opens_in_the_editor_and_another_file_says_what_it_is():
    assert click(desktop("files/Documents"), "letter.txt", count=2).focused.page == "Documents/letter.txt"
    world = click(desktop("files/Downloads"), "manual.pdf", count=2)
    assert world.focused.dialog.text == "PDF document, 820 kB"
    assert click(world, "Close", role="button").focused.app == "files"


def test_a_new_folder_is_named_and_selected():
    world = write(click(desktop("files/Music"), "New folder"), "Live", submit=True)
    assert paths(world)[-1] == "Music/Live" and world.focused.get("picked") == ("Music/Live",)
    assert world.focused.dialog is None


@pytest.mark.parametrize("name", ["", "  ", "a/b", ".."])
def test_an_impossible_name_makes_nothing(name):
    world = write(click(desktop("files/Music"), "New folder"), name)
    assert click(world, "Create").state.files == FILES


def test_a_taken_name_is_refused_aloud():
    world = write(click(desktop("files/Music"), "New folder"), "rain.mp3", submit=True)
    assert world.focused.dialog.text == "rain.mp3 exists already." and world.state.files == FILES


def test_renaming_starts_with_the_old_name_selected():
    world = click(click(desktop("files/Documents"), "letter.txt", button="right"), "Rename")
    assert world.focused.box("name").selected == "letter.txt"
    world = write(world, "thanks.txt", submit=True)
    assert "Documents/thanks.txt" in paths(world) and "Documents/letter.txt" not in paths(world)
    assert press(click(world, "budget.txt"), "F2").focused.box("name").selected == "budget.txt"


def test_a_folder_is_renamed_with_all_that_is_in_it():
    world = write(press(click(desktop("files/Documents"), "Archive"), "F2"), "Old", submit=True)
    assert {"Documents/Old", "Documents/Old/old-plan.txt"} <= set(paths(world))


def test_copy_and_paste_make_a_copy_and_a_second_one_beside_it():
    world = press(click(desktop("files/Documents"), "letter.txt"), "ctrl+c")
    world = press(click(world, "Downloads"), "ctrl+v")
    assert {"Documents/letter.txt", "Downloads/letter.txt"} <= set(paths(world))
    assert "Downloads/letter (copy).txt" in paths(press(world, "ctrl+v"))


def test_cut_and_paste_move():
    world = press(click(desktop("files/Documents"), "Archive"), "ctrl+x")
    world = press(click(world, "Music"), "ctrl+v")
    assert {"Music/Archive", "Music/Archive/old-plan.txt"} <= set(paths(world)) and "Documents/Archive" not in paths(
        world
    )
    assert press(world, "ctrl+v").state.files == world.state.files


def test_a_folder_is_not_pasted_into_itself():
    world = press(click(desktop("files/Documents"), "Archive"), "ctrl+x")
    assert press(click(world, "Archive", count=2), "ctrl+v").state.files == FILES


@pytest.mark.parametrize("to", ["Music", "Desktop"])
def test_a_file_is_dragged_onto_a_place(to):
    world = drag(desktop("files/"), "todo.txt", to=to, role="row", to_role="row")
    assert f"{to}/todo.txt" in paths(world) and "todo.txt" not in paths(world)


def test_a_file_dragged_onto_the_trash_is_deleted_and_restored():
    world = drag(desktop("files/Documents"), "letter.txt", to="Trash", to_role="row")
    assert "Documents/letter.txt" not in paths(world) and [f.path for f in world.state.trash] == [
        "Documents/letter.txt"
    ]
    world = click(click(world, "Trash", role="row"), "letter.txt", button="right")
    restored = click(world, "Restore").state
    assert sorted(restored.files, key=lambda f: f.path) == sorted(FILES, key=lambda f: f.path) and restored.trash == ()


def test_a_deleted_folder_is_one_line_of_the_trash_and_comes_back_whole():
    world = press(click(desktop("files/Documents"), "Archive"), "Delete")
    assert len(world.state.trash) == 2
    world = click(world, "Trash", role="row")
    assert rows(world) == ["Archive"]
    restored = click(click(world, "Archive", button="right"), "Restore")
    assert set(restored.state.files) == set(FILES)


def test_a_restored_file_brings_back_the_folder_that_it_was_in():
    world = desktop("files/trash:", trash=[{"path": "Lost/a.txt", "text": "a"}], files=[{"path": "b.txt"}])
    world = click(click(world, "a.txt", button="right"), "Restore")
    assert set(world.state.files) == {File("b.txt"), File("Lost", folder=True), File("Lost/a.txt", text="a")}


def test_the_trash_is_emptied_only_after_a_question():
    world = click(desktop("files/trash:", trash=[{"path": "a.txt"}]), "Empty")
    assert click(world, "Cancel").state.trash and not click(world, "Empty Trash").state.trash


def test_deleting_for_good_asks_and_takes_only_what_is_selected():
    world = press(click(desktop("files/Documents"), "letter.txt"), "shift+Delete")
    assert world.state.files == FILES
    gone = click(world, "Delete", role="button").state
    assert set(FILES) - set(gone.files) == {f for f in FILES if f.path == "Documents/letter.txt"} and gone.trash == ()


def test_everything_is_selected_and_the_status_line_tells():
    world = press(desktop("files/Documents"), "ctrl+a")
    assert len(world.focused.get("picked")) == 4
    assert press(world, "Delete").state.trash and rows(press(world, "Delete")) == []


def test_arrows_select_and_enter_opens():
    world = press(desktop("files/Documents"), "Down", "Down")
    assert world.focused.get("picked") == ("Documents/budget.txt",)
    assert press(world, "Return").focused.page == "Documents/budget.txt"
    assert press(world, "Up", "Return").focused.page == "Documents/Archive"


def test_properties_tell_kind_size_and_place():
    world = click(click(desktop("files/Documents"), "budget.txt", button="right"), "Properties")
    assert world.focused.dialog.text == "Text, 37 bytes, in ~/Documents"


def test_letters_mean_nothing_in_a_list_of_files():
    with pytest.raises(Rejected):
        write(desktop("files/"), "abc")


def test_a_box_keeps_the_rest_of_its_window_from_reacting():
    world = click(desktop("files/Music"), "New folder")
    assert "rain.mp3" not in labels(world) and find(world, "Cancel").enabled
