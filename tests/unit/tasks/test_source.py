from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from cuarl.errors import TaskError
from cuarl.tasks.select import Filters
from cuarl.tasks.source import Selection, load
from cuarl.tasks.suites import Role
from tests.unit.tasks.conftest import write_suite

TRAIN = ["toy_01_open_settings", "toy_02_enable_wifi", "toy_03_brightness", "toy_04_home"]
EVAL = ["held_01_dnd", "held_02_saver"]


def pick(suites: Path, *selectors: str, role: Role | None = "train", stdin: str | None = None) -> list[str]:
    source = None if stdin is None else io.StringIO(stdin)
    return ids(load(selectors, role=role, folders=[suites], stdin=source))


def ids(selection: Selection) -> list[str]:
    return [task.id for task in selection.tasks]


def refusal(
    suites: Path, selectors: Sequence[str], filters: Filters | None = None, role: Role | None = "train"
) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load(selectors, filters, role=role, folders=[suites])
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize(
    ("selectors", "role", "selected"),
    [
        ((), "train", TRAIN),
        ((), "eval", EVAL),
        ((), None, [*TRAIN, *EVAL, "toy_files"]),
        (("all",), "eval", EVAL),
        (("settings",), "train", TRAIN[1:3]),
        (("SETTINGS",), "eval", EVAL),
        (("easy",), "train", [TRAIN[0], TRAIN[1], TRAIN[3]]),
        (("app, navigation",), "train", [TRAIN[0], TRAIN[3]]),
        (("toy-basics",), "eval", TRAIN),
        (("toy-held-out/*dnd",), "train", EVAL[:1]),
        (("demo_eval",), "train", EVAL),
        (("toy_0[13]*",), "train", [TRAIN[0], TRAIN[2]]),
        (("toy_files",), "train", ["toy_files"]),
        (("navigation", "toy-basics", "toy_04_home"), "train", [TRAIN[3], *TRAIN[:3]]),
    ],
)
def test_a_selector_picks_tasks(
    suites: Path, selectors: tuple[str, ...], role: Role | None, selected: list[str]
) -> None:
    assert pick(suites, *selectors, role=role) == selected


def test_a_category_never_picks_from_suites_of_another_role(suites: Path) -> None:
    for selector in ("settings", "easy", "all", "*"):
        assert not set(pick(suites, selector)) & set(EVAL)
        assert not set(pick(suites, selector, role="eval")) & set(TRAIN)


@pytest.mark.parametrize(
    ("selectors", "envs", "picked"),
    [
        ((), (), False),
        (("app",), (), False),
        (("easy",), (), False),
        (("desk_*", "toy_04_home"), (), None),
        (("desktop",), (), True),
        (("toy-desk",), (), True),
        (("toy-desk/desk_*",), (), True),
        (("desk_open",), (), True),
        (("app",), ("desktop",), True),
        ((), ("phone",), False),
    ],
)
def test_desktop_tasks_are_picked_only_where_the_desktop_is_meant(
    suites: Path, selectors: tuple[str, ...], envs: tuple[str, ...], picked: bool | None
) -> None:
    desk = "id: desk_open\ndescription: Open Files\ncategory: app\ndifficulty: easy\n"
    write_suite(suites, "toy-desk", "role: train\nenv: desktop\n", desk)
    if picked is None:
        assert "--tasks 'toy-desk/desk_*'" in str(refusal(suites, selectors).hint)
        return
    selection = load(selectors, Filters(envs=envs), role="train", folders=[suites])
    assert ("desk_open" in ids(selection)) is picked
    assert "desk_open" in ids(load((), role=None, folders=[suites]))


def test_tasks_of_another_role_are_picked_by_name_with_a_note(suites: Path) -> None:
    selection = load(["toy-held-out", "toy_04_home"], folders=[suites])
    assert ids(selection) == [*EVAL, "toy_04_home"]
    assert selection.notes == ("from suites that are not for train: held_01_dnd, held_02_saver",)


def test_a_category_without_tasks_is_an_error_alone_and_a_note_among_others(suites: Path) -> None:
    assert refusal(suites, ["input"]).what == 'no train suite has a task of "input"'
    selection = load(["input,navigation"], folders=[suites])
    assert (ids(selection), selection.notes) == (["toy_04_home"], ('no train suite has a task of "input"',))
    assert load(["input"], folders=[suites], allow_empty=True).tasks == ()


def test_a_glob_that_matches_only_elsewhere_says_where(suites: Path) -> None:
    error = refusal(suites, ["held_*"])
    assert error.what == 'no task of a train suite matches "held_*", but some of other suites do'
    assert error.hint == "--tasks 'toy-held-out/held_*'"
    assert refusal(suites, ["nothing*"]).what == 'no task id matches "nothing*"'


def test_files_and_suite_folders_are_selectors_too(suites: Path, tmp_path: Path) -> None:
    goals = tmp_path / "my goals, new.txt"
    goals.write_text("Open the clock\n")
    mine = write_suite(tmp_path, "mine", "role: train\n", "[{goal: Open the mail}]")
    selected = pick(suites, str(goals), f"{mine},toy_04_home")
    assert [i.rsplit("-", 1)[0] for i in selected] == ["open-the-clock", "open-the-mail", "toy_04_home"]


