"""Damaged SQLite files: the check names what is wrong and never breaks off, and what is readable can be salvaged."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from cuarl.errors import ConfigError, StoreError
from cuarl.store import EvaluationRecord, PolicyRecord, Store
from cuarl.store.check import check
from cuarl.store.migrate import migrate
from cuarl.store.salvage import salvage
from cuarl.store.status import status
from cuarl.tasks.task import Task
from tests.unit.store.databases import query
from tests.unit.store.samples import picture, plain, rich, run, save

EPISODES = [rich(f"rich-{i:03d}", run_id=f"r{i % 3}", group_id=f"g{i // 4}", step=i // 8) for i in range(120)]
BY_ID = {e.episode_id: e for e in EPISODES}
PAGE = 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file with a bit of everything, made once, to be copied."""
    path = tmp_path_factory.mktemp("whole") / "whole.db"
    with Store.open(f"sqlite:///{path}") as store:
        for i in range(3):
            store.start_run(run(f"r{i}", config={"a": "x" * 3000}))
            for step in range(20):
                store.log_metrics(f"r{i}", step, {f"m{j}": 0.5 for j in range(10)})
                store.log_event(f"r{i}", "kind", {"step": step})
        store.save_tasks([Task(id=f"t{i}", description="Do it") for i in range(20)])
        store.write([store._as_write(e) for e in EPISODES])
        store.save_evaluation(EvaluationRecord(id="v", run_id="r1", suite="s"), list(BY_ID)[:50])
        store.save_policy(PolicyRecord(name="p", run_id="r1"))
    return path


@pytest.fixture
def damaged(whole, tmp_path):
    """A copy of the file, and a function that punches holes into it."""
    path = tmp_path / "bad.db"
    shutil.copy(whole, path)

    def punch(rng, holes):
        data = bytearray(path.read_bytes())
        for _ in range(holes):
            at = rng.randrange(PAGE, len(data) - 500)
            data[at : at + 500] = rng.choice([bytes(500), rng.randbytes(500)])
        path.write_bytes(data)
        return f"sqlite:///{path}"

    return punch


def is_damaged(url):
    try:
        with Store.open(url) as store:
            report = check(store, deep=True)
    except StoreError as error:  # nothing can be asked of a file whose schema is damaged
        assert error.hint == "cuarl db salvage sound.db"
        return True
    return report.damaged or any("episode" in problem for problem in report.problems)


@pytest.mark.parametrize("seed", range(6))
def test_holes_are_found_and_what_is_around_them_is_salvaged(damaged, seed, tmp_path):
    url = damaged(random.Random(seed), holes=(1, 3, 10)[seed % 3])
    before = (tmp_path / "bad.db").read_bytes()
    done = salvage(url, tmp_path / "sound.db")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.db", "sound.db"]
    assert (tmp_path / "bad.db").read_bytes() == before
    with Store.open(f"sqlite:///{tmp_path}/sound.db") as store:
        found = list(store.trajectories())
        assert {p.split()[0] for p in check(store, deep=True).problems} <= {"screenshot"}  # nobody stored the pictures
        assert len(found) == done.copied["episodes"]
        assert [e for e in found if e != BY_ID[e.episode_id]] == []
        assert {c.entity for c in store.history()} <= {"run", "episode", "evaluation"}
        assert all(store.group(e.group_id).task_id == "wifi_on" for e in found[:5])
    assert is_damaged(url) or (len(found) == len(EPISODES) and not done.unreadable)


