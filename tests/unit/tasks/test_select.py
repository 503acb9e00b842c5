from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.errors import TaskError
from cuarl.tasks.select import Condition, Count, Filters, apply, require_checks, require_some, sample
from cuarl.tasks.task import Check, Task


def task(number: int, **fields: object) -> Task:
    return Task.model_validate({"id": f"t{number:02}", "description": f"Goal {number}", **fields})


TASKS = [
    task(1, category="settings", difficulty="easy", tags=("wifi", "toggle"), suite="toy-basics"),
    task(2, category="settings", difficulty="hard", tags=("wifi",), suite="toy-basics", max_steps=20),
    task(3, category="app", difficulty="easy", env="desktop", suite="toy-shell"),
    task(4, category="input", difficulty="medium", suite="toy-shell", validation_query="wifi_enabled"),
]


def ids(tasks: list[Task]) -> list[str]:
    return [t.id for t in tasks]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (Filters(), ["t01", "t02", "t03", "t04"]),
        (Filters(categories=("Settings ",)), ["t01", "t02"]),
        (Filters(categories=("app", "input")), ["t03", "t04"]),
        (Filters(categories=("settings",), difficulties=("EASY",)), ["t01"]),
        (Filters(tags=("WIFI",)), ["t01", "t02"]),
        (Filters(suites=("toy-shell",), envs=("phone",)), ["t04"]),
        (Filters(ids=("t0[12]", "*4")), ["t01", "t02", "t04"]),
        (Filters(where=(Condition.parse("difficulty!=easy"),)), ["t02", "t04"]),
        (Filters(where=(Condition.parse("tags=wifi"), Condition.parse("tags!=toggle"))), ["t02"]),
        (Filters(where=(Condition.parse("max_steps = 20"),)), ["t02"]),
        (Filters(where=(Condition.parse("description~=goal [34]$"),)), ["t03", "t04"]),
        (Filters(where=(Condition.parse("validation_query="),)), ["t01", "t02", "t03"]),
        (Filters(where=(Condition.parse("validation_query~=wifi"),)), ["t04"]),
        (Filters(limit=2), ["t01", "t02"]),
        (Filters(limit=9), ["t01", "t02", "t03", "t04"]),
        (Filters(difficulties=("hard",), categories=("app",)), []),
    ],
)
def test_filters_keep_what_passes_them_all_in_order(filters: Filters, left: list[str]) -> None:
    assert ids(apply(TASKS, filters)[0]) == left


def test_each_filter_counts_what_it_left() -> None:
    filters = Filters(categories=("settings", "app"), difficulties=("easy",), tags=("wifi",), limit=3)
    assert apply(TASKS, filters)[1] == [
        Count("category settings,app", 3),
        Count("difficulty easy", 2),
        Count("tag wifi", 1),
        Count("limit 3", 1),
    ]


def test_an_empty_selection_names_the_filter_that_emptied_it() -> None:
    kept, counts = apply(TASKS, Filters(categories=("app",), difficulties=("hard",), tags=("x",)))
    with pytest.raises(TaskError) as caught:
        require_some(kept, counts, len(TASKS))
    assert caught.value.what == 'no task is left: "difficulty hard" leaves none'
    assert caught.value.where == "4 selected → category app: 1 → difficulty hard: 0 → tag x: 0"


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (Filters(categories=("setings",)), 'unknown category "setings" (did you mean "settings"?)'),
        (Filters(difficulties=("hrad",)), 'unknown difficulty "hrad" (did you mean "hard"?)'),
        (Filters(limit=0), "limit must be at least 1, not 0"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_suggestion(filters: Filters, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        apply(TASKS, filters)
    assert caught.value.what == words
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("easy", "is not a condition"),
        ("", "is not a condition"),
        ("difficult=easy", '(did you mean "difficulty"?)'),
        ("id~=(", "not a regular expression"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused(text: str, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        Condition.parse(text)
    assert words in caught.value.what


POOL = [task(i) for i in range(40)]


@given(st.integers(0, 2**40), st.integers(1, 50))
def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order(seed: int, limit: int) -> None:
    chosen = ids(sample(POOL, limit, seed))
    assert chosen == ids(sample(POOL, limit, seed)) == sorted(chosen)
    assert len(chosen) == len(set(chosen)) == min(limit, len(POOL))
    assert set(chosen) <= set(ids(sample(POOL, limit + 1, seed)))
    assert set(ids(sample(POOL[:-1], limit, seed))) >= set(chosen) - {POOL[-1].id}


def test_every_task_is_drawn_equally_often_over_seeds() -> None:
    counts = {t.id: 0 for t in POOL}
    for seed in range(400):
        for chosen in sample(POOL, 10, seed):
            counts[chosen.id] += 1
    assert all(60 < count < 145 for count in counts.values())  # 100 expected, standard deviation 8.7


def test_without_a_seed_a_limit_keeps_the_first() -> None:
    assert ids(sample(POOL, 3, None)) == ["t00", "t01", "t02"]


def test_tasks_that_nobody_can_judge_are_refused_by_name() -> None:
    with pytest.raises(TaskError) as caught:
        require_checks([*TASKS, *POOL[5:7]])
    assert caught.value.what == "tasks without checks can't be scored: t01, t02, t03 and 2 more"
    require_checks([TASKS[3], TASKS[0].model_copy(update={"checks": (Check(path="x", value=1),)})])
