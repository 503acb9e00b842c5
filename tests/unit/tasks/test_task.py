from __future__ import annotations

import subprocess
import sys

import pytest

from cuarl.tasks.build import CHECK_TEXT_FIELDS, TEXT_FIELDS, TEXT_LISTS, goal_id
from cuarl.tasks.task import Check, Task, placeholders

TASK = Task(
    id="t",
    description="Set {name} to {level.text}",
    params={"name": ("a", "b", "c"), "level": ({"text": "low", "value": 1}, {"text": "high", "value": 9})},
    checks=(Check(path="x.{name}", value="{level.value}"),),
    preset={"x.{name}": 5},
)


def test_parameters_whose_fields_belong_together_are_drawn_together() -> None:
    seen = set()
    for seed in range(40):
        instance = TASK.instantiate(seed)
        name, level = instance.params["name"], instance.params["level"]
        assert instance.goal == f"Set {name} to {level['text']}"
        assert instance.checks == (Check(path=f"x.{name}", value=level["value"]),)
        assert instance.preset == {f"x.{name}": 5}
        seen.add(instance.goal)
    assert len(seen) == 6


def test_the_draw_is_the_same_in_every_process() -> None:
    code = "from tests.unit.tasks.test_task import TASK; print(*(TASK.instantiate(s).digest for s in range(5)))"
    other = subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": "1"}, capture_output=True, text=True)
    assert other.stdout.split() == [TASK.instantiate(seed).digest for seed in range(5)]


def test_binding_needs_every_parameter_that_a_text_names() -> None:
    with pytest.raises(KeyError, match="level"):
        TASK.bind({"name": "a"})


def test_the_digest_is_that_of_the_content_not_of_the_suite() -> None:
    assert TASK.digest == TASK.model_copy(update={"suite": "other"}).digest
    assert TASK.digest != TASK.model_copy(update={"max_steps": 11}).digest


def test_placeholders_are_found_at_any_depth_and_in_keys() -> None:
    assert placeholders({"{a}": ["{b.c} and {d}", {"e": ("{f}",)}], "g": 1}) == {
        ("a", None),
        ("b", "c"),
        ("d", None),
        ("f", None),
    }


def test_an_id_made_of_a_goal_tells_similar_goals_apart() -> None:
    assert goal_id("Turn on Wi-Fi, please: now").startswith("turn-on-wi-fi-please-")
    assert goal_id("Turn on Wi-Fi, please: now") != goal_id("Turn on Wi-Fi, please: later")
    assert goal_id("Öffne das Menü").startswith("ffne-das-men-")
    assert goal_id("设置").startswith("goal-")


def test_every_text_field_of_the_model_is_read_as_text() -> None:
    def texts(model: type[Task] | type[Check]) -> set[str]:
        return {
            n for n, f in model.model_fields.items() if "str" in str(f.annotation) or "Literal" in str(f.annotation)
        }

    mappings = {"preset", "plan", "params"}
    assert texts(Task) - mappings == {*TEXT_FIELDS, *TEXT_LISTS}
    assert texts(Check) == set(CHECK_TEXT_FIELDS)
