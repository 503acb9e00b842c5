"""What a policy is shown at the start of a task is what it is shown in an episode."""

from __future__ import annotations

import json
import re

import pytest
from PIL import Image

from cuarl.settings import Settings
from cuarl.tasks.task import Check, Task
from cuarl.workflow.first_sight import first_sights
from tests.integration.rollout_place import Place, bare

TASK = Task(
    id="toggle",
    description="Turn on {what}.",
    params={"what": ("Wi-Fi", "NFC")},
    checks=(Check(path="network.wifi.enabled", value=True),),
)


def test_the_prompt_is_that_of_an_episode_and_tells_pictures_by_their_number(tmp_path, monkeypatch, capsys):
    (sight,) = first_sights([TASK], 3, (), Settings())
    assert sight.goal == TASK.instantiate(3).goal
    width, height = sight.screenshot.width, sight.screenshot.height
    assert (width, height) == (192, 384)
    # the base merges 32 by 32 pixels into one place
    assert re.search(rf"<\|vision_start\|>(<\|image_pad\|>)×{width * height // 32**2}<\|vision_end\|>", sight.prompt)
    assert f"{sight.goal}<|im_end|>\n<|im_start|>assistant\n" in sight.prompt
    bare(monkeypatch, tmp_path)
    place = Place(tmp_path, capsys)
    asked = ("tasks", "show", "tasks.json#wifi_off", "--screenshot", "--out", "shots", "--json")
    (shown,) = json.loads(place.cuarl(*asked).out)
    assert shown["goal"] == "Do it"
    with Image.open(tmp_path / shown["screen"]) as picture:
        assert picture.size == (192, 384)
    assert shown["screen"] == "shots/wifi_off-seed0.png"


@pytest.mark.parametrize("option", [("--out", "x"), ("--set", "seed=1")])
def test_options_of_a_screenshot_need_one(tmp_path, monkeypatch, capsys, option):
    bare(monkeypatch, tmp_path)
    told = Place(tmp_path, capsys).cuarl("tasks", "show", "tasks.json", *option)
    assert told.code == 2
    assert f"{option[0]} has no effect without --screenshot" in told.err
