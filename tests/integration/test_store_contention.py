"""Many processes and one SQLite file: nothing is lost, and nobody sees an error."""

import multiprocessing
import sqlite3
import time
from contextlib import closing

import pytest

from cuarl.store import Store
from cuarl.trajectory import Trajectory, Turn
from cuarl.types import Finish, ImageRef, StopReason
from tests.unit.store.samples import save

pytestmark = pytest.mark.integration


def record(url, worker, steps, failures):
    try:
        with Store.open(url) as store:
            for step in range(steps):
                turn = Turn(index=0, screenshot=ImageRef(digest="0" * 64, width=1, height=1), action=Finish())
                save(
                    store,
                    Trajectory(
                        episode_id=f"{worker}-{step}",
                        step=step,
                        task_id="t",
                        goal="g",
                        turns=(turn,),
                        reward=1.0,
                        stop=StopReason.DONE,
                    ),
                )
    except BaseException as error:
        failures.put(f"{worker}: {error!r}")
        raise


def hold(path, held, seconds):
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        held.set()
        time.sleep(seconds)
        other.execute("COMMIT")


def contend(folder, workers, steps, hold_s):
    """Workers write to a new file, while one process holds the write lock and a monitor polls."""
    url = f"sqlite:///{folder}/x.db"
    context = multiprocessing.get_context("spawn")
    failures, held = context.Queue(), context.Event()
    processes = [context.Process(target=record, args=(url, i, steps, failures)) for i in range(workers)]
    for process in processes:
        process.start()
    while not (folder / "x.db").exists() or (folder / "x.db").stat().st_size == 0:
        time.sleep(0.05)
    holder = context.Process(target=hold, args=(folder / "x.db", held, hold_s))
    holder.start()
    seen = []
    with Store.open(url) as monitor:
        while any(p.is_alive() for p in processes):
            seen.append(len(monitor.episodes()))
            time.sleep(0.5)
        for process in (*processes, holder):
            process.join()
        assert held.is_set()
        assert failures.empty(), failures.get()
        assert len(monitor.episodes()) == workers * steps
        assert sum(len(t.turns) for t in monitor.trajectories()) == workers * steps
    assert seen == sorted(seen)
    assert [p.name for p in folder.glob("x.db*")] == ["x.db"]  # the side log is gone


def test_c53_processes_write_one_file_while_another_holds_the_lock(tmp_path):
    contend(tmp_path, workers=3, steps=15, hold_s=1.0)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_c53_sixteen_processes_of_200_steps_write_one_file_while_another_holds_the_lock_for_8_s(tmp_path):
    contend(tmp_path, workers=16, steps=200, hold_s=8.0)
