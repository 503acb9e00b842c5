import logging
import sqlite3
import threading
from pathlib import Path

import pytest
import stamina
from sqlalchemy import text

from cuarl.errors import StoreError
from cuarl.store import Store, transaction
from cuarl.store.engine import make_engine, use_wal, writing
from cuarl.store.url import parse_url
from tests.unit.store.samples import plain, run, save


@pytest.fixture
def engine(tmp_path):
    made = make_engine(parse_url(f"sqlite:///{tmp_path}/a/b.db"))
    yield made
    made.dispose()


def test_c53_a_sqlite_connection_has_foreign_keys_and_waits_for_locks(engine):
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= 30_000


def test_write_ahead_logging_is_switched_on_for_good(engine, caplog):
    assert use_wal(engine)
    assert not caplog.records
    with sqlite3.connect(engine.url.database) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()


def test_c53_a_file_system_without_shared_memory_gets_a_warning(tmp_path, caplog):
    # SQLite's dot-file locking is what it uses on file systems that can't share memory, as network ones
    engine = make_engine(parse_url(f"sqlite:///file:{tmp_path}/x.db?vfs=unix-dotfile&uri=true"))
    with caplog.at_level(logging.WARNING):
        assert not use_wal(engine)
    engine.dispose()
    assert "write-ahead logging is not in force" in caplog.text
    assert "PostgreSQL" in caplog.text


def test_c53_the_side_log_is_gone_after_closing(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        save(store, plain())
    assert [p.name for p in tmp_path.glob("x.db*")] == ["x.db"]


def test_c53_a_reader_is_not_blocked_by_a_writer(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        save(store, plain())
        with writing(store.engine) as connection:
            connection.execute(text("DELETE FROM turns"))
            assert store.trajectory("e0") == plain()


def test_c53_a_writer_waits_for_another_processs_transaction(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        other = sqlite3.connect(tmp_path / "x.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: other.execute("COMMIT"))
        release.start()
        save(store, plain())
        release.join()
        other.close()
        assert store.trajectory("e0") == plain()


def test_a_full_disk_is_told_as_such_and_what_was_stored_stays_whole(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        save(store, plain())
        with store.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="disk is full") as caught:
            store.start_run(run(config={"x": "y" * 10_000}))
        assert caught.value.hint
        assert store.trajectory("e0") == plain()
        assert store.runs() == []


def test_an_error_shows_neither_sql_values_nor_the_url(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store, pytest.raises(StoreError) as caught:
        save(store, plain(run_id="canary-value"))
    assert "canary-value" not in str(caught.value)
    assert "canary-value" not in str(caught.value.__cause__)


def test_a_file_that_is_no_database_is_a_store_error(tmp_path):
    Path(tmp_path / "x.db").write_bytes(b"not a database, but long enough to be read as one" * 20)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(f"sqlite:///{tmp_path}/x.db")


def test_a_transaction_is_tried_again_while_that_may_help(engine):
    tries = []

    def work(connection):
        tries.append(1)
        if len(tries) < 3:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorname = "SQLITE_BUSY_SNAPSHOT"
            raise transaction.OperationalError("", {}, error)
        return "done"

    with stamina.set_testing(True, attempts=5):  # no waiting
        assert transaction.write(engine, work) == "done"
    assert len(tries) == 3
