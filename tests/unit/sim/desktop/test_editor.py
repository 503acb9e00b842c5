from cuarl.sim.desktop.device import step
from cuarl.sim.desktop.elements import elements
from cuarl.sim.desktop.lines import spans
from cuarl.sim.desktop.state import FILES
from cuarl.sim.desktop.view import layout
from cuarl.sim.desktop.widgets import CELL, TextLine
from cuarl.types import Click, Drag
from tests.unit.sim.desktop.mouse import click, desktop, press, text_of, write

LETTER = "editor/Documents/letter.txt"


def lines(world):
    return [item for item in layout(world).scene.items if isinstance(item.widget, TextLine)]


def point(world, row, column):
    box = lines(world)[row].box
    return round(box[0] + CELL + column * CELL), (box[1] + box[3]) // 2


def edited(world):
    return world.focused.box("text")


def test_typing_changes_the_text_and_saving_the_file():
    world = write(desktop(LETTER), "PS ")
    assert world.focused.box("text").text.startswith("PS Dear Ada,") and world.state.files == FILES
    saved = press(world, "ctrl+s")
    assert text_of(saved, "Documents/letter.txt") == edited(world).text
    assert press(saved, "alt+F4").focused is None


def test_a_click_sets_the_caret_a_double_click_selects_the_word_and_a_triple_click_the_line():
    world = desktop(LETTER)
    x, y = point(world, 1, 8)
    assert edited(step(world, Click(x=x, y=y))).caret == len("Dear Ada,\n") + 8
    assert edited(step(world, Click(x=x, y=y, count=2))).selected == "you"
    assert edited(step(world, Click(x=x, y=y, count=3))).selected == "thank you for the tickets."


def test_dragging_selects_and_typing_replaces():
    world = step(desktop(LETTER), Drag(path=(point(desktop(LETTER), 0, 5), point(desktop(LETTER), 0, 8))))
    assert edited(world).selected == "Ada"
    assert edited(write(world, "Ben")).text.startswith("Dear Ben,")


def test_selected_text_is_cut_copied_and_pasted():
    world = press(desktop(LETTER), "shift+End", "ctrl+x")
    assert edited(world).text.startswith("\nthank") and world.state.clipboard.text == "Dear Ada,"
    assert edited(press(world, "ctrl+End", "ctrl+v")).text.endswith("Friday.\nDear Ada,")


def test_keys_edit_line_by_line():
    world = press(desktop("editor/"), "a", "Return", "shift+b", "space", "2")
    assert edited(world).text == "a\nB 2"
    assert edited(press(world, "BackSpace", "Up", "Home", "Delete")).text == "\nB "


def test_a_new_text_asks_where_to_go_and_that_other_files_may_be_replaced():
    world = press(write(desktop("editor/"), "hi"), "ctrl+s")
    assert world.focused.dialog.title == "Save As"
    saved = write(world, "~/Documents/new.txt", submit=True)
    assert text_of(saved, "Documents/new.txt") == "hi" and saved.focused.page == "Documents/new.txt"
    asked = write(world, "todo.txt", submit=True)
    assert asked.focused.dialog.title == "Replace file?" and asked.state.files == FILES
    assert text_of(click(asked, "Replace"), "todo.txt") == "hi"


def test_saving_into_no_folder_is_refused():
    world = write(press(write(desktop("editor/"), "hi"), "ctrl+s"), "nowhere/a.txt", submit=True)
    assert world.focused.dialog.title == "Could not save" and world.state.files == FILES


def test_closing_asks_before_text_is_lost():
    world = click(write(desktop("editor/todo.txt"), "x"), "Close")
    assert world.focused.dialog.title == "Save changes?"
    assert press(world, "Escape").focused.app == "editor"
    discarded = click(world, "Discard")
    assert discarded.focused is None and discarded.state.files == FILES
    assert text_of(click(world, "Save", role="button"), "todo.txt").startswith("x")


def test_a_file_is_opened_from_the_list_in_the_empty_window_or_a_new_one():
    world = click(desktop("editor/"), "Open")
    here = click(world, "Documents/letter.txt")
    assert [w.page for w in here.ui.windows] == ["Documents/letter.txt"]
    assert [w.page for w in click(click(here, "Open"), "Desktop/welcome.txt").ui.windows] == [
        "Documents/letter.txt",
        "Desktop/welcome.txt",
    ]


def test_the_view_follows_the_caret():
    world = desktop("editor/long.txt", files=[{"path": "long.txt", "text": "\n".join(map(str, range(60)))}])
    end = press(world, "ctrl+End")
    assert lines(end)[-1].widget.text == "59" and lines(world)[0].widget.text == "0"
    assert lines(press(end, "ctrl+Home"))[0].widget.text == "0"


def test_long_lines_are_broken_without_losing_a_character():
    text = "abcdefgh\n\nxy"
    assert [text[a:b] for a, b, _ in spans(text, 3)] == ["abc", "def", "gh", "", "xy"]
    assert [last for _, _, last in spans(text, 3)] == [False, False, True, True, True]


def test_the_title_marks_a_text_that_is_not_saved():
    titles = [e.label for e in elements(write(desktop("editor/todo.txt"), "x")) if e.role == "titlebar"]
    assert titles == ["*todo.txt"]
