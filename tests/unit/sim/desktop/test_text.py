import pytest

from cuarl.sim.desktop.text import TextBox

TEXT = "one two\nthree\n\nfour"


def test_typing_goes_over_the_selection():
    box = TextBox("hello world", 11, 6).insert("you")
    assert (box.text, box.caret, box.selected) == ("hello you", 9, "")


@pytest.mark.parametrize(
    ("box", "forward", "left"),
    [
        (TextBox("abc", 3, 3), False, "ab"),
        (TextBox("abc", 0, 0), False, "abc"),
        (TextBox("abc", 0, 0), True, "bc"),
        (TextBox("abc", 3, 3), True, "abc"),
        (TextBox("abc", 1, 3), False, "a"),
        (TextBox("abc", 1, 3), True, "a"),
    ],
)
def test_erasing_takes_the_selection_or_one_character(box, forward, left):
    assert box.erase(forward=forward).text == left


@pytest.mark.parametrize(
    ("start", "key", "word", "end"),
    [
        (0, "left", False, 0), (19, "right", False, 19), (5, "left", True, 4), (0, "right", True, 3),
        (5, "home", False, 0),
        (10, "end", False, 13), (10, "home", True, 0), (0, "end", True, 19), (10, "up", False, 2), (2, "up", False, 2),
        (2, "down", False, 10), (7, "down", False, 13), (13, "down", False, 14), (14, "down", False, 15),
        (15, "up", False, 14),
        (17, "down", False, 17), (14, "up", False, 8),
    ],
)  # fmt: skip
def test_the_caret_moves_like_everywhere(start, key, word, end):
    moved = TextBox(TEXT).at(start).moved(key, word=word)
    assert (moved.caret, moved.selected) == (end, "")


def test_moving_with_shift_selects():
    box = TextBox(TEXT).at(4).moved("end", extend=True)
    assert box.selected == "two"
    assert box.moved("left", extend=True).selected == "tw"


@pytest.mark.parametrize(
    ("position", "word", "line"), [(1, "one", "one two"), (5, "two", "one two"), (14, "", ""), (19, "four", "four")]
)
def test_a_word_or_a_line_is_selected_around_a_position(position, word, line):
    box = TextBox(TEXT)
    assert (box.word_at(position).selected, box.line_at(position).selected) == (word, line)


@pytest.mark.parametrize("position", [-9, 0, 40])
def test_a_click_beside_the_text_means_its_nearer_end(position):
    box = TextBox("one two", 0, 0)
    word = "two" if position > 0 else "one"
    assert (box.word_at(position).selected, box.line_at(position).selected) == (word, "one two")
