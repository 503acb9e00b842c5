"""Every revision, up and down, on both databases."""

import sqlite3
import threading

import pytest
from sqlalchemy import create_engine

from cuarl.errors import ConfigError, PrerequisiteError, StoreError
from cuarl.store import EvaluationRecord, SessionRecord, Store
from cuarl.store.check import schema_differences
from cuarl.store.live import LiveWriter
from cuarl.store.migrate import migrate, migration_sql, plan
from cuarl.store.records import BaselineRecord, HumanVerdict, LiveRecord
from cuarl.store.schema import HEAD, REVISIONS, VERSION_TABLE, SchemaState, read_version
from cuarl.store.tables import Base
from cuarl.store.url import parse_url
from tests.unit.store.databases import empty_url, query, set_up
from tests.unit.store.samples import group, rich, run, save, save_session

__all__ = ["empty_url"]
pytestmark = pytest.mark.integration
FIRST = REVISIONS[0]


def look(url):
    engine = create_engine(parse_url(url))
    with engine.connect() as connection:
        found = read_version(connection)
        differences = schema_differences(connection) if found.state is SchemaState.CURRENT else None
    engine.dispose()
    return found, differences


def first(trajectory):
    """What the first revision can hold of an episode."""
    turns = tuple(t.model_copy(update={"resized": None, "started_at": 0.0}) for t in trajectory.turns)
    later = {"backend": "", "device": "", "ready_s": None, "check_at": None, "check_s": None}
    return trajectory.model_copy(update={"turns": turns, **later})


