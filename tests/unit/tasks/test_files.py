from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.files import Located, load_file, merge
from cuarl.tasks.task import Task


def write(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def tasks_of(path: Path) -> list[Task]:
    return [one.task for one in load_file(path)]


def failure_of(path: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_file(path)
    return caught.value


# --- encodings, marks, line ends (C48) -----------------------------------------------------------------------------

TWO_LINES = '{"id":"a","prompt":"x"}\r\n\r\n{"id":"b","prompt":"y"}\r\n'


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TWO_LINES.encode(), id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + TWO_LINES.encode(), id="utf-8 with mark"),
        pytest.param(codecs.BOM_UTF16_LE + TWO_LINES.encode("utf-16-le"), id="utf-16 little"),
        pytest.param(codecs.BOM_UTF16_BE + TWO_LINES.encode("utf-16-be"), id="utf-16 big"),
        pytest.param(codecs.BOM_UTF32_LE + TWO_LINES.encode("utf-32-le"), id="utf-32"),
        pytest.param(TWO_LINES.replace("\r\n", "\n").encode(), id="unix line ends"),
        pytest.param(TWO_LINES.replace("\r\n", "\r").encode(), id="old mac line ends"),
    ],
)
def test_c48_the_same_tasks_are_read_in_every_encoding(tmp_path: Path, data: bytes) -> None:
    plain = tasks_of(write(tmp_path, "plain.jsonl", '{"id":"a","prompt":"x"}\n{"id":"b","prompt":"y"}'))
    tasks = tasks_of(write(tmp_path, "a.jsonl", data))
    assert [(t.id, t.description) for t in tasks] == [("a", "x"), ("b", "y")]
    assert [t.digest for t in tasks] == [t.digest for t in plain]


def test_c48_goals_are_read_from_a_windows_text_file_without_comments(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "\ufeffOpen Settings\r\n\r\n# a note\r\n  Take a screenshot  \r\n\\# stays")
    located = load_file(path)
    assert [one.task.description for one in located] == ["Open Settings", "Take a screenshot", "# stays"]
    assert [one.line for one in located] == [1, 4, 5]


def test_c48_a_broken_line_is_named_by_its_number_when_blank_lines_come_before_it(tmp_path: Path) -> None:
    error = failure_of(write(tmp_path, "a.jsonl", '{"id":"a","prompt":"x"}\n\n{bad}\n'))
    assert error.where is not None
    assert error.where.endswith("a.jsonl, line 3")
    assert "not JSON" in error.what


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("Café\n".encode("latin-1"), "not UTF-8 text: byte 0xe9"),
        ("Open Settings\n".encode("utf-16-le"), "UTF-16 without a byte-order mark"),
        (codecs.BOM_UTF16_LE + b"a", "not UTF-16-LE text"),
    ],
)
def test_c48_an_unreadable_encoding_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    error = failure_of(write(tmp_path, "a.txt", data))
    assert words in error.what
    assert error.hint == "save the file as UTF-8"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", ""), ("a.txt", "\n# only a note\n"), ("a.yaml", ""), ("a.yaml", "# x\n"), ("a.yaml", "tasks: []\n"),
        ("a.json", " \n"),
     ("a.json", "[]"), ("a.json", "null"), ("a.jsonl", ""), ("a.json", "\ufeff")],
)  # fmt: skip
def test_c48_a_file_without_tasks_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    assert failure_of(write(tmp_path, name, text)).what == "the file holds no task"


# --- ids, names, fields (C50) --------------------------------------------------------------------------------------


def test_c50_an_id_used_for_two_tasks_is_an_error_with_both_lines(tmp_path: Path) -> None:
    lines = '{"id": "t1", "prompt": "open settings"}\n{"id": "t1", "prompt": "enable wifi"}\n'
    error = failure_of(write(tmp_path, "a.jsonl", lines))
    assert error.what == 'the id "t1" is used for two different tasks, first on line 1'
    assert error.where == f"{tmp_path / 'a.jsonl'}, line 2"


def test_c50_a_repeated_task_counts_once_and_another_of_its_id_is_an_error(tmp_path: Path) -> None:
    one = load_file(write(tmp_path, "b.jsonl", '{"id": "t1", "prompt": "open settings"}'))
    again = load_file(write(tmp_path, "c.yaml", "id: t1\ngoal: open settings\n"))
    other = load_file(write(tmp_path, "d.json", '{"id": "t1", "goal": "close settings"}'))
    tasks, repeated = merge([*one, *again])
    assert (len(tasks), repeated) == (1, 1)
    with pytest.raises(TaskError, match="t1") as caught:
        merge([*one, *other])
    assert caught.value.where == f"{one[0].where} and {other[0].where}"


def test_c50_an_unknown_field_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    lines = '{"id": "t2", "prompt": "x", "max_step": 5, "category": "Settings "}\n{"id": "t3", "prompt": "y"}\n'
    error = failure_of(write(tmp_path, "c.jsonl", lines))
    assert error.what == 'unknown field "max_step" (did you mean "max_steps"?)'
    assert error.where == f"{tmp_path / 'c.jsonl'}, line 1"