@pytest.mark.parametrize("text", ["x" * 5000, "~nobody-at-all/x", "a\0b"])
def test_text_that_can_be_no_path_is_an_unknown_name(suites: Path, text: str) -> None:
    assert "no category, suite, task id or file is called" in refusal(suites, [text]).what


def test_a_missing_file_is_an_error_by_its_name(suites: Path) -> None:
    error = refusal(suites, ["absent.yaml"])
    assert (error.what, error.where) == ("the task file can't be read: No such file or directory", "absent.yaml")


def test_ids_are_read_from_standard_input(suites: Path) -> None:
    assert pick(suites, "-", stdin="toy_04_home\n\n# note\n held_01_dnd\r\n") == ["toy_04_home", "held_01_dnd"]


@pytest.mark.parametrize("stdin", [None, "", "\n# nothing\n"])
def test_standard_input_without_ids_is_an_error(suites: Path, stdin: str | None) -> None:
    with pytest.raises(TaskError, match="standard input"):
        pick(suites, "-", stdin=stdin)


def test_all_unknown_names_are_listed_with_suggestions(suites: Path) -> None:
    error = refusal(suites, ["setings,toy_01_open_setings", "toy-basic"])
    assert error.what == (
        'no category, suite, task id or file is called "setings" (did you mean "settings"?), '
        '"toy_01_open_setings" (did you mean "toy_01_open_settings"?), "toy-basic" (did you mean "toy-basics"?)'
    )
    with pytest.raises(TaskError, match='is called "toy_99"'):
        pick(suites, "-", stdin="toy_99\n")


def test_c50_a_task_that_is_selected_twice_counts_once_with_a_note(suites: Path) -> None:
    selection = load(["toy-basics", "settings", "toy_02_enable_wifi"], folders=[suites])
    assert ids(selection) == TRAIN
    assert selection.notes == ("selected more than once, counted once: 3",)


def test_c50_another_task_of_a_known_id_is_an_error(suites: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("id: toy_04_home\ngoal: Go somewhere else\n")
    error = refusal(suites, ["toy-basics", str(path)])
    assert error.what == 'two different tasks have the id "toy_04_home"'
    assert str(path) in str(error.where)


def test_an_empty_selection_is_an_error_unless_it_is_a_listing(suites: Path) -> None:
    filters = Filters(difficulties=("hard",))
    error = refusal(suites, ["settings"], filters)
    assert (error.what, error.where) == (
        'no task is left: "difficulty hard" leaves none',
        "2 selected → difficulty hard: 0",
    )
    assert load(["settings"], filters, folders=[suites], allow_empty=True).tasks == ()


def test_notes_tell_of_a_limit_that_is_not_reached_and_of_tasks_without_checks(suites: Path, tmp_path: Path) -> None:
    path = tmp_path / "goals.txt"
    path.write_text("Open the clock\n")
    selection = load([str(path)], Filters(limit=5), folders=[suites])
    assert selection.notes == (
        "fewer tasks than the limit of 5: 1",
        f"without checks, so only a judge model could score them: {ids(selection)[0]}",
    )


def test_the_digest_depends_on_the_contents_and_not_on_the_order(suites: Path) -> None:
    digests = {
        load(s, folders=[suites]).digest
        for s in (["toy-basics"], ["toy_04_home", "toy-basics"], ["toy-basics", "toy-held-out/*dnd"])
    }
    assert len(digests) == 2


def test_a_listing_in_json_can_be_selected_from_again(suites: Path, tmp_path: Path) -> None:
    selection = load(["toy-basics"], folders=[suites])
    path = tmp_path / "again.json"
    path.write_text(json.dumps([task.model_dump(mode="json") for task in selection.tasks]))
    assert load([str(path)], folders=[suites]).tasks == selection.tasks


def test_a_file_with_splits_serves_training_and_evaluation_each_with_its_part(suites: Path, tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    splits = ("train", "train", "wording", "object", "app")
    check = {"path": "x", "value": 1}
    lines = [{"id": f"m{i}", "description": f"do {i}", "split": s, "checks": [check]} for i, s in enumerate(splits)]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"id": "any", "description": "do it"}]))

    def of(role: Role | None, *splits: str) -> Selection:
        return load([str(path)], Filters(splits=splits), role=role, folders=[suites])

    assert ids(of("train")) == ["m0", "m1", "any"] and "left out, not for train: 3 (--split)" in of("train").notes
    assert ids(of("eval")) == ["m2", "m3", "m4", "any"]
    assert ids(of(None)) == [*(f"m{i}" for i in range(5)), "any"]
    assert ids(of("train", "wording", "app")) == ids(of("eval", "wording", "app")) == ["m2", "m4"]
    assert 'unknown split "word"' in refusal(suites, [str(path)], Filters(splits=("word",))).what
