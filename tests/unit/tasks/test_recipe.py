from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.source import load
from tests.unit.tasks.test_source import EVAL, TRAIN, pick


def refused(suites: Path, source: Any) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load([source if isinstance(source, str) else json.dumps(source)], folders=[suites])
    return caught.value


@pytest.mark.parametrize(
    ("source", "selected"),
    [
        ({"source_type": "demo_training"}, TRAIN),
        ({"source_type": "demo_eval"}, EVAL),
        ({"source_type": "demo_all"}, [*TRAIN, *EVAL]),
        ({"source_type": "demo_training", "category": "settings"}, TRAIN[1:3]),
        ({"source_type": "demo_training", "category": "settings", "difficulty": "easy"}, TRAIN[1:2]),
        ({"source_type": "demo_training", "limit": 10, "seed": 42}, TRAIN),
        ({"source_type": "ids", "task_ids": ["held_01_dnd", "toy_02_enable_wifi"]}, [EVAL[0], TRAIN[1]]),
        (
            [{"source_type": "demo_training", "category": "navigation"}, {"source_type": "demo_training"}],
            [TRAIN[3], *TRAIN[:3]],
        ),
    ],
)
def test_the_recipes_examples_select_as_documented(suites: Path, source: Any, selected: list[str]) -> None:
    assert pick(suites, json.dumps(source)) == selected


def test_a_limit_draws_the_same_tasks_by_the_same_seed(suites: Path) -> None:
    def drawn(seed: int) -> list[str]:
        return pick(suites, json.dumps({"source_type": "demo_training", "limit": 2, "seed": seed}))

    assert drawn(42) == drawn(42)
    assert len({tuple(drawn(seed)) for seed in range(20)}) > 1
    assert pick(suites, '{"source_type": "demo_training", "limit": 2}') == drawn(42)


def test_goals_are_given_directly_or_in_a_file(suites: Path, tmp_path: Path) -> None:
    goals = ["Open Settings and enable Wi-Fi", "Take a screenshot"]
    (tmp_path / "goals.txt").write_text("\n".join(goals))
    given = load([json.dumps({"source_type": "custom", "custom_tasks": goals})], folders=[suites])
    read = load([json.dumps({"source_type": "file", "file_path": str(tmp_path / "goals.txt")})], folders=[suites])
    assert [task.description for task in given.tasks] == goals
    assert given.tasks == read.tasks
    assert (given.tasks[0].difficulty, given.tasks[0].category) == ("medium", "system")


def test_a_folder_of_task_files_is_split_without_overlap(suites: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(f"Goal {i}" for i in range(10)))
    source = {"source_type": "task_adapter", "tasks_dir": str(folder)}
    training = pick(suites, json.dumps({**source, "split_type": "train"}))
    held_out = pick(suites, json.dumps({**source, "split_type": "eval"}))
    assert (len(training), len(held_out)) == (8, 2)
    assert sorted(training + held_out) == sorted(pick(suites, json.dumps(source)))
    assert held_out != pick(suites, json.dumps({**source, "split_type": "eval", "seed": 1}))
    named = {**source, "task_names": f"{training[0]}, {training[1]}"}
    assert sorted(pick(suites, json.dumps(named))) == sorted(training[:2])


def test_objects_and_names_may_be_mixed_in_one_option(suites: Path) -> None:
    mixed = 'toy_04_home,{"source_type": "ids", "task_ids": ["held_01_dnd", "held_02_saver"]} , app'
    assert pick(suites, mixed) == ["toy_04_home", *EVAL, "toy_01_open_settings"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('{"source_type": ', "not a JSON task source"),
        ("[]", "list of task sources is empty"),
        ('["demo_training"]', "is a JSON object"),
        ({}, "source_type is missing"),
        ({"source_type": "demo_trainig"}, '(did you mean "demo_training"?)'),
        ({"source_type": "demo_training", "categroy": "app"}, '(did you mean "category"?)'),
        ({"source_type": "demo_training", "category": "apps"}, 'unknown category "apps" (did you mean "app"?)'),
        ({"source_type": "demo_training", "limit": 0}, "limit: input should be greater than 0"),
        ({"source_type": "demo_training", "task_ids": ["x"]},
            'task_ids has no effect with source_type "demo_training"'),
        ({"source_type": "ids"}, "needs task_ids"),
        ({"source_type": "ids", "task_ids": ["toy_02_wifi", "settings"]},
            '"toy_02_wifi" (did you mean "toy_02_enable_wifi"?), "settings"'),
        ({"source_type": "custom", "custom_tasks": ["a", " "]}, "description is empty"),
        ({"source_type": "file", "file_path": "absent.txt"}, "can't be read"),
        ({"source_type": "task_adapter", "tasks_dir": "absent"}, "does not exist"),
        ({"source_type": "gym"}, "tasks of a gym server"),
        ({"source_type": "demo_training", "difficulty": "hard"}, 'no task is left: "difficulty hard" leaves none'),
    ],
)  # fmt: skip
def test_a_wrong_source_is_refused_with_the_reason(suites: Path, source: Any, words: str) -> None:
    error = refused(suites, source)
    assert words in error.what
    assert error.exit_code == 2


def test_the_source_among_several_is_named(suites: Path) -> None:
    error = refused(suites, [{"source_type": "demo_training"}, {"source_type": "ids"}])
    assert error.where == "--tasks, source 2"
