"""How far a run has come: told in memory, written by a thread, gone at the end, and never in the way."""

import logging
import threading
from dataclasses import replace

import pytest

from cuarl.rollout.pool import collect
from cuarl.rollout.spec import plan
from cuarl.store import RunRecord, Store
from cuarl.trajectory import Turn
from cuarl.types import Finish
from cuarl.workflow import environments
from cuarl.workflow import episodes as parts
from cuarl.workflow.live import Live
from cuarl.workflow.players import scripted
from tests.unit.store.databases import postgres_tables, query, sqlite_tables, sqlite_url, url
from tests.unit.store.samples import picture, ref
from tests.unit.workflow.switch import TASKS, experiment

__all__ = ["postgres_tables", "sqlite_tables", "sqlite_url", "url"]
SPECS = plan(TASKS, group_size=2, run_seed=0, prefix="r1", run_id="r1", step=3, purpose="train")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def store(url, tmp_path):
    with Store.open(url, f"{tmp_path}/blobs", runs_dir=tmp_path) as opened:
        opened.start_run(RunRecord(id="r1", name="r1"))
        yield opened


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def live(store, clock):
    return Live(store, "r1", backend="gbox", total_steps=10, clock=clock)


def test_a_running_episode_is_seen_turn_by_turn_with_its_device_and_screen(store, live):
    first, shown = SPECS[0], picture(7)
    live.begin("collecting", 3, 4)
    live.phase(first, "creating")
    live.write()
    assert [(r.episode_id, r.phase) for r in store.live("r1")] == [("", "collecting"), (first.episode_id, "creating")]
    live.phase(first, "acting", "box-1")
    live.screen(first, shown)
    live.turn(first, Turn(index=0, screenshot=ref(), action=Finish(), text={"page": "x" * 9000}))
    live.write()
    seen = store.live("r1")[1]
    assert (seen.phase, seen.data["device"], seen.data["step"], seen.data["max_turns"]) == ("acting", "box-1", 3, 10)
    assert [turn["action"]["kind"] for turn in seen.data["turns"]] == ["finish"]
    assert (seen.data["turns"][0]["text"], seen.data["screen"]["digest"]) == ({}, shown.digest)
    assert store.blobs.exists(shown.digest), "a running episode's screens can be looked at"


def test_an_episode_that_is_over_is_gone_and_its_device_is_kept_for_good(store, live, clock):
    for spec in SPECS[:2]:
        live.phase(spec, "creating")
        live.phase(spec, "acting", f"box-{spec.attempt}")
    live.write()
    clock.now += 5
    live.phase(SPECS[0], "done")
    live.write()
    assert [r.episode_id for r in store.live("r1")] == ["", SPECS[1].episode_id]
    kept = {s.external_id: (s.backend, s.status, s.closed_at) for s in store.sessions()}
    assert kept == {"box-0": ("gbox", "closed", 1005.0), "box-1": ("gbox", "running", None)}
    live.close()
    assert store.live() == []


def test_progress_and_the_time_that_is_left_follow_from_the_steps(store, live, clock):
    def told():
        live.write()
        data = store.live("r1")[0].data
        return data["percent"], data["left_s"]

    assert told() == (0.0, None)
    live.begin("collecting", 1, 4)
    for _ in range(2):
        live.phase(SPECS[0], "creating")
        live.phase(SPECS[0], "done")
    assert told() == (2.5, None)
    clock.now += 30
    live.begin("training", 1)
    assert told() == (5.0, None)
    clock.now += 30
    live.begin("collecting", 2, 4)
    assert told() == (10.0, 540.0)
    live.begin("evaluating", 10, 5)
    assert told()[0] == 100.0


def test_nothing_is_written_where_nothing_has_changed_but_a_sign_of_life(store, live, clock):
    live.write()
    at = store.live()[0].at
    clock.now += 1
    live.write()
    assert store.live()[0].at == at
    clock.now += 5
    live.write()
    assert store.live()[0].at == at + 6


def test_its_thread_writes_by_itself_and_ends(store):
    written = threading.Event()
    with Live(store, "r1", every_s=0.01) as live:
        live.phase(SPECS[0], "creating")
        while not written.wait(0.01):
            if len(store.live("r1")) == 2:
                written.set()
    assert store.live("r1") == [] and "cuarl-live" not in {t.name for t in threading.enumerate()}


def test_a_simulated_device_is_named_and_lent_by_nobody(store, clock):
    live = Live(store, "r1", backend="sim", clock=clock)
    live.phase(SPECS[0], "acting", "simulated phone")
    live.write()
    assert store.live("r1")[1].data["device"] == "simulated phone"
    live.phase(SPECS[0], "done")
    live.write()
    assert store.sessions() == []


def test_a_table_that_cannot_be_written_costs_one_warning_and_nothing_else(sqlite_url, tmp_path, caplog):
    with Store.open(sqlite_url, f"{tmp_path}/blobs") as store:
        live = Live(store, "r1")
        query(sqlite_url, "DROP TABLE live")
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                live.begin("training", 1)
                live.write()
            live.close()
    assert len([r for r in caplog.records if "the run goes on" in r.message]) == 1


@pytest.mark.anyio
async def test_episodes_tell_of_themselves_from_creation_to_the_check(tmp_path):
    asked = experiment(tmp_path, max_turns=2)
    backend = environments.backend(asked.config, TASKS, asked.settings)
    told = []

    class Told:
        def phase(self, spec, phase, device=""):
            told.append((spec.episode_id, phase))

        def screen(self, spec, screen):
            told.append((spec.episode_id, "screen"))

        def turn(self, spec, turn):
            told.append((spec.episode_id, turn.index))

    setup = replace(parts.setup(asked.config, backend, scripted("nothing")), observer=Told())
    (group,) = await collect(SPECS[:1], setup)
    one = SPECS[0].episode_id
    assert told == [(one, what) for what in ("creating", "acting", "screen", 0, "screen", "checking", "done")]
    t = group.trajectories[0]
    assert t.backend == asked.config.env.type
    assert t.started_at <= t.turns[0].started_at <= t.check_at <= t.started_at + t.wall_s + 1
    assert 0 < t.ready_s <= t.wall_s and 0 <= t.check_s <= t.wall_s