def schema_pages(path):
    with closing(sqlite3.connect(path)) as connection:
        roots = {number for (number,) in connection.execute("SELECT rootpage FROM sqlite_master")}
    data = path.read_bytes()
    # an empty page's type is that of a leaf of tables, and definitions are the only such pages that hold "CREATE"
    pages = [n for n in range(2, len(data) // PAGE + 1) if b"CREATE " in data[(n - 1) * PAGE : n * PAGE]]
    assert not roots & set(pages)
    return [1, *pages]


@pytest.mark.parametrize("filling", [bytes(500), random.Random(0).randbytes(500)], ids=["zeros", "noise"])
def test_a_damaged_schema_costs_nothing_of_what_it_lists(whole, tmp_path, filling):
    pages = schema_pages(whole)
    assert len(pages) > 3
    path = tmp_path / "bad.db"
    for at in [(page - 1) * PAGE + offset for page in pages for offset in (0, 1600)]:
        data = bytearray(whole.read_bytes())
        data[at : at + 500] = filling
        path.write_bytes(data)
        done = salvage(f"sqlite:///{path}", tmp_path / "sound.db")
        assert (done.copied["episodes"], done.unreadable, done.left_out) == (len(EPISODES), {}, {}), divmod(at, PAGE)
        (tmp_path / "sound.db").unlink()
        assert path.read_bytes() == data and [p.name for p in tmp_path.iterdir()] == ["bad.db"]


def test_what_a_side_log_holds_is_found_when_the_schema_is_damaged(whole, tmp_path):
    path, later = tmp_path / "open.db", tmp_path / "later" / "bad.db"
    later.parent.mkdir()
    shutil.copy(whole, path)
    with Store.open(f"sqlite:///{path}") as store:
        save(store, plain("only-in-the-log", run_id="r1"))
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{later}{ending}")
    data = bytearray(later.read_bytes())
    page = schema_pages(whole)[-1]
    data[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    later.write_bytes(data)
    assert salvage(f"sqlite:///{later}", tmp_path / "sound.db").copied["episodes"] == len(EPISODES) + 1


def test_another_layout_is_not_read_with_our_schema(tmp_path):
    with closing(sqlite3.connect(tmp_path / "bad.db")) as connection:
        connection.execute("CREATE TABLE theirs (a, b)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n LIMIT 60000) INSERT INTO theirs SELECT i, "
            "'some text' FROM n"
        )
        connection.commit()
    data = bytearray((tmp_path / "bad.db").read_bytes())
    data[:PAGE] = bytes(PAGE)
    (tmp_path / "bad.db").write_bytes(data)
    with pytest.raises(StoreError, match="first page"):
        salvage(f"sqlite:///{tmp_path}/bad.db", tmp_path / "sound.db")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.db"]


def test_a_single_hole_costs_a_page_of_episodes_and_not_the_store(damaged, tmp_path):
    saved = []
    for seed in range(3):
        url = damaged(random.Random(100 + seed), holes=1)
        saved.append(salvage(url, tmp_path / f"sound-{seed}.db").copied["episodes"])
    assert max(saved) >= 100 and saved == sorted(saved, reverse=True)  # the holes add up


def test_a_sound_file_comes_back_whole(whole, tmp_path):
    done = salvage(f"sqlite:///{whole}", tmp_path / "again.db")
    assert (done.left_out, done.unreadable) == ({}, {})
    with Store.open(f"sqlite:///{tmp_path}/again.db") as again, Store.open(f"sqlite:///{whole}") as store:
        assert (
            list(again.trajectories())
            == list(store.trajectories())
            == sorted(EPISODES, key=lambda e: (e.step, e.group_id))
        )
        assert again.history() == store.history() and again.evaluation_episode_ids("v") == list(BY_ID)[:50]
        assert again.metrics("r1") == store.metrics("r1") and again.runs() == store.runs()


def test_episodes_stay_together_whose_runs_row_is_lost(damaged, whole, tmp_path):
    url = f"sqlite:///{tmp_path}/bad.db"
    with sqlite3.connect(tmp_path / "bad.db") as connection:
        connection.execute("DELETE FROM runs WHERE id = 'r1'")
        connection.execute("DELETE FROM groups WHERE id = 'g3'")
        connection.execute("DELETE FROM samples WHERE episode_id = 'rich-007'")
        connection.execute("DELETE FROM turns WHERE episode_id = 'rich-008' AND turn = 1")
    connection.close()
    done = salvage(url, tmp_path / "sound.db")
    assert done.left_out["episodes"] == 2
    with Store.open(f"sqlite:///{tmp_path}/sound.db") as store:
        assert (store.run("r1").status, store.run("r1").message) == ("failed", "its own row could not be salvaged")
        assert len(store.episode_ids(run="r1")) == 39 and len(store.group("g3").trajectories) == 4
        assert check(store).problems[0].startswith("screenshot")


def test_an_episode_that_lost_its_samples_is_no_scripted_one(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    with Store.open(url) as store:
        save(store, rich())
        save(store, plain("scripted"))
    query(url, "DELETE FROM samples WHERE turn = 0")
    with Store.open(url) as store:
        assert [p for p in check(store, deep=True).problems if p.startswith("episode")] == [
            "episode rich: 8 of 16 tokens are there"
        ]


def test_a_file_of_an_older_schema_is_salvaged_and_brought_up_to_date(tmp_path):
    url = f"sqlite:///{tmp_path}/old.db"
    with Store.open(url, f"{tmp_path}/blobs") as store:
        store.start_run(run())
        save(store, plain(run_id="r1"), [picture(1)])
        save(store, plain("lost"))
    migrate(url, "0002", force=True)
    query(url, "UPDATE episodes SET group_id = 'nowhere' WHERE id = 'lost'")
    salvage(url, tmp_path / "new.db")
    with Store.open(f"sqlite:///{tmp_path}/new.db") as store:
        assert list(store.trajectories()) == [plain(run_id="r1")]


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000, b"SQLite format 3\0" + bytes(8000)])
def test_a_file_that_holds_nothing_is_an_error_that_names_copies(tmp_path, content):
    (tmp_path / "bad.db").write_bytes(content)
    if content:
        with pytest.raises(StoreError, match="first page") as caught:
            salvage(f"sqlite:///{tmp_path}/bad.db", tmp_path / "new.db")
        assert ".bak" in caught.value.hint
        with pytest.raises(StoreError, match="damaged") as caught:
            Store.open(f"sqlite:///{tmp_path}/bad.db")
        assert caught.value.hint.startswith("cuarl db salvage")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.db"]


def test_what_is_there_is_not_overwritten_and_what_is_no_file_is_refused(whole, tmp_path):
    (tmp_path / "mine.db").write_text("mine")
    with pytest.raises(ConfigError, match="exists"):
        salvage(f"sqlite:///{whole}", tmp_path / "mine.db")
    with pytest.raises(ConfigError, match="SQLite"):
        salvage("postgresql://127.0.0.1:9/nobody", tmp_path / "new.db")
    with pytest.raises(StoreError, match="no database file"):
        salvage(f"sqlite:///{tmp_path}/none.db", tmp_path / "new.db")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.db"]


def test_a_damaged_file_is_named_by_status_too(damaged, tmp_path):
    url = damaged(random.Random(1), holes=100)
    with pytest.raises(StoreError, match="damaged"):
        status(url, None, tmp_path)