def test_c50_categories_are_the_same_when_they_differ_by_case_and_space(tmp_path: Path) -> None:
    lines = '{"prompt": "x", "category": "Settings ", "difficulty": "EASY"}\n{"prompt": "y", "category": "settings"}\n'
    tasks = tasks_of(write(tmp_path, "c.jsonl", lines))
    assert [(t.category, t.difficulty) for t in tasks] == [("settings", "easy"), ("settings", "medium")]


def test_c50_all_problems_of_a_file_are_listed_at_once(tmp_path: Path) -> None:
    text = """\
tasks:
- id: a
  description: x
  categry: app
- id: b
  description: y
  category: sytem
  max_steps: 0
- description: z
  checks:
  - {path: display.brightness, op: gte, value: 3}
- 17
extra: 1
"""
    error = failure_of(write(tmp_path, "a.yaml", text))
    assert error.what.splitlines()[1:] == [
        '  line 4: unknown field "categry" (did you mean "category"?)',
        '  line 7: unknown category "sytem" (did you mean "system"?)',
        "  line 8: max_steps: input should be greater than 0, not 0",
        "  line 11: unknown checks.0.op \"gte\": use 'equals', 'not_equals', 'contains', 'not_contains', 'icontains', "
        "'matches', 'ge', 'le', 'between', 'empty', 'not_empty', 'has' or 'lacks'",
        "  line 12: a task is a mapping of fields or the text of a goal, not 17",
        '  line 13: unknown field "extra" beside "tasks"',
    ]


def test_c50_at_most_twenty_problems_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"id": f"t{i}", "goal": "x", "colour": 1}) for i in range(27))
    error = failure_of(write(tmp_path, "a.jsonl", lines))
    assert error.what.startswith("27 problems in ")
    assert error.what.count('unknown field "colour"') == 20
    assert error.what.endswith("… and 7 more")


def test_c50_no_task_is_loaded_when_one_is_broken(tmp_path: Path) -> None:
    failure_of(write(tmp_path, "a.jsonl", '{"goal": "fine"}\n{"goal": "broken", "max_steps": "many"}'))


# --- texts, numbers, truth values (C51) ----------------------------------------------------------------------------


def test_c51_yaml_texts_keep_every_character(tmp_path: Path) -> None:
    text = """\
tasks:
- {id: 010, description: on, name: no, tags: [12:30, 1.10, yes, 2026-01-05], expected_result: 12:30}
- {id: 2026-01-05, description: off, name: true, tags: [1.5, 7, false], validation_query: null}
- {id: 12:30, description: 1.10}
"""
    first, second, third = tasks_of(write(tmp_path, "a.yaml", text))
    assert (first.id, first.description, first.name) == ("010", "on", "no")
    assert first.tags == ("12:30", "1.10", "yes", "2026-01-05")
    assert first.expected_result == "12:30"
    assert (second.id, second.description, second.name) == ("2026-01-05", "off", "true")
    assert second.tags == ("1.5", "7", "false")
    assert (third.id, third.description) == ("12:30", "1.10")


def test_c51_truth_values_are_true_and_false_only(tmp_path: Path) -> None:
    good = "id: a\ngoal: x\nchecks: [{path: p, value: true}, {path: q, value: on}, {path: r, value: 010}]\n"
    (task,) = tasks_of(write(tmp_path, "a.yaml", good))
    assert [check.value for check in task.checks] == [True, "on", "010"]
    error = failure_of(write(tmp_path, "b.yaml", "goal: x\nvalidation_query: wifi_enabled\nexpected_result: on\n"))
    assert error.what == "expected_result must be true or false, not 'on'"
    assert error.where == f"{tmp_path / 'b.yaml'}, line 2"


@pytest.mark.parametrize("written", ['"8"', "true", "8.0", "010", "1_0", "12:30"])
def test_c51_a_number_field_takes_nothing_but_numbers(tmp_path: Path, written: str) -> None:
    error = failure_of(write(tmp_path, "a.yaml", f"goal: x\nmax_steps: {written}\n"))
    assert error.what.startswith("max_steps: ")
    assert error.where == f"{tmp_path / 'a.yaml'}, line 2"


def test_json_numbers_as_texts_are_taken_only_where_nothing_is_lost(tmp_path: Path) -> None:
    (task,) = tasks_of(write(tmp_path, "a.json", '{"id": 7, "goal": "x", "tags": [1, "1.10"]}'))
    assert (task.id, task.tags) == ("7", ("1", "1.10"))
    error = failure_of(write(tmp_path, "b.json", '{"id": 1.10,\n "goal": "x",\n "name": true}'))
    assert "line 1: id is a text: write 1.1 in quotes" in error.what
    assert "line 3: name is a text: write true in quotes" in error.what


