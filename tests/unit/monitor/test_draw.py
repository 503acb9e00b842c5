from __future__ import annotations

import pytest
from PIL import Image, ImageChops

from cuarl.agent.describe import describe
from cuarl.monitor.draw import annotate, caption, final, half_blocks
from cuarl.trajectory import Turn
from cuarl.types import (
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    ImageRef,
    Key,
    LongPress,
    Move,
    OpenApp,
    ParseError,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

GREY = Image.new("RGB", (400, 300), (128, 128, 128))


def turn(action=None, **fields):
    return Turn(index=2, screenshot=ImageRef(digest="0" * 64, width=400, height=300), action=action, **fields)


def box(action):
    """What the mark covers, without the caption."""
    marked = annotate(GREY, turn(action)).crop((0, 0, 400, 300))
    return ImageChops.difference(marked, GREY).getbbox()


@pytest.mark.parametrize(
    ("action", "points"),
    [
        (Click(x=200, y=100), [(200, 100)]),
        (LongPress(x=60, y=240), [(60, 240)]),
        (Move(x=300, y=40), [(300, 40)]),
        (Swipe(x=100, y=250, x2=100, y2=50), [(100, 250), (100, 50)]),
        (Drag(path=((50, 50), (350, 50), (350, 250))), [(50, 50), (350, 250)]),
    ],
)
def test_mark_lies_where_the_action_does(action, points):
    left, top, right, bottom = box(action)
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    assert min(xs) - 45 < left < min(xs) and max(xs) < right < max(xs) + 45
    assert min(ys) - 45 < top < min(ys) and max(ys) < bottom < max(ys) + 45


@pytest.mark.parametrize(
    ("action", "lower"),
    [
        (Click(x=395, y=4, count=3), Click(x=395, y=304, count=3)),
        (LongPress(x=0, y=0), LongPress(x=0, y=300)),
        (Swipe(x=399, y=250, x2=0, y2=2), Swipe(x=399, y=550, x2=0, y2=302)),
    ],
)
def test_a_mark_at_the_edge_is_what_the_edge_leaves_of_it(action, lower):
    # the lower half of a picture twice as high, where the mark has room upwards; at the edge, smoothing sees less of it
    high = annotate(Image.new("RGB", (400, 600), (128, 128, 128)), turn(lower)).crop((0, 303, 400, 600))
    marked = annotate(GREY, turn(action)).crop((0, 3, 400, 300))
    assert max(most for _, most in ImageChops.difference(marked, high).getextrema()) < 60, "rounding, not a part of it"


def test_a_place_beside_the_picture_is_not_drawn():
    assert box(Click(x=2000, y=20)) is None


def test_scroll_without_a_point_is_drawn_around_the_centre():
    left, top, right, bottom = box(Scroll(direction="down"))
    assert (left + right) / 2 == pytest.approx(200, abs=2)
    assert top < 150 < bottom


def test_more_clicks_are_more_rings():
    widths = [box(Click(x=200, y=150, count=n))[2] - box(Click(x=200, y=150, count=n))[0] for n in (1, 2, 3)]
    assert widths == sorted(set(widths))


@pytest.mark.parametrize("action", [TypeText(text="hi"), Wait(), Key(keys=("a",)), None])
def test_action_without_a_place_leaves_the_screen_as_it_is(action):
    error = None if action else ParseError(code="no_call")
    shown = annotate(GREY, turn(action, parse_error=error)).crop((0, 0, 400, 300))
    assert ImageChops.difference(shown, GREY).getbbox() is None


def test_small_screen_is_enlarged_by_a_whole_number_with_the_mark_in_place():
    small = Image.new("RGB", (100, 50), (128, 128, 128))
    shown = annotate(small, turn(Click(x=75, y=25)))
    assert shown.width == 400
    marked = ImageChops.difference(shown.crop((0, 0, 400, 200)), small.resize((400, 200))).getbbox()
    assert (marked[0] + marked[2]) / 2 == pytest.approx(302, abs=2)


def test_long_caption_makes_the_picture_higher_and_never_wider():
    short, long = (annotate(GREY, turn(TypeText(text=t))) for t in ("hi", "a" * 200 + " b" * 100))
    assert short.width == long.width == 400
    assert long.height > short.height + 60


def test_last_screen_has_its_own_caption():
    assert final(GREY, "done: success").height > 300


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (Click(x=1, y=2, count=2, button="right"), "double click right (1, 2)"),
        (LongPress(x=1, y=2), "long press (1, 2)"),
        (Swipe(x=1, y=2, x2=3, y2=4), "swipe (1, 2) to (3, 4)"),
        (Drag(path=((1, 2), (3, 4))), "drag (1, 2) to (3, 4)"),
        (Scroll(direction="up", amount=3, unit="notch"), "scroll up 3 notch"),
        (TypeText(text="a\x1b[31m\nb", submit=True), 'type "a\\x1b[31m b" and enter'),
        (Key(keys=("ctrl", "c")), "key ctrl+c"),
        (Button(name="back"), "button back"),
        (OpenApp(name="Clock"), "open Clock"),
        (Wait(seconds=1.5), "wait 1.5 s"),
        (Answer(text="42"), 'answer "42"'),
        (Finish(success=False, message="no such app"), 'finish: failure "no such app"'),
        (Finish(), "finish: success"),
    ],
)
def test_words_of_each_kind_of_action_stay_on_one_line_and_steer_no_terminal(action, words):
    assert describe(action) == words


def test_caption_says_what_was_wrong():
    assert caption(turn(Wait(), rejected="busy", warnings=("clamped",))) == ("wait 1 s", "rejected: busy; clamped")
    assert caption(turn(parse_error=ParseError(code="bad_json", message="x"))) == ("no action", "bad_json: x")


def test_half_blocks_carry_two_pixels_each():
    picture = Image.new("RGB", (2, 4))
    picture.putdata([(255, 0, 0), (0, 255, 0), (0, 0, 255), (9, 9, 9)] * 2)
    text = half_blocks(picture, columns=2)
    assert text.plain == "▀▀\n▀▀\n"
    styles = [span.style for span in text.spans]
    assert [(s.color.triplet, s.bgcolor.triplet) for s in styles] == [
        ((255, 0, 0), (0, 0, 255)),
        ((0, 255, 0), (9, 9, 9)),
    ] * 2
