"""Task files as users of other tools met them, with their own texts: each once through a selection, as a command makes
it."""

import json

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.select import Condition, Filters
from cuarl.tasks.source import load

WINDOWS = '\ufeff{"id":"a","prompt":"x"}\r\n\r\n{"id":"b","prompt":"y"}\r\n'
GOALS = "\ufeffOpen Settings\r\n\r\n# a note\r\nTake a screenshot"
SURPRISES = """\
tasks:
- id: 010
  description: on
  category: on
  app: no
  expect: 12:30
  version: 1.10
- id: 2026-01-05
  description: off
  category: off
"""


def written(folder, name, data):
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(folder / name)


def selected(*files, **filters):
    return load(files, Filters(**filters))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_c48_a_windows_file_gives_its_tasks_in_any_encoding_with_a_mark(tmp_path, encoding):
    found = selected(written(tmp_path, "a.jsonl", WINDOWS.encode(encoding)))
    plain = selected(written(tmp_path, "b.jsonl", WINDOWS.removeprefix("\ufeff").replace("\r\n", "\n")))
    assert [(t.id, t.description) for t in found.tasks] == [("a", "x"), ("b", "y")]
    assert found.digest == plain.digest


def test_c48_goals_of_a_windows_text_file_come_without_mark_and_comment(tmp_path):
    found = selected(written(tmp_path, "goals.txt", GOALS))
    assert [t.description for t in found.tasks] == ["Open Settings", "Take a screenshot"]


@pytest.mark.parametrize("text", ["", "\ufeff", "\n\n", "# only a note\n"])
def test_c48_an_empty_file_is_an_error_and_not_nothing(tmp_path, text):
    with pytest.raises(TaskError, match="holds no task"):
        selected(written(tmp_path, "a.txt", text))


def test_c50_files_that_share_an_id(tmp_path):
    a = written(tmp_path, "a.jsonl", '{"id":"t1","prompt":"open settings"}\n{"id":"t1","prompt":"enable wifi"}\n')
    b = written(tmp_path, "b.jsonl", '{"id":"t1","prompt":"open settings"}\n')
    again = written(tmp_path, "again.yaml", "- id: t1\n  prompt: open settings\n")
    other = written(tmp_path, "other.jsonl", '{"id":"t1","prompt":"close settings"}\n')
    with pytest.raises(TaskError, match=r'"t1" is used for two different tasks, first on line 1') as caught:
        selected(a)
    assert caught.value.where == f"{a}, line 2"
    found = selected(b, again)
    assert len(found.tasks) == 1 and "selected more than once, counted once: 1" in found.notes
    with pytest.raises(TaskError, match=r'two different tasks have the id "t1"'):
        selected(b, other)


def test_c50_a_mistyped_field_is_named_and_nothing_is_loaded(tmp_path):
    lines = [
        {"id": "t2", "prompt": "x", "max_step": 5, "category": "Settings "},
        {"id": "t3", "prompt": "y", "category": "settings"},
    ]
    c = written(tmp_path, "c.jsonl", "\n".join(map(json.dumps, lines)))
    with pytest.raises(TaskError, match=r'unknown field "max_step" \(did you mean "max_steps"\?\)'):
        selected(c)
    del lines[0]["max_step"]
    fixed = written(tmp_path, "d.jsonl", "\n".join(map(json.dumps, lines)))
    for filters in ({"categories": ("settings",)}, {"where": (Condition.parse("category=Settings"),)}):
        assert [t.id for t in selected(fixed, **filters).tasks] == ["t2", "t3"]


def test_c51_nothing_of_a_yaml_file_turns_into_another_type(tmp_path):
    """Its own text, whose categories and fields are none of ours, is refused by name with every text as it was
    written."""
    with pytest.raises(TaskError) as caught:
        selected(written(tmp_path, "a.yaml", SURPRISES))
    for text in ('"on"', '"off"', '"app"', '"expect"', '"version"'):
        assert text in caught.value.what, caught.value.what
    ours = SURPRISES.replace("category: on", "name: no").replace("category: off", "name: off")
    ours = ours.replace("app: no", "tags: [12:30, 1.10, on]").replace("  expect: 12:30\n  version: 1.10\n", "")
    first, second = selected(written(tmp_path, "b.yaml", ours)).tasks
    assert (first.id, first.name, first.description, first.tags) == ("010", "no", "on", ("12:30", "1.10", "on"))
    assert (second.id, second.name, second.description) == ("2026-01-05", "off", "off")
    same = [first.model_dump(mode="json", include={"id", "name", "description", "tags"})]
    (task,) = selected(written(tmp_path, "c.json", json.dumps(same))).tasks
    assert (task.id, task.digest) == (first.id, first.digest)
