"""Tables of actions, pictures of any form, drawn buttons, scores by reward."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from PIL import Image

from cuarl.env.foreign.button_strip import ButtonStrip
from cuarl.env.foreign.counters import Counters
from cuarl.env.foreign.mapping import NoWord, Table, read_table
from cuarl.env.foreign.pictures import NoPicture, at, pixels, screenshot
from cuarl.errors import ConfigError, EnvError, RewardError
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Action, Answer, Button, Click, Drag, Key, Screenshot, Scroll, Swipe, TypeText, Wait

SIZE = (100, 50)

# --- tables --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "action", "sent"),
    [
        ({"click": ["$x", "$y"]}, Click(x=3, y=4), [3, 4]),
        ({"click": ["$u", "$v"]}, Click(x=49, y=49), [0.495, 0.99]),
        ({"click": 1, "click right": 2}, Click(x=1, y=1, button="right"), 2),
        ({"click": 1, "double_click": 2}, Click(x=1, y=1, count=2), 2),
        ({"key": "$keys"}, Key(keys=("ctrl", "a")), "Control+a"),
        ({"key left": 0, "key": 9}, Key(keys=("ArrowLeft",)), 0),
        ({"key ctrl+a": 5}, Key(keys=("Control", "a")), 5),
        ({"swipe up": 1, "swipe": ["$direction", "$x2"]}, Swipe(x=5, y=40, x2=9, y2=4), 1),
        ({"swipe up": 1, "swipe": ["$direction", "$x2"]}, Swipe(x=5, y=4, x2=90, y2=4), ["right", 90]),
        ({"scroll": ["$x", "$amount"]}, Scroll(direction="down", amount=7), [50, 7]),
        ({"drag": ["$x", "$y2"]}, Drag(path=((1, 2), (8, 8), (5, 6))), [1, 6]),
        ({"type": {"t": "$text", "go": "$submit"}}, TypeText(text="$x", submit=True), {"t": "$x", "go": True}),
        ({"wait": "$seconds"}, Wait(seconds=2), 2.0),
        ({"answer": "$text"}, Answer(text="four"), "four"),
        ({"button back": "B"}, Button(name="back"), "B"),
        ({"any": "$action"}, Wait(seconds=1), {"kind": "wait", "seconds": 1.0}),
        ({"any": "$browsergym"}, Click(x=1, y=2), "mouse_click(1, 2, button='left')"),
        ({"click": "say $x"}, Click(x=1, y=2), "say $x"),
    ],
    ids=str,
)
def test_a_rule_sends_the_parts_of_its_action(table, action: Action, sent):
    assert read_table(table, "here").value(action, SIZE) == sent


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (Click(x=1, y=1, button="right"), "no click right"),
        (Key(keys=("a",)), "no key a"),
        (TypeText(text="a"), "no x, which"),
        (Drag(path=((1, 1), (2, 2), (3, 3))), "no call"),
    ],
)
def test_an_action_without_a_rule_or_a_part_is_refused(action, said):
    table = read_table({"click": 1, "type": "$x", "drag": "$browsergym"}, "here")
    with pytest.raises(NoWord, match=said):
        table.value(action, SIZE)


def test_a_table_tells_which_kinds_it_knows():
    table = read_table("{key Left: 0, double_click: 1}", "here")
    assert table.kinds == {"key", "click", "finish"}
    assert read_table("{buttons: {go: 1}}", "here").kinds == {"click", "finish"}
    assert "button" in read_table("{any: 1}", "here").kinds
    assert Table().kinds == {"finish"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "no table"), ("{", "no YAML"), ("{}", "no table"), ("{clik: 1}", 'did you mean "click"'),
        ("{click: [$xx]}", "stands for no part"), ("{buttons: [a]}", "labels"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        read_table(text, "here")


# --- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "shape", "first"),
    [
        (np.full((4, 6, 3), 9, np.uint8), (4, 6, 3), [9, 9, 9]),
        (np.full((3, 4, 6), 9, np.uint8), (4, 6, 3), [9, 9, 9]),
        (np.full((4, 6), 0.5, np.float32), (4, 6, 3), [128, 128, 128]),
        (np.full((4, 6, 4), 200, np.int64), (4, 6, 3), [200, 200, 200]),
        (np.ones((1, 4, 6), bool), (4, 6, 3), [255, 255, 255]),
        ([[[1, 2, 3]] * 6] * 4, (4, 6, 3), [1, 2, 3]),
    ],
    ids=lambda given: str(getattr(given, "shape", "")),
)
def test_pictures_of_any_form_become_rgb(given, shape, first):
    made = pixels(given)
    assert (made.shape, made.dtype, made[0, 0].tolist()) == (shape, np.uint8, first)


@pytest.mark.parametrize(
    "given",
    [np.zeros(5), np.full((4, 6), 7.5), np.full((4, 6), np.nan), np.full((4, 6), 300), np.zeros((5, 6, 7)), None,
        np.zeros((0, 4))],
    ids=lambda given: str(np.shape(given)),
)  # fmt: skip
def test_what_is_no_picture_is_refused(given):
    with pytest.raises(NoPicture):
        pixels(given)


def test_pictures_in_json():
    shot = Screenshot(Image.new("RGB", (8, 6), (1, 2, 3)))
    text = base64.b64encode(shot.png()).decode()
    assert screenshot(text).digest == screenshot(f"data:image/png;base64,{text}").digest == shot.digest
    assert screenshot(np.asarray(shot.image).tolist()).digest == shot.digest
    for wrong in ("no base64!", base64.b64encode(b"no picture").decode(), 5, {}):
        with pytest.raises(EnvError, match="can't be read"):
            screenshot(wrong)


def test_paths_lead_through_mappings_and_lists():
    told = {"a": [{"b": 1}], "c": {"d": None}}
    assert [at(told, path) for path in ("a.0.b", "a.1", "c.d", "x.y", "a.b")] == [1, None, None, None, None]


# --- buttons -------------------------------------------------------------------------------------------------------


def test_each_button_is_found_where_it_is_drawn():
    labels = [f"action {n}" for n in range(7)]
    strip = ButtonStrip(labels, 160)
    drawn = strip.below(Image.new("RGB", (160, 90), (1, 1, 1)))
    assert drawn.size == (160, 90 + strip.height)
    for number, label in enumerate(labels):
        left, top, right, bottom = strip.box(number)
        assert 0 <= left < right <= 160
        assert bottom <= strip.height
        assert {strip.at(left, top), strip.at(right - 1, bottom - 1)} == {label}
        assert drawn.getpixel((left + 1, 90 + top + 1)) != drawn.getpixel((0, 90))
    assert strip.at(0, 0) is None


def test_a_picture_narrower_than_a_label_is_widened():
    strip = ButtonStrip(["a rather long label"], 10)
    assert strip.below(Image.new("RGB", (10, 10))).width == strip.width > 100


# --- scores --------------------------------------------------------------------------------------------------------


def task(*checks: Check) -> TaskInstance:
    return TaskInstance(task_id="t", goal="g", checks=checks)


def test_a_verdict_has_the_return_whatever_is_checked():
    counters = Counters()
    counters.add(0.5, terminated=False, truncated=False, info={})
    counters.add(None, terminated=False, truncated=False, info={})
    counters.add(1.0, terminated=True, truncated=False, info={"won": True})
    over = counters.verdict(task(Check(path="terminated", value=True), Check(path="info.won", value=True)), None, True)
    assert (over.success, over.claimed) == (True, True)
    assert [(c.path, c.actual) for c in over.checks] == [("terminated", True), ("info.won", True), ("return", 1.5)]
    enough = counters.verdict(task(Check(path="return", op="ge", value=2)), None, None)
    assert (enough.success, len(enough.checks)) == (False, 1)
    assert counters.verdict(task(Check(path="answer", value="four")), "four", None).success


def test_what_was_never_told_is_a_failed_check_and_what_can_not_be_told_is_an_error():
    counters = Counters()
    assert not counters.verdict(task(Check(path="info.won", value=True)), None, None).success
    with pytest.raises(RewardError, match="retrun"):
        counters.verdict(task(Check(path="retrun", op="ge", value=1)), None, None)
