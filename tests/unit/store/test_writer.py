"""The background writer: ordered, bounded, and honest about what it could not store."""

import threading
from functools import partial

import anyio
import pytest

from cuarl.errors import StoreError
from cuarl.store import Store, StoreSink
from cuarl.store.writer import Writer
from cuarl.store.writes import Heartbeat
from tests.unit.store.samples import group, picture, plain, run


def beat(number):
    return Heartbeat(run_id="r", step=number, at=0.0)


class Disk:
    """Keeps steps; fails where it is told to, and stands still while its gate is closed."""

    def __init__(self, bad=()):
        self.steps, self.batches, self.bad = [], 0, set(bad)
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, writes):
        self.gate.wait(5)
        if wrong := [w.step for w in writes if w.step in self.bad]:
            raise StoreError(f"bad {wrong}")
        self.batches += 1
        self.steps += [w.step for w in writes]


@pytest.fixture
def disk():
    return Disk()


def test_writes_are_stored_in_order_and_in_batches(disk):
    disk.gate.clear()
    writer = Writer(disk.commit, 100)
    for i in range(40):
        writer.put(beat(i))
    disk.gate.set()
    writer.close()
    assert disk.steps == list(range(40))
    assert disk.batches <= 4


def test_a_full_queue_makes_those_who_write_wait(disk):
    disk.gate.clear()
    writer = Writer(disk.commit, 2)

    async def main():
        with anyio.move_on_after(5):
            async with anyio.create_task_group() as tasks:
                for i in range(6):
                    tasks.start_soon(writer.put_async, beat(i))
                await anyio.sleep(0.02)
                waiting = len(disk.steps)
                disk.gate.set()
        return waiting

    assert anyio.run(main) == 0
    writer.close()
    assert sorted(disk.steps) == list(range(6))


def test_a_bad_write_does_not_take_its_neighbours_with_it():
    disk = Disk(bad={2})
    disk.gate.clear()
    writer = Writer(disk.commit, 100)
    for i in range(5):
        writer.put(beat(i))
    disk.gate.set()
    with pytest.raises(StoreError, match=r"bad \[2\]"):
        writer.flush()
    assert disk.steps == [0, 1, 3, 4]
    writer.close()


def test_several_failures_are_counted_once():
    disk = Disk(bad={1, 2})
    writer = Writer(disk.commit, 100)
    for i in range(3):
        writer.put(beat(i))
    with pytest.raises(StoreError, match="2 writes failed, first: bad"):
        writer.close()
    writer.close()


def test_a_closed_writer_takes_nothing(disk):
    writer = Writer(disk.commit, 2)
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.put(beat(0))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_breaks_down_makes_nobody_wait():
    def broken(writes):
        raise ZeroDivisionError

    writer = Writer(broken, 1)
    writer.put(beat(0))
    with pytest.raises(StoreError, match="broke down"):
        writer.flush()
    with pytest.raises(StoreError, match="closed"):
        writer.put(beat(1))
    with pytest.raises(StoreError, match="broke down"):
        writer.close()


def test_submitted_episodes_and_their_pictures_are_there_after_flush(store):
    shots = [picture(i) for i in range(3)]

    async def main():
        async with anyio.create_task_group() as tasks:
            for i in range(20):
                tasks.start_soon(store.submit, plain(f"e{i:02d}"), shots)
            tasks.start_soon(partial(store.submit, group()))
        await store.flush()

    anyio.run(main)
    assert len(store.episodes()) == 23
    assert len(list(store.blobs.digests())) == 3


def test_a_refused_episode_comes_out_at_flush_and_the_others_are_stored(store):
    async def main():
        await store.submit(plain("a"))
        await store.submit(plain("b", run_id="nobody"))
        await store.submit(plain("c"))
        with pytest.raises(StoreError, match="isn't in the store"):
            await store.flush()
        await store.flush()

    anyio.run(main)
    assert [e.episode_id for e in store.episodes()] == ["a", "c"]


def test_closing_stores_what_was_queued(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    with Store.open(url) as store:
        for i in range(10):
            store.enqueue(plain(f"e{i}"))
    with Store.open(url) as store:
        assert len(store.episodes()) == 10


def test_the_store_is_a_sink(sqlite_store):
    sqlite_store.start_run(run())
    sink = StoreSink(sqlite_store, "r1")
    sink.metrics(4, {"reward/mean": 0.5})
    sink.event("checkpoint", {"step": 4})
    sink.close()
    assert [(p.step, p.value) for p in sqlite_store.metrics("r1")] == [(4, 0.5)]
    assert [e.kind for e in sqlite_store.events(run="r1")] == ["checkpoint"]
    assert sqlite_store.run("r1").step == 4
