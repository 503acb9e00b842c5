"""What changed between two selections, in words."""

import pytest

from cuarl.tasks.changes import content, differences, digest
from cuarl.tasks.task import Check, Task

WIFI = Task(id="wifi", description="Turn Wi-Fi off", checks=(Check(path="network.wifi.enabled", value=False),))
DARK = Task(id="dark", description="Turn the dark theme on", preset={"display.dark_theme": False})


def told(old, new):
    return differences([content(t) for t in old], [content(t) for t in new])


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"description": "Turn it off"}, 'wifi: description was "Turn Wi-Fi off", is "Turn it off"'),
        ({"preset": {"a.b": 1}}, 'wifi: preset was the default, is {"a.b": 1}'),
        ({"checks": ()}, 'wifi: checks was [{"path": "network.wifi.enabled", "value": false}], is the default'),
        ({"max_steps": 12}, "wifi: max_steps was the default, is 12"),
        ({"params": {"n": (1, 2)}}, 'wifi: params was the default, is {"n": [1, 2]}'),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_changed_field_is_named_with_both_values(change, line):
    assert told([WIFI, DARK], [WIFI.model_copy(update=change), DARK]) == [line]


def test_tasks_that_are_gone_new_or_moved_are_named():
    assert told([WIFI, DARK], [DARK]) == ["wifi is gone"]
    assert told([DARK], [WIFI, DARK]) == ["wifi is new"]
    assert told([WIFI, DARK], [DARK, WIFI]) == ["the tasks are the same in another order"]
    assert told([WIFI, DARK], [WIFI, DARK]) == []


def test_the_suite_that_a_task_was_read_from_is_no_part_of_it():
    assert told([WIFI], [WIFI.model_copy(update={"suite": "mine"})]) == []


def test_long_and_odd_values_are_shown_on_one_bounded_line():
    (line,) = told([WIFI], [WIFI.model_copy(update={"description": "\x1b[2J\n" + "x" * 500})])
    assert "\x1b" not in line and "\n" not in line and len(line) < 200


def test_the_digest_is_of_contents_and_order():
    a, b = content(WIFI), content(DARK)
    assert digest({"train": [a, b]}) == digest({"train": [dict(a), dict(b)]})
    assert len({digest({"train": tasks}) for tasks in ([a, b], [b, a], [a], [])}) == 4