RICH = {
    "id": "alarm-1", "description": "Set an alarm for {time.text}", "category": "app", "difficulty": "hard",
    "params": {"time": [{"text": "7:30", "minutes": 450}, {"text": "8:00", "minutes": 480}]},
    "checks": [{"path": "clock.alarms", "op": "has", "value": {"minutes": "{time.minutes}", "enabled": True}}],
    "preset": {"display.brightness": 1.5, "sound.dnd": False}, "allow": ["ui.*"], "tags": ["on", "010"],
    "max_steps": 12,
    "plan": [{"open": "clock"}],
}  # fmt: skip
RICH_YAML = """\
id: alarm-1
description: Set an alarm for {time.text}
category: app
difficulty: hard
params:
  time:
  - {text: 7:30, minutes: 450}
  - {text: "8:00", minutes: 480}
checks:
- path: clock.alarms
  op: has
  value: {minutes: "{time.minutes}", enabled: true}
preset: {display.brightness: 1.5, sound.dnd: false}
allow: [ui.*]
tags: [on, 010]
max_steps: 12
plan:
- open: clock
"""


def test_c51_the_same_task_has_the_same_id_and_digest_in_json_and_yaml(tmp_path: Path) -> None:
    (from_json,) = tasks_of(write(tmp_path, "a.json", json.dumps(RICH)))
    (from_lines,) = tasks_of(write(tmp_path, "a.jsonl", json.dumps(RICH)))
    (from_yaml,) = tasks_of(write(tmp_path, "a.yaml", RICH_YAML))
    assert from_json == from_lines == from_yaml
    assert from_json.digest == from_yaml.digest
    assert from_yaml.instantiate(3) == from_json.instantiate(3)


# --- shapes and what else can be wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.yaml", "tasks:\n- goal: go\n"), ("a.yml", "- go\n"), ("a.yaml", "goal: go\n"), ("a.json", '{"tasks": ["go"]}'),
     ("a.json", '[{"instruction": "go"}]'), ("a.jsonl", '"go"\n'), ("a.ndjson", '{"prompt": "go"}\n'), ("A.TXT", "go")],
)  # fmt: skip
def test_a_goal_alone_is_a_task_with_an_id_of_its_own_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    (task,) = tasks_of(write(tmp_path, name, text))
    assert (task.id, task.description, task.difficulty, task.scorable) == ("go-4cd0e2", "go", "medium", False)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"goal": "x", "prompt": "y"}, ""),
        ({"goal": "x", "description": "y"}, '"goal" and "description" mean the same'),
        ({"goal": "  "}, "description is empty"),
        ({"id": "a b", "goal": "x"}, 'id "a b" must be'),
        ({"id": "-a", "goal": "x"}, 'id "-a" must be'),
        ({"id": "Settings", "goal": "x"}, "name of a selection"),
        ({"id": "a"}, "description is missing"),
        ({"goal": "Open {app}"}, 'names a parameter "{app}" that is not given'),
        ({"goal": "Open {ap}", "params": {"app": ["x"]}}, 'did you mean "app"?'),
        ({"goal": "Open {app.name}", "params": {"app": [{"name": "x"}, "y"]}}, "not every value"),
        ({"goal": "Open {app}", "params": {"app": []}}, "has no values"),
        ({"goal": "Open it", "params": {"app": ["x"]}}, 'parameter "app" is used nowhere'),
        ({"goal": "x", "validation_query": "wifi_enable"}, '(did you mean "wifi_enabled"?)'),
        ({"goal": "x", "checks": [{"path": "a", "op": "matches", "value": "("}]}, 'check "a": matches: missing )'),
        ({"goal": "x", "checks": [{"pth": "a"}]}, 'unknown field "pth" (did you mean "path"?)'),
        ({"goal": "x", "checks": [{"path": "a", "op": "le", "value": "{n}"}], "params": {"n": [1, "2"]}},
            "not a number"),
        ({"goal": "\ud800"}, "not Unicode"),
        ({"goal": 5.5}, "in quotes"),
        ({"goal": None}, "description: input should be a valid string, not null"),
        ({"goal": "x", "tags": "wifi"}, "tags: input should be a valid array"),
    ],
)  # fmt: skip
def test_a_wrong_task_is_refused_with_the_reason(tmp_path: Path, task: dict[str, object], words: str) -> None:
    assert words in failure_of(write(tmp_path, "a.json", json.dumps(task))).what


def test_a_file_of_another_kind_is_refused_with_the_kinds_there_are(tmp_path: Path) -> None:
    error = failure_of(write(tmp_path, "a.jsonn", "{}"))
    assert '".jsonn" (did you mean ".json"?)' in error.what
    assert "the task file can't be read" in failure_of(tmp_path / "absent.json").what


def test_a_located_task_tells_where_it_stands(tmp_path: Path) -> None:
    (one,) = load_file(write(tmp_path, "a.txt", "\ngo\n"))
    assert isinstance(one, Located)
    assert one.where == f"{tmp_path / 'a.txt'}, line 2"
