import pytest

from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.records import File
from cuarl.sim.phone.state import DeviceState
from cuarl.types import LongPress
from tests.unit.sim.phone.apps.finger import back, crawl, device, find, tap, type_into

FILES = DeviceState().files


def paths(world):
    return [f.path for f in world.state.files]


def rows(world):
    return [e.label for e in elements(world) if e.role == "row"]


@pytest.mark.parametrize(("seed", "profile"), [(0, "small"), (1, "phone")])
def test_every_page_shows_whatever_is_tapped(seed, profile):
    pages = crawl(device("files/folder:Download", seed, profile))
    assert {"files/folder:Download", "files/file:Download/report.pdf", "files/search", "files/new:Download"} <= pages


def test_folders_come_first_and_the_rest_can_be_sorted_by_size():
    many = [{"path": "b.txt", "size_kb": 1}, {"path": "a.txt", "size_kb": 9}, {"path": "z", "folder": True}]
    world = device("files/folder", files=[*many, {"path": "c.txt", "size_kb": 5}])
    assert rows(world)[:4] == ["z", "a.txt", "b.txt", "c.txt"]
    assert rows(tap(world, "More options", "Sort by size"))[:4] == ["z", "a.txt", "c.txt", "b.txt"]


def test_a_folder_is_made_where_the_user_is():
    world = tap(device("files/folder"), "Download", "New folder")
    assert not find(world, "Create").enabled
    world = tap(type_into(world, "Folder name", "abc"), "Create")
    assert world.state.files == (*FILES, File("Download/abc", folder=True))
    assert (world.ui.page, world.ui.focus) == ("files/folder:Download", "")
    assert rows(world)[0] == "abc"


@pytest.mark.parametrize("name", ["report.pdf", "a/b", "  "])
def test_a_taken_or_impossible_name_can_not_be_given(name):
    world = type_into(tap(device("files/folder:Download"), "New folder"), "Folder name", name)
    assert not find(world, "Create").enabled
    assert back(back(world)).state.files == FILES


def test_renaming_a_file_shows_it_under_its_new_name():
    world = tap(device("files/folder:Download"), "report.pdf", "Rename file", "Clear name")
    world = tap(type_into(world, "Name", "final.pdf"), "Rename")
    assert world.state.files[1] == File("Download/final.pdf", size_kb=820)
    assert world.ui.page == "files/file:Download/final.pdf"
    assert back(world).ui.page == "files/folder:Download"


def test_renaming_a_folder_takes_its_content_along():
    world = tap(device("files/folder:Documents"), "More options", "Rename folder", "Clear name")
    world = tap(type_into(world, "Name", "Papers"), "Rename")
    assert [p for p in paths(world) if "Pa" in p] == ["Papers", "Papers/budget.txt", "Papers/letter.txt"]
    assert (world.ui.page, rows(world)) == ("files/folder:Papers", ["budget.txt", "letter.txt"])


def test_moving_a_file_leaves_its_folder():
    world = tap(device("files/folder:Download"), "ticket.pdf", "Move to", "Documents")
    assert "Documents/ticket.pdf" in paths(world)
    assert "Download/ticket.pdf" not in paths(world)
    assert rows(back(world)) == ["report.pdf"]


def test_moving_from_the_menu_of_a_row_comes_back_to_the_list():
    world = device("files/folder:Download")
    x, y = find(world, "ticket.pdf").centre
    world = tap(step(world, LongPress(x=x, y=y)), "Move to", "Storage")
    assert "ticket.pdf" in paths(world)
    assert (world.ui.page, rows(world)) == ("files/folder:Download", ["report.pdf"])


def test_a_folder_can_not_be_moved_into_itself():
    world = device("files/move:Download")
    assert "Download" not in rows(world)
    assert "Storage" not in rows(world)


def test_copying_keeps_the_original():
    world = tap(device("files/folder:Documents"), "budget.txt", "Copy to", "Music")
    assert world.state.files == (*FILES, File("Music/budget.txt", size_kb=3))


def test_a_file_is_deleted_only_after_the_question():
    world = tap(device("files/folder:Download"), "report.pdf", "Delete file")
    assert tap(world, "Cancel").state == world.state
    world = tap(world, "Delete")
    assert "Download/report.pdf" not in paths(world)
    assert world.ui.page == "files/folder:Download"


def test_deleting_a_folder_deletes_what_is_in_it():
    world = tap(device("files/folder:Music"), "More options", "Delete folder", "Delete")
    assert not [p for p in paths(world) if p.startswith("Music")]
    assert "Musical.txt" in paths(
        tap(
            device("files/folder:Music", files=[*map(plain, FILES), {"path": "Musical.txt"}]),
            "More options",
            "Delete folder",
            "Delete",
        )
    )


def plain(file):
    return {"path": file.path, "folder": file.folder, "size_kb": file.size_kb}


def test_the_search_looks_into_all_folders():
    world = type_into(tap(device("files/folder"), "Search files"), "Search files", "PDF")
    assert rows(world) == ["report.pdf", "ticket.pdf"]
    assert tap(world, "ticket.pdf").ui.page == "files/file:Download/ticket.pdf"
