from __future__ import annotations

from pathlib import Path

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.library import Library
from cuarl.tasks.suites import load_suite, load_suites, shipped_folder
from tests.unit.tasks.conftest import write_suite


def refused(folder: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_suite(folder)
    return caught.value


def test_tasks_get_the_suites_name_and_environment(suites: Path) -> None:
    by_name = {suite.name: suite for suite in load_suites([suites])}
    assert list(by_name) == ["toy-basics", "toy-held-out", "toy-shell"]
    (task,) = by_name["toy-shell"].tasks
    assert (task.suite, task.env) == ("toy-shell", "container")
    assert by_name["toy-basics"].tasks[0].env == "phone"
    assert [suite.suite.role for suite in by_name.values()] == ["train", "eval", "other"]


def test_the_files_of_a_suite_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = write_suite(tmp_path, "two", "role: train\n", "- {id: b, goal: b}\n", "2.yaml")
    (folder / "1.jsonl").write_text('{"id": "a", "goal": "a"}\n')
    (folder / "README.md").write_text("not a task file")
    assert [task.id for task in load_suite(folder).tasks] == ["a", "b"]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("rol: train\n", 'unknown field "rol" (did you mean "role"?)'),
        ("role: training\n", "role: input should be 'train', 'eval' or 'other'"),
        ("name: other\n", 'the suite is named "other", but its folder "s"'),
        ("role: [\n", "not YAML"),
    ],
)
def test_a_wrong_suite_file_is_refused(tmp_path: Path, about: str, words: str) -> None:
    assert words in refused(write_suite(tmp_path, "s", about, "- go\n")).what


def test_a_suite_without_tasks_or_with_foreign_ones_is_refused(tmp_path: Path) -> None:
    folder = write_suite(tmp_path, "s", "role: train\n", "{id: a, goal: a, suite: t}\n")
    assert 'of suite "t", not "s"' in refused(folder).what
    (folder / "tasks.yaml").unlink()
    assert "has no task files" in refused(folder).what


def test_a_name_or_id_that_two_suites_use_is_refused(suites: Path, tmp_path: Path) -> None:
    write_suite(tmp_path, "toy-basics", "role: train\n", "- go\n")
    with pytest.raises(TaskError, match='two suites are named "toy-basics"'):
        load_suites([suites, tmp_path / "toy-basics"])
    write_suite(tmp_path, "more", "role: train\n", "{id: toy_04_home, goal: other}\n")
    with pytest.raises(TaskError, match='two different tasks have the id "toy_04_home"'):
        load_suites([suites, tmp_path / "more"])


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="does not exist"):
        load_suites([tmp_path / "absent"])


def test_the_role_of_a_task_is_that_of_its_suite_and_none_for_a_file(suites: Path, tmp_path: Path) -> None:
    library = Library.open([suites])
    (home,) = library.by_id(["toy_04_home"])
    assert library.role_of(home) == "train"
    assert library.role_of(type(home)(home.task, "mine.yaml", 1)) is None


def test_the_shipped_suites_are_found() -> None:
    assert shipped_folder().is_dir()
