"""Pairs of a picture and an instruction: the formats that are read, and what counts as a hit."""

from __future__ import annotations

import json

import pytest
from PIL import Image

from cuarl.env.conformance import CHECKS
from cuarl.env.grounding.backend import option_tasks
from cuarl.env.grounding.env import GroundingEnv
from cuarl.env.grounding.options import Options
from cuarl.env.grounding.pairs import read_pairs
from cuarl.errors import TaskError
from cuarl.types import Click, Key, LongPress, Move, Scroll

pytestmark = pytest.mark.anyio

V2 = {"img_filename": "a.png", "bbox": [10, 20, 30, 10], "instruction": "close {it}", "data_type": "icon"}
PRO = {"img_filename": "a.png", "bbox": [10, 20, 40, 30], "instruction": "zoom in", "ui_type": "text", "group": "CAD"}


@pytest.fixture
def write(tmp_path):
    def written(*pairs, folder="", name="spot.json"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        Image.new("RGB", (200, 100), "white").save(place / "a.png")
        (tmp_path / name).write_text(json.dumps(pairs))
        return tmp_path / name

    return written


@pytest.mark.parametrize("folder", ["", "screenspot_imgs", "screenspotv2_image", "images"])
def test_both_formats_are_read_and_pictures_found_where_they_come(write, folder):
    pro = PRO | {"platform": "linux", "img_size": [200, 100]}
    path = write(V2 | {"data_source": "ios"}, pro, folder=folder)
    first, second = read_pairs(path, None, "auto")
    assert first.box == second.box == (10, 20, 40, 30)
    assert first.about == {"kind": "icon", "source": "ios", "size": "large (from 1 %)"}
    assert second.about == {"kind": "text", "source": "linux", "group": "CAD", "size": "large (from 1 %)"}
    assert (first.on_phone, second.on_phone) == (True, False)
    assert [pair.id for pair in (first, second)] == ["spot.0000", "spot.0001"]


@pytest.mark.parametrize(
    ("box", "label"), [([0, 0, 4, 4], "small"), ([0, 0, 5, 4], "medium"), ([0, 0, 20, 10], "large")]
)
def test_sizes_are_shares_of_the_picture(write, box, label):
    assert read_pairs(write(V2 | {"bbox": box}), None, "auto")[0].about["size"].split()[0] == label


@pytest.mark.parametrize(
    ("pair", "boxes", "said"),
    [
        (V2 | {"bbox": [10, 20, 300, 10]}, "auto", "as left, top, width, height is no box in a picture of 200x100"),
        (V2, "xyxy", "as left, top, right, bottom is no box"),
        (V2 | {"bbox": [0.1, 0.2, 0.3, 0.1]}, "auto", "shares of the picture, and pixels are wanted"),
        (V2 | {"bbox": [1, 2, 3]}, "auto", "not four numbers"),
        (V2 | {"bbox": [1, 2, 3, True]}, "auto", "not four numbers"),
        (V2 | {"img_filename": "b.png"}, "auto", "no picture b.png"),
        (V2 | {"instruction": " "}, "auto", "img_filename and instruction"),
        (7, "auto", "a pair is a mapping"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(write, pair, boxes, said):
    path = write(PRO, pair) if boxes == "auto" else write(pair)
    with pytest.raises(TaskError, match=said) as told:
        read_pairs(path, None, boxes)
    assert told.value.where == f"{path}, pair {1 if boxes == 'auto' else 0}"


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(TaskError, match="can't be read"):
        read_pairs(tmp_path / "none.json", None, "auto")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(TaskError, match="no list of pairs"):
        read_pairs(tmp_path, None, "auto")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(TaskError, match="there are no pairs"):
        read_pairs(tmp_path, None, "auto")


@pytest.mark.parametrize(
    ("action", "hit"),
    [
        (Click(x=10, y=20), True),
        (Click(x=39, y=29, count=2), True),
        (Click(x=9, y=25), False),
        (Click(x=40, y=25), False),
        (LongPress(x=20, y=25), True),
        (Move(x=20, y=25), True),
        (Scroll(x=20, y=25, direction="down", amount=1), False),
        (Key(keys=("Enter",)), False),
    ],
)
async def test_a_hit_points_into_the_box_and_one_action_is_all(write, action, hit):
    (task,) = option_tasks(Options(file=str(write(V2))))
    env, instance = GroundingEnv("desktop"), task.instantiate(0)
    assert instance.goal == "close {it}", "an instruction is as it is written"
    await env.reset(instance, 0)
    assert (await env.state())["hit"] is False
    assert (await env.step(action)).terminated
    assert (await env.state())["hit"] is hit
    again = await env.step(Click(x=20, y=25))
    assert again.info["rejected"] == "this picture takes one action"
    assert (await env.state())["hit"] is hit


@pytest.mark.parametrize("check", CHECKS)
async def test_a_picture_keeps_the_contract(write, check):
    (task,) = option_tasks(Options(file=str(write(V2))))

    async def make():
        return GroundingEnv("phone")

    await check(make, task.instantiate(0))
