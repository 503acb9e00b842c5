"""Tasks of gym servers: every wording of a task, the split, and what names mean."""

from __future__ import annotations

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.gym import GymTask, Split, is_summary, narrow, pick, read_listing, read_range, read_task, unique, whole


def task(**raw):
    return read_task(raw, "here")


def several(count):
    return [task(id=f"t_{number:03d}_x", name=f"Name {number}", description="Do it") for number in range(1, count + 1)]


def ids(tasks):
    return [one.task.id if isinstance(one, GymTask) else one.id for one in tasks]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"task_id": "a", "task_number": 7, "name": "N", "description": "D"}, ("a", 7, "N", "D")),
        ({"id": "b_012", "display_name": "N", "description": "D"}, ("b_012", 12, "N", "D")),
        ({"id": "c", "task_name": "N", "description": "D", "instruction": "I"}, ("c", None, "N", "I")),
        ({"meta": {"id": "d", "number": "003", "displayName": "N", "description": "D"}}, ("d", 3, "N", "D")),
        ({"meta": {"id": "e-9", "name": "N", "description": "D"}, "instruction": "I"}, ("e-9", 9, "N", "I")),
        ({"task_id": 5, "description": "D"}, ("5", 5, "", "D")),
        ({"task_id": "", "id": "f", "description": "D", "task_number": 0}, ("f", 0, "", "D")),
    ],
)
def test_every_wording_is_read(raw, expected):
    found = read_task(raw, "here")
    assert (found.task.id, found.number, found.task.name, found.task.description) == expected
    assert found.task.env == "gym" and found.task.scorable and found.task.instantiate(3).goal == expected[3]


@pytest.mark.parametrize(
    ("tags", "difficulty"), [(["easy"], "easy"), (["x", "normal"], "medium"), ("hard", "hard"), ([], "medium")]
)
def test_difficulty_is_the_tags(tags, difficulty):
    assert task(id="a", description="D", tags=tags).task.difficulty == difficulty


def test_braces_in_a_goal_are_no_parameters():
    goal = "Type {name} and {user.first} and {user.last} as they are"
    assert task(id="a", description=goal).task.instantiate(1).goal == goal


def test_listings_are_lists_or_objects_and_may_be_summaries():
    assert read_listing([{"id": "a"}], "x") == read_listing({"tasks": [{"id": "a"}], "total": 1}, "x") == [{"id": "a"}]
    assert is_summary({"id": "a", "name": "N"}) and not is_summary({"meta": {"description": "D"}})
    assert whole({"task": {"id": "a"}}) == whole({"id": "a"}) == {"id": "a"}
    for body in ("tasks", {"items": []}, ["a"], None):
        with pytest.raises(TaskError, match="neither a list"):
            read_listing(body, "x")


@pytest.mark.parametrize(("raw", "words"), [({"description": "D"}, "no id"), ({"id": "a"}, "neither instruction")])
def test_what_is_no_task_is_an_error(raw, words):
    with pytest.raises(TaskError, match=words):
        read_task(raw, "here")


def test_two_tasks_of_one_id_are_an_error():
    with pytest.raises(TaskError, match='the id "t_001_x"'):
        unique([*several(1), *several(1)], "here")


def test_shares_are_disjoint_whole_and_drawn_by_the_seed():
    tasks = several(25)
    train, measured = (Split(ratio=0.8).share(tasks, role) for role in ("train", "eval"))
    assert len(train) == 20 and sorted(ids([*train, *measured])) == ids(tasks)
    assert ids(Split(ratio=0.8).share(list(reversed(tasks)), "train")) == list(reversed(ids(train)))
    assert ids(Split(ratio=0.8, seed=1).share(tasks, "train")) != ids(train)


def test_a_range_measures_and_the_rest_trains():
    tasks = [*several(5), task(id="unnumbered", description="D")]
    how = Split(eval_range="002-003")
    assert ids(how.share(tasks, "eval")) == ["t_002_x", "t_003_x"]
    assert ids(how.share(tasks, "train")) == ["t_001_x", "t_004_x", "t_005_x", "unnumbered"]
    for text in ("3-2", "a-b", "3"):
        with pytest.raises(TaskError, match="no range"):
            read_range(text)


def test_names_are_ids_names_beginnings_numbers_and_ranges():
    tasks = several(12)
    assert ids(pick(tasks, ["t_002_x", "Name 3", "t_00", "11"]))[-1] == "t_011_x"
    assert ids(pick(tasks, ["Name 3", "10-11"])) == ["t_003_x", "t_010_x", "t_011_x"]
    assert ids(pick(tasks, ["Name 1"])) == ["t_001_x"]  # exact before beginnings
    with pytest.raises(TaskError, match=r"Name 13.*did you mean"):
        pick(tasks, ["Name 13"])


def test_filters_name_what_left_nothing():
    tasks = [task(id="a", description="D", tags=["easy", "pay"]), task(id="b", description="D", tags=["hard"])]
    assert ids(narrow(tasks, tags=("PAY", "x"))) == ["a"] and ids(narrow(tasks, difficulties=("hard",))) == ["b"]
    assert len(narrow(tasks, limit=1, seed=3)) == 1
    with pytest.raises(TaskError, match='"tag x" leaves none'):
        narrow(tasks, tags=("x",))
