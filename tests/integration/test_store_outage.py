"""The PostgreSQL server goes away in the middle of a run: nothing is lost, nothing is stored twice, the status is
right."""

import math
import time
from contextlib import contextmanager

import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from cuarl.errors import PrerequisiteError, StoreError
from cuarl.store import Store, transaction
from cuarl.store.deadline import answered_within
from cuarl.store.engine import make_engine
from cuarl.store.url import parse_url
from tests.unit.store.databases import SERVER, flaky_server, query
from tests.unit.store.samples import plain, rich, run, save

__all__ = ["flaky_server"]
pytestmark = pytest.mark.integration


@contextmanager
def opened(url, folder, **options):
    with Store.open(url, str(folder / "blobs"), runs_dir=folder, retry_s=0.3, away_s=0.2, **options) as store:
        yield store


def ours(caplog):
    return [r.getMessage() for r in caplog.records if r.name.startswith("cuarl")]


def test_c55_links_cut_between_two_steps_cost_one_warning(flaky_server, tmp_path, caplog):
    _, url, _ = flaky_server
    with opened(url, tmp_path) as store:
        save(store, plain("a"))
        admin = create_engine(parse_url(SERVER), isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            cut = connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cuarl'"
                    " AND client_port = ANY(:ports)"  # of this process: other tests run at the same time
                ),
                {"ports": [link.laddr.port for link in psutil.Process().net_connections("tcp")]},
            ).all()
        admin.dispose()
        assert cut
        caplog.clear()
        save(store, plain("b"))
        assert len(ours(caplog)) == 1 and "opening a new one" in ours(caplog)[0]
        assert not store.away
        assert [e.episode_id for e in store.episodes()] == ["a", "b"]


def test_c55_a_link_that_breaks_inside_a_transaction_stores_the_rows_once(flaky_server, tmp_path):
    url, direct, proxy = flaky_server
    with opened(url, tmp_path) as store:
        save(store, plain("a"))
        proxy.cut()
        for i in range(5):
            save(store, rich(f"r{i}"))
        assert store.trajectory("r4") == rich("r4")
    assert query(direct, "SELECT count(*) FROM episodes") == [(6,)]


def test_c55_a_restart_loses_nothing_and_stores_nothing_twice(flaky_server, tmp_path, caplog):
    url, direct, proxy = flaky_server
    with opened(url, tmp_path) as store:
        store.start_run(run())
        proxy.down()
        started = time.monotonic()
        for step in range(30):
            store.enqueue(plain(f"e{step}", run_id="r1", step=step))
            store.log_metrics("r1", step, {"loss": float(step)})
        assert time.monotonic() - started < 5  # training does not wait
        store.drain()
        assert store.away
        proxy.up()
        time.sleep(0.25)
        save(store, plain("last", run_id="r1"))
        assert not store.away
        store.finish_run("r1")
    assert query(direct, "SELECT count(*), count(DISTINCT id) FROM episodes") == [(31, 31)]
    assert query(direct, "SELECT count(*), sum(value) FROM metrics") == [(30, 435.0)]
    assert query(direct, "SELECT status FROM runs") == [("completed",)]
    assert list((tmp_path / "spool").glob("*")) == []
    assert sum("is away" in message for message in ours(caplog)) == 1


def test_c55_a_server_that_stays_away_leaves_the_spool_to_the_next_start(flaky_server, tmp_path):
    url, direct, proxy = flaky_server
    with (
        pytest.raises(StoreError, match="still away; what was recorded meanwhile is kept"),
        opened(url, tmp_path) as store,
    ):
        store.start_run(run())
        proxy.down()
        save(store, rich(run_id="r1"))
        store.finish_run("r1", "completed")
    assert query(direct, "SELECT status FROM runs") == [("running",)]
    proxy.up()
    with opened(url, tmp_path) as store:
        assert store.run("r1").status == "completed"
        assert store.trajectory("rich") == rich(run_id="r1")
        assert [c.new for c in store.history("run", "r1")] == ["running", "completed"]


@pytest.mark.parametrize("known", [True, False], ids=["an open link", "a new link"])
def test_m2_a_server_that_accepts_and_stays_silent_is_given_up_and_loses_nothing(flaky_server, tmp_path, caplog, known):
    url, direct, proxy = flaky_server
    with opened(url, tmp_path, answer_s=0.5) as store:
        store.start_run(run())
        if not known:
            store.engine.dispose()
        proxy.hold()  # from here on all would wait for ever
        for step in range(30):
            store.enqueue(plain(f"e{step}", run_id="r1", step=step))
        store.drain()
        store.finish_run("r1", "failed")
        assert store.away
        proxy.release()
        time.sleep(0.25)
        save(store, plain("last", run_id="r1"))
        assert not store.away
    assert query(direct, "SELECT count(*), count(DISTINCT id) FROM episodes") == [(31, 31)]
    assert query(direct, "SELECT status FROM runs") == [("failed",)]
    assert list((tmp_path / "spool").glob("*")) == []
    assert sum("is away" in message for message in ours(caplog)) == 1


def test_m2_a_silent_server_does_not_hold_up_the_end(flaky_server, tmp_path):
    url, _, proxy = flaky_server
    with pytest.raises(StoreError, match="is kept"), opened(url, tmp_path, answer_s=0.3) as store:
        store.start_run(run())
        proxy.hold()
        save(store, rich(run_id="r1"))
        store.finish_run("r1")
    proxy.release()
    with opened(url, tmp_path) as store:
        assert store.run("r1").status == "completed"


def test_m2_a_silent_server_is_no_place_to_start(flaky_server, tmp_path, monkeypatch):
    url, _, proxy = flaky_server
    monkeypatch.setattr(transaction, "ANSWER_S", 0.3)
    proxy.hold()
    with pytest.raises(PrerequisiteError, match="can't be reached"):
        Store.open(url, str(tmp_path / "blobs"), runs_dir=tmp_path)


def test_what_takes_long_but_answers_is_waited_for(flaky_server):
    engine = make_engine(parse_url(flaky_server[1]))
    wait = text("SELECT pg_sleep(0.6)")
    with pytest.raises(OperationalError, match="not answered"), answered_within(0.2), engine.connect() as connection:
        connection.execute(wait)
    with answered_within(math.inf), engine.connect() as connection:
        connection.execute(wait)
    engine.dispose()


def test_c55_a_full_spool_stops_recording_cleanly(flaky_server, tmp_path):
    url, _, proxy = flaky_server
    store = Store.open(url, str(tmp_path / "blobs"), runs_dir=tmp_path, retry_s=0.1, spool_limit_bytes=20_000)
    proxy.down()
    with pytest.raises(StoreError, match="spool is full") as caught:
        for i in range(100):
            save(store, rich(f"e{i}"))
    assert "start the database server" in str(caught.value)
    with pytest.raises(StoreError, match="still away"):
        store.close()
    proxy.up()
    with opened(url, tmp_path) as again:
        assert len(again.episodes()) > 0
