import pytest

from cuarl.store import Store
from cuarl.store.check import check
from cuarl.trajectory import Turn
from cuarl.types import Finish
from tests.unit.store.databases import query, set_up
from tests.unit.store.samples import picture, plain, rich, save


def shot_episode(name, *shots):
    turns = tuple(Turn(index=i, screenshot=s.ref, action=Finish()) for i, s in enumerate(shots))
    return plain(name, turns=turns, final_screenshot=shots[-1].ref)


@pytest.fixture
def shots():
    return [picture(i) for i in range(3)]


@pytest.fixture
def filled(store, shots):
    save(store, shot_episode("a", *shots[:2]), shots)
    return store


def test_a_sound_store_has_no_problems(filled, shots):
    report = check(filled, deep=True)
    assert report.problems == ()
    assert (report.counts["episodes"], report.counts["turns"]) == (1, 2)
    assert (report.screenshots, report.unused_screenshots) == (2, 1)


def test_a_missing_screenshot_is_named(filled, shots, tmp_path):
    save(filled, shot_episode("b", picture(9)))
    assert check(filled).problems == (f"screenshot {picture(9).digest} is missing",)


def test_a_broken_screenshot_is_found_when_looking_deep(filled, shots, tmp_path):
    digest = shots[0].digest
    path = tmp_path / "blobs" / digest[:2] / f"{digest[2:]}.png"
    path.write_bytes(shots[2].png())
    assert check(filled).problems == ()
    assert len(check(filled, deep=True).problems) == 1


def test_an_episode_that_is_not_whole_is_named(filled, url):
    query(url, "DELETE FROM turns WHERE turn = 1")
    assert check(filled).problems == ("episode a has 1 of 2 turns",)


def test_an_episode_that_lost_its_verdict_is_named(store, url):
    save(store, rich())
    save(store, plain())
    assert not [p for p in check(store).problems if "verdict" in p]
    query(url, "DELETE FROM verdicts WHERE episode_id = 'rich'")
    assert "episode rich and its verdict don't agree" in check(store).problems


def test_an_episode_that_cannot_be_read_is_found_when_looking_deep(filled, url):
    query(url, "UPDATE episodes SET stop = 'no such reason'")
    assert check(filled).problems == ()
    [problem] = check(filled, deep=True).problems
    assert problem.startswith("episode a: ")


def test_many_problems_of_a_kind_are_cut_short(store):
    for i in range(30):
        save(store, shot_episode(f"e{i}", picture(i)))
    problems = check(store).problems
    assert len(problems) == 21
    assert problems[-1] == "… 10 more screenshots are missing"


def test_a_changed_schema_is_told(empty_url, tmp_path):
    set_up(empty_url)
    query(empty_url, "DROP INDEX ix_episodes_task_id_step_id")
    query(empty_url, "ALTER TABLE runs ADD COLUMN extra TEXT")
    with Store.open(empty_url, str(tmp_path), runs_dir=tmp_path) as store:
        problems = check(store).problems
    assert len(problems) == 2
    assert all(p.startswith("schema: ") for p in problems)


def test_a_dangling_row_is_told(sqlite_store, tmp_path):
    url = f"sqlite:///{tmp_path}/test.db"
    query(url, "INSERT INTO metrics VALUES ('nobody', 1, 'x', 1.0, 0)")
    assert check(sqlite_store).problems == ("1 rows of metrics refer to nothing",)