def fill(url, folder, episodes=8):
    """Rows in every table of the first revision."""
    with Store.open(url, str(folder / "blobs"), runs_dir=folder) as store:
        store.start_run(run())
        store.start_run(run("r2"))
        save(store, first(rich(run_id="r1")))
        for i in range(episodes // 4):
            save(store, group(f"g{i}", 4, run_id="r1"))
        store.log_metrics("r1", 1, {"loss": 1.0})
        store.log_event("r1", "x", {})


def counts(url):
    return {t.name: query(url, f"SELECT count(*) FROM {t.name}")[0][0] for t in Base.metadata.sorted_tables}


def dangling(url):
    return query(url, "PRAGMA foreign_key_check") if url.startswith("sqlite") else []


def test_c56_every_revision_goes_up_and_down_and_the_newest_equals_the_mappings(empty_url):
    assert migrate(empty_url).direction == "up"
    assert look(empty_url)[1] == []
    for revision in (*reversed(REVISIONS[:-1]), "base"):
        assert migrate(empty_url, revision).target == revision
        assert look(empty_url)[0].current == (None if revision == "base" else revision)
    for revision in REVISIONS:
        migrate(empty_url, revision)
    found, differences = look(empty_url)
    assert (found.state, differences) == (SchemaState.CURRENT, [])


def test_a_schema_made_at_first_use_equals_the_mappings_and_the_migrated_one(empty_url):
    set_up(empty_url)
    assert look(empty_url)[1] == []
    assert migrate(empty_url).direction == "none"


def test_c56_rows_survive_down_and_up(empty_url, tmp_path):
    set_up(empty_url)
    fill(empty_url, tmp_path)
    before = counts(empty_url)
    judged = query(empty_url, "SELECT id, success FROM episodes ORDER BY id")
    down = migrate(empty_url, FIRST)
    assert (down.direction, dict(down.losses)) == ("down", {})
    migrate(empty_url)
    assert counts(empty_url) == before
    assert query(empty_url, "SELECT id, success FROM episodes ORDER BY id") == judged
    assert judged and None not in {success for _, success in judged}
    assert dangling(empty_url) == []
    with Store.open(empty_url, runs_dir=tmp_path) as store:
        assert store.trajectory("rich") == first(rich(run_id="r1"))


def test_c56_a_database_from_before_versions_is_stamped_and_upgraded(empty_url, tmp_path):
    set_up(empty_url)
    fill(empty_url, tmp_path, episodes=100)
    migrate(empty_url, FIRST)
    query(empty_url, f"DROP TABLE {VERSION_TABLE}")
    assert plan(empty_url).stamped
    done = migrate(empty_url)
    assert (done.stamped, done.start, done.target) == (True, FIRST, HEAD)
    assert look(empty_url) == (look(empty_url)[0], [])
    with Store.open(empty_url, runs_dir=tmp_path) as store:
        assert len(list(store.trajectories())) == 101


def test_tables_that_are_of_no_revision_are_refused(empty_url):
    query(empty_url, "CREATE TABLE runs (id TEXT)")
    with pytest.raises(StoreError, match="not those of 0001") as caught:
        migrate(empty_url)
    assert caught.value.hint


def test_c56_a_downgrade_that_loses_rows_says_which_and_needs_force(empty_url, tmp_path):
    set_up(empty_url)
    fill(empty_url, tmp_path)
    with Store.open(empty_url, runs_dir=tmp_path) as store:
        store.start_run(run("child", parent_id="r1"))
        store.save_evaluation(EvaluationRecord(id="v"), ["rich"])
        save_session(store, SessionRecord(id="s", backend="gbox"))
    before = counts(empty_url)
    with pytest.raises(StoreError, match="1 evaluations, 1 sessions, 1 links from runs"):
        migrate(empty_url, FIRST)
    assert (counts(empty_url), look(empty_url)[0].current) == (before, HEAD)
    assert migrate(empty_url, FIRST, force=True).losses["evaluations"] == 1
    migrate(empty_url)
    lost = {"evaluations": 0, "evaluation_episodes": 0, "sessions": 0}
    assert counts(empty_url) == {**before, **lost}
    assert dangling(empty_url) == []


def test_the_size_at_which_a_screen_was_seen_is_not_lost_unasked(empty_url, tmp_path):
    set_up(empty_url)
    with Store.open(empty_url, runs_dir=tmp_path) as store:
        save(store, rich())
    with pytest.raises(StoreError, match="1 sizes at which screenshots were seen"):
        migrate(empty_url, "0002")
    assert migrate(empty_url, "0002", force=True).target == "0002"


def test_devices_times_baselines_and_what_people_said_are_not_lost_unasked(empty_url, tmp_path):
    set_up(empty_url)
    with Store.open(empty_url, runs_dir=tmp_path) as store:
        save(store, rich())
        store.save_evaluation(EvaluationRecord(id="v", baselines={"random": BaselineRecord(metrics={"n": 1.0})}))
        store.save_human_verdict(HumanVerdict(episode_id="rich", success=True))
        LiveWriter(store.engine).write([LiveRecord(run_id="r1")], "r1")
    lost = "1 verdicts of people, 1 devices and times of episodes, 1 baselines of evaluations"
    with pytest.raises(StoreError, match=lost):
        migrate(empty_url, "0004")
    assert migrate(empty_url, "0004", force=True).target == "0004"
    migrate(empty_url)
    with Store.open(empty_url, runs_dir=tmp_path) as store:
        assert (store.trajectory("rich").device, store.human_verdicts(), store.live()) == ("", [], [])
        assert store.evaluations()[0].baselines == {}


def test_c56_of_several_that_migrate_at_once_one_does_it_and_the_others_wait(empty_url, tmp_path):
    set_up(empty_url)
    fill(empty_url, tmp_path)
    migrate(empty_url, FIRST)
    done, failed = [], []

    def one():
        try:
            done.append(migrate(empty_url).direction)
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(done) == ["none", "none", "none", "up"]
    assert look(empty_url)[1] == []


def test_c56_a_newer_schema_is_not_touched(empty_url):
    set_up(empty_url)
    query(empty_url, f"UPDATE {VERSION_TABLE} SET version_num = '0099'")
    for action in (migrate, plan, migration_sql):
        with pytest.raises(PrerequisiteError, match="0099"):
            action(empty_url)


def test_a_migration_that_fails_leaves_everything_as_it_was(empty_url):
    migrate(empty_url, FIRST)
    query(empty_url, "CREATE TABLE sessions (id TEXT)")  # in the way of the second revision, after it has done much
    with pytest.raises(StoreError, match="undone"):
        migrate(empty_url)
    assert look(empty_url)[0].current == FIRST
    query(empty_url, "DROP TABLE sessions")
    migrate(empty_url)
    assert look(empty_url)[1] == []


def test_a_migration_that_would_leave_dangling_rows_is_undone(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    migrate(url, FIRST)
    raw = sqlite3.connect(tmp_path / "x.db")  # foreign keys are off on a bare connection
    raw.execute("INSERT INTO metrics VALUES ('nobody', 1, 'x', 1.0, 0)")
    raw.commit()
    raw.close()
    with pytest.raises(StoreError, match="1 dangling rows in metrics"):
        migrate(url)
    assert look(url)[0].current == FIRST


def test_c56_a_sqlite_file_is_copied_before_it_is_changed(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    assert migrate(url, FIRST).copied_to is None
    done = migrate(url)
    assert look(f"sqlite:///{done.copied_to}")[0].current == FIRST
    assert migrate(url).copied_to is None


def test_a_plan_changes_nothing_and_says_what_would_be_done(empty_url):
    migrate(empty_url, FIRST)
    todo = plan(empty_url)
    assert (todo.direction, todo.start, todo.target, len(todo.steps)) == ("up", FIRST, HEAD, len(REVISIONS) - 1)
    assert todo.steps[0].startswith("0002  Evaluations")
    assert look(empty_url)[0].current == FIRST


def test_a_plan_for_a_file_that_is_not_there_does_not_make_it(tmp_path):
    assert plan(f"sqlite:///{tmp_path}/x.db").steps[0].startswith(FIRST)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("start", ["base", FIRST])
def test_printed_sql_does_what_a_migration_does(empty_url, start):
    if start != "base":
        migrate(empty_url, start)
    sql = migration_sql(empty_url)
    _run_script(empty_url, sql)
    assert look(empty_url)[1] == []
    _run_script(empty_url, migration_sql(empty_url, "base"))
    assert look(empty_url)[0].state is SchemaState.EMPTY


def test_an_unknown_revision_is_refused(empty_url):
    with pytest.raises(ConfigError, match='no revision "0815"'):
        migrate(empty_url, "0815")


def _run_script(url, sql):
    if url.startswith("sqlite"):
        raw = sqlite3.connect(parse_url(url).database)
        raw.executescript(sql)
        raw.close()
    else:
        engine = create_engine(parse_url(url), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.connection.driver_connection.execute(sql)
        engine.dispose()
