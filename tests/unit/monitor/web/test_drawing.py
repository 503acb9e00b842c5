"""Curves and marks as numbers, and texts as people read them."""

import math

import pytest

from cuarl.monitor.web.curves import chart
from cuarl.monitor.web.marks import marks
from cuarl.monitor.web.templating import address, ago, percent, plain_number, span, visible, when
from cuarl.types import Click, Drag, LongPress, Move, Scroll, TypeText


def points(text):
    return [tuple(map(float, pair.split(","))) for pair in text.split()]


def test_a_curve_goes_from_its_first_step_to_its_last_and_higher_is_further_up():
    made = chart("Success", {"a": [(2, 0.0), (4, 0.5), (6, 1.0)]}, share=True)
    assert points(made.lines[0].points) == [(made.left, made.bottom), (227.0, 87.0), (made.right, 10.0)]
    assert [t.words for t in made.across] == ["0%", "25%", "50%", "75%", "100%"]
    assert [t.words for t in made.beneath] == ["2", "4", "6"]


def test_a_band_goes_around_its_interval_and_one_without_a_line_is_left_out():
    made = chart("x", {"a": [(0, 0.5)]}, bands={"a": [(0, 0.25, 0.75)], "b": [(0, 0, 1)]}, share=True)
    assert [y for _, y in points(made.lines[0].band)] == [48.5, 125.5]


def test_ten_thousand_steps_are_drawn_by_some_hundred_points_and_keep_both_ends():
    made = chart("x", {"a": [(i, float(i)) for i in range(10_000)]})
    drawn = points(made.lines[0].points)
    assert len(drawn) <= 401 and drawn[0][0] == made.left and drawn[-1][0] == made.right
    assert len(made.lines[0].dots) <= 40


@pytest.mark.parametrize("values", [[5.0], [0.0, 0.0], [-3.0, 2.0], [1e-13, 4e-13], [59_300.0, 59_500.0], [1e12]])
def test_an_axis_holds_its_values_in_few_characters(values):
    made = chart("x", {"a": list(enumerate(values))})
    assert all(10 <= y <= made.bottom for _, y in points(made.lines[0].points))
    words = [tick.words for tick in made.across]
    assert all(len(word) <= 7 for word in words) and len(set(words)) == len(words) in (3, 4, 5, 6), words


def test_lines_across_stand_at_round_values():
    for values, words in (
        ([0.17, 0.72], ["0", "0.2", "0.4", "0.6", "0.8"]),
        ([1.06e-13, 1.9e-13], ["1e-13", "1.5e-13", "2e-13"]),
        ([59_300.0, 59_500.0], ["59.3k", "59.35k", "59.4k", "59.45k", "59.5k"]),
        ([-0.4, 21.0], ["-10", "0", "10", "20", "30"]),
    ):
        assert [tick.words for tick in chart("x", {"a": list(enumerate(values))}).across] == words


def test_nothing_is_drawn_of_nothing():
    assert chart("x", {}) is None and chart("x", {"a": [(1, math.nan)]}) is None


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (Click(x=10, y=20, count=2), {"rings": 2, "dots": 1, "arrow": 0}),
        (LongPress(x=10, y=20), {"rings": 0, "dots": 1, "arrow": 0}),
        (Drag(path=((1, 2), (3, 4), (50, 60))), {"rings": 0, "dots": 1, "arrow": 3}),
        (Scroll(direction="down"), {"rings": 0, "dots": 1, "arrow": 2}),
    ],
)
def test_an_action_is_marked_where_it_was(action, shown):
    found = marks(action, 100, 200)
    assert {name: len(getattr(found, name)) for name in shown} == shown
    if found.arrow:
        assert len(points(found.head)) == 3 and len(points(found.path)) == len(found.arrow)


def test_a_scroll_without_a_place_is_in_the_middle_and_others_have_none():
    assert marks(Scroll(direction="down"), 100, 200).arrow == ((50.5, 88.0), (50.5, 113.0))
    assert marks(Move(x=1, y=2), 100, 200).cross == (1.5, 2.5)
    assert marks(TypeText(text="x"), 100, 200) is None and marks(None, 100, 200) is None


def test_control_characters_are_seen_and_do_nothing():
    assert visible("a\x00b\x1b[31m\x7f\u202e\ud800\ufeff\tc\nd") == "a␀b␛[31m␡\ufffd\ufffd\ufffd\tc\nd"
    assert visible(3) == 3


def test_an_address_holds_whatever_an_id_does():
    assert address("/m", "episodes", "a/b?c#d ö") == "/m/episodes/a%2Fb%3Fc%23d%20%C3%B6"
    assert address("", q="a&b", page="") == "/?q=a%26b"
    assert address("", "runs", "\ud800") == "/runs/%ED%A0%80"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.0003, "0.3 ms"), (3.14159, "3.1 s"), (59, "59 s"), (840, "14 min"), (7500, "2 h 5 min"),
        (3e5, "3 d 11 h"), (None, "–"), (math.inf, "–")],
)  # fmt: skip
def test_times_are_in_words(seconds, words):
    assert span(seconds) == words


def test_what_is_not_known_is_a_dash():
    assert (plain_number(None), percent(math.nan), when(None), when(1e30), ago(None)) == ("–",) * 5
    assert (percent(0.5), when(1.7e9)) == ("50 %", "2023-11-14 22:13:20")
