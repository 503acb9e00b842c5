"""What happens to writes while the server is away. The outage itself is in tests/integration/test_store_outage.py."""

import logging

import pytest

from cuarl.errors import StoreError
from cuarl.store.engine import make_engine
from cuarl.store.link import Link
from cuarl.store.reader import Reader
from cuarl.store.spool import Spool
from cuarl.store.url import parse_url
from cuarl.store.writes import FinishRun, LogMetrics, SaveRun, SaveTrajectory
from tests.unit.store.databases import set_up
from tests.unit.store.samples import plain, rich, run

pytest.importorskip("psycopg")
AWAY = parse_url("postgresql://127.0.0.1:9/nobody")
WRITES = [
    SaveRun(run=run(), at=1.0),
    SaveTrajectory(trajectory=rich(run_id="r1", group_id="g"), at=2.0),
    LogMetrics(run_id="r1", step=1, values={"a": float("nan"), "b": float("inf")}, at=3.0),
    FinishRun(run_id="r1", status="completed", at=4.0),
]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def away():
    engine = make_engine(AWAY)
    yield engine
    engine.dispose()


@pytest.fixture
def back(tmp_path):
    """A database that is there."""
    url = f"sqlite:///{tmp_path}/back.db"
    set_up(url)
    engine = make_engine(parse_url(url))
    yield engine
    engine.dispose()


def test_writes_survive_a_spool_file_exactly(tmp_path):
    spool = Spool(tmp_path, AWAY)
    spool.append(WRITES[:2])
    spool.append(WRITES[2:])
    found = list(spool.read())
    assert [repr(w) for w in found] == [repr(w) for w in WRITES]
    spool.close()


def test_a_line_that_was_cut_off_by_a_crash_is_left_out(tmp_path):
    spool = Spool(tmp_path, AWAY)
    spool.append(WRITES)
    [path] = spool.files()
    path.write_bytes(path.read_bytes()[:-5])
    assert len(list(spool.read())) == 3
    spool.close()


def test_a_full_spool_is_an_error_and_keeps_what_it_has(tmp_path):
    spool = Spool(tmp_path, AWAY, limit_bytes=20_000)
    with pytest.raises(StoreError, match="spool is full"):
        for _ in range(100):
            spool.append(WRITES)
    kept = list(spool.read())
    assert 0 < len(kept) < 400 and len(kept) % 4 == 0
    spool.close()


def test_writes_are_spooled_while_the_server_is_away_with_one_warning(tmp_path, away, caplog):
    link = Link(away, Spool(tmp_path, AWAY), retry_s=0, away_s=0)
    with caplog.at_level(logging.WARNING, "cuarl"):
        for write in WRITES:
            link.write([write])
    assert link.away
    assert [r.getMessage() for r in caplog.records] == [
        "postgresql://127.0.0.1:9/nobody is away: writes are kept on disk meanwhile"
    ]
    with pytest.raises(StoreError, match="still away; what was recorded meanwhile is kept"):
        link.close()
    assert len(Spool(tmp_path, AWAY).files()) == 1


def test_a_server_that_is_known_to_be_away_is_left_alone_for_a_while(tmp_path, away):
    clock = Clock()
    link = Link(away, Spool(tmp_path, AWAY), retry_s=0, away_s=5, clock=clock)
    link.write(WRITES[:1])
    tries = []
    away.dialect.connect = lambda *a, **k: tries.append(1)
    clock.now = 4.9
    link.write(WRITES[1:2])
    assert tries == []


def test_the_next_process_stores_what_one_that_died_had_spooled(tmp_path, away, back):
    dead = Spool(tmp_path, AWAY)
    Link(away, dead, retry_s=0).write(WRITES)
    dead.close()  # as its end does
    spool = Spool(tmp_path, AWAY)
    Link(back, spool).adopt()
    assert not spool.holds and list(tmp_path.glob("*.jsonl*")) == []
    reader = Reader(back)
    assert reader.trajectory("rich") == rich(run_id="r1", group_id="g")
    assert reader.run("r1").status == "completed"


def test_the_spool_of_a_living_process_is_left_to_it(tmp_path, away, back):
    alive = Spool(tmp_path, AWAY)
    Link(away, alive, retry_s=0).write(WRITES)
    Link(back, Spool(tmp_path, AWAY)).adopt()
    assert Reader(back).runs() == []
    alive.close()


def test_a_spool_of_another_database_is_left_alone(tmp_path, away, back):
    other = Spool(tmp_path, AWAY)
    Link(away, other, retry_s=0).write(WRITES)
    other.close()
    Link(back, Spool(tmp_path, parse_url("postgresql://127.0.0.1:9/other"))).adopt()
    assert Reader(back).runs() == []


def test_a_spooled_write_that_is_refused_is_put_aside_and_the_others_are_stored(tmp_path, back, caplog):
    spool = Spool(tmp_path, AWAY)
    bad = SaveTrajectory(trajectory=plain("bad", run_id="nobody"), at=2.0)
    spool.append([WRITES[0], bad, WRITES[1]])
    link = Link(back, spool)
    link.write(WRITES[2:])
    assert [e.episode_id for e in Reader(back).episodes()] == ["rich"]
    assert Reader(back).run("r1").status == "completed"
    assert "put aside" in caplog.text
    [aside] = tmp_path.glob("*.rejected")
    assert '"bad"' in aside.read_text()
