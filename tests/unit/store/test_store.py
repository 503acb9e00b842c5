"""What is saved comes back, on both databases."""

import math

import pytest

from cuarl.errors import StoreError
from cuarl.store import EpisodeStart, EvaluationRecord, PolicyRecord, SessionRecord, Store
from cuarl.store.writes import SaveRun, SaveTrajectory
from cuarl.tasks.task import Check, Task
from cuarl.trajectory import Group, Turn
from cuarl.types import Finish, StopReason
from tests.unit.store.databases import query
from tests.unit.store.samples import group, picture, plain, ref, rich, run, save, save_session


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


# --- episodes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [plain, rich], ids=["plain", "every field"])
def test_a_trajectory_comes_back_exactly(store, make):
    saved = make()
    save(store, saved)
    assert store.trajectory(saved.episode_id) == saved
    assert repr(store.trajectory(saved.episode_id)) == repr(saved)


def test_a_trajectory_without_turns_or_verdict_comes_back_exactly(store):
    saved = plain(turns=(), verdict=None, reward=None, stop=StopReason.CANCELLED)
    save(store, saved)
    assert store.trajectory("e0") == saved


def test_its_pictures_are_stored_with_it(store):
    shot = picture(3)
    save(store, plain(turns=(Turn(index=0, screenshot=shot.ref, action=Finish()),)), [shot])
    assert store.blobs.get(store.trajectory("e0").turns[0].screenshot.digest).digest == shot.digest


def test_saving_again_replaces_all_of_it(store):
    save(store, rich("e0"))
    save(store, plain("e0"))
    assert store.trajectory("e0") == plain("e0")
    assert len(store.episodes()) == 1


def test_saving_again_keeps_it_counted_by_its_evaluation(store):
    save(store, plain())
    store.save_evaluation(EvaluationRecord(id="v1", suite="s"), ["e0"])
    save(store, plain())
    assert store.evaluation_episode_ids("v1") == ["e0"]


def test_a_trajectory_that_fails_half_way_leaves_nothing(store):
    twice = Turn(index=0, screenshot=ref(), reward=math.nan)
    with pytest.raises(StoreError, match="NaN"):
        save(store, plain(turns=(*plain().turns, twice.model_copy(update={"index": 1}))))
    assert store.episodes() == []


def test_turns_out_of_order_are_refused(store):
    turns = (Turn(index=1, screenshot=ref()), Turn(index=0, screenshot=ref()))
    with pytest.raises(StoreError, match="numbered upwards"):
        save(store, plain(turns=turns))


def test_an_episode_of_an_unknown_run_is_refused(store):
    with pytest.raises(StoreError, match="run or episode that isn't in the store"):
        save(store, plain(run_id="nobody"))


def test_a_missing_episode_is_an_error(store):
    with pytest.raises(StoreError, match='no finished episode "e9"'):
        store.trajectory("e9")


def test_an_episode_under_way_is_visible_as_started_only(store):
    store.start_episode(EpisodeStart(episode_id="e0", task_id="wifi_on", goal="Turn Wi-Fi on", seed=2**65))
    store.drain()
    [seen] = store.episodes()
    assert (seen.status, seen.stop, seen.seed) == ("started", None, 2**65)
    assert list(store.trajectories()) == []
    with pytest.raises(StoreError):
        store.trajectory("e0")
    save(store, plain())
    assert [e.status for e in store.episodes()] == ["completed"]


def test_a_late_start_does_not_undo_an_episode(store):
    save(store, plain())
    store.start_episode(EpisodeStart(episode_id="e0", task_id="wifi_on"))
    store.drain()
    assert store.trajectory("e0") == plain()


def test_a_summary_says_what_came_of_an_episode(store):
    save(store, rich())
    [seen] = store.episodes()
    assert (seen.status, seen.stop, seen.success, seen.score, seen.reward) == ("failed", "failed", False, 0.5, -1.5)
    assert (seen.turn_count, seen.prompt_tokens, seen.sampled_tokens, seen.wall_s) == (3, 10, 6, 3.25)


FOUND_BY = [
    ({}, "abcde"),
    ({"run": "r1"}, "abc"),
    ({"run": "r1", "step": 2}, "bc"),
    ({"purpose": "eval"}, "c"),
    ({"task": "other"}, "d"),
    ({"group": "g"}, "b"),
    ({"policy": "p", "policy_version": 2}, "d"),
    ({"status": "cancelled"}, "e"),
    ({"evaluation": "v"}, "ac"),
    ({"saved_after": 1000.5}, "e"),
]


def test_episodes_are_found_by_any_condition(url, tmp_path):
    clock = Clock()
    with Store.open(url, str(tmp_path), runs_dir=tmp_path, clock=clock) as store:
        for name in ("r1", "r2"):
            store.start_run(run(name))
        save(store, plain("a", run_id="r1", step=1))
        save(store, plain("b", run_id="r1", step=2, group_id="g"))
        save(store, plain("c", run_id="r1", step=2, purpose="eval", group_id="h"))
        save(store, plain("d", run_id="r2", step=3, task_id="other", policy="p", policy_version=2))
        clock.now = 1001.0
        save(store, plain("e", step=4, stop=StopReason.CANCELLED))
        store.save_evaluation(EvaluationRecord(id="v"), ["a", "c"])
        for where, expected in FOUND_BY:
            assert [e.episode_id for e in store.episodes(**where)] == list(expected), where
            assert [e.episode_id for e in store.trajectories(**where)] == list(expected), where


def test_a_limit_cuts_a_listing(store):
    for name in "abc":
        save(store, plain(name))
    assert [e.episode_id for e in store.episodes(limit=2)] == ["a", "b"]


def test_long_results_are_read_piece_by_piece(store):
    saved = [plain(f"e{i:03d}", step=i) for i in range(150)]
    store.write([SaveTrajectory(trajectory=t, at=1.0) for t in saved])
    assert list(store.trajectories()) == saved


# --- groups --------------------------------------------------------------------------------------------------------


def test_a_group_comes_back_exactly(store):
    store.start_run(run())
    saved = group(run_id="r1", step=4, purpose="train")
    save(store, saved)
    assert store.group("g0") == saved
    assert store.groups(run="r1", step=4, purpose="train") == [saved]
    assert store.groups(run="r1", step=5) == []


def test_a_group_is_stored_whole_or_not_at_all(store):
    saved = group()
    bad = saved.trajectories[1].model_copy(update={"reward": math.nan})
    with pytest.raises(StoreError):
        save(store, saved.model_copy(update={"trajectories": (saved.trajectories[0], bad)}))
    assert store.groups() == []
    assert store.episodes() == []


def test_a_group_of_strangers_is_refused(store):
    with pytest.raises(StoreError, match="another group"):
        save(store, Group(group_id="g9", task_id="t", trajectories=group().trajectories))


def test_episodes_saved_one_by_one_make_their_group(store):
    saved = group()
    for member in reversed(saved.trajectories):
        save(store, member)
    assert store.group("g0") == saved


def test_a_missing_group_is_an_error(store):
    with pytest.raises(StoreError, match='no group "g9"'):
        store.group("g9")


# --- runs and their statuses ---------------------------------------------------------------------------------------


def test_a_run_keeps_its_facts_and_its_history(url, tmp_path):
    clock = Clock()
    with Store.open(url, str(tmp_path), runs_dir=tmp_path, clock=clock) as store:
        store.start_run(run(config={"lr": 2e-4, "tags": ["a", None]}, seed=2**64, total_steps=9))
        clock.now = 1010.0
        store.heartbeat("r1", step=3)
        clock.now = 1020.0
        store.finish_run("r1", "failed", "disk full")
        clock.now = 1030.0
        store.start_run(store.run("r1"))
        found = store.run("r1")
    assert (found.status, found.seed, found.step, found.total_steps) == ("running", 2**64, 3, 9)
    assert (found.started_at, found.heartbeat_at, found.finished_at) == (1000.0, 1030.0, None)
    assert found.config == {"lr": 2e-4, "tags": ["a", None]}
    with Store.open(url, str(tmp_path), runs_dir=tmp_path) as store:
        changes = [(c.seq, c.old, c.new, c.at, c.message) for c in store.history("run", "r1")]
    assert changes[:2] == [(0, None, "running", 1000.0, ""), (1, "running", "failed", 1020.0, "disk full")]
    assert changes[2][:4] == (2, "failed", "running", 1030.0)


def test_old_news_does_not_turn_a_status_back(store):
    store.write([SaveRun(run=run(status="running"), at=10.0)])
    store.write([SaveRun(run=run(status="completed"), at=20.0)])
    store.write([SaveRun(run=run(status="failed"), at=15.0)])  # was spooled, and comes late
    assert store.run("r1").status == "completed"
    assert [c.new for c in store.history("run", "r1")] == ["running", "completed"]


def test_a_write_twice_is_the_same_as_once(store, url):
    writes = [SaveRun(run=run(), at=1.0), SaveTrajectory(trajectory=rich(run_id="r1", group_id="g"), at=2.0)]
    store.write(writes)
    tables = ("runs", "groups", "episodes", "turns", "samples", "verdicts", "status_history")
    before = [query(url, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables]
    store.write(writes)
    assert [query(url, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables] == before


def test_finishing_an_unknown_run_is_an_error(store):
    with pytest.raises(StoreError, match='no run "r9"'):
        store.finish_run("r9")


def test_finish_run_stores_what_was_queued_before(store):
    store.start_run(run())
    store.log_metrics("r1", 1, {"a": 1.0})
    store.finish_run("r1")
    assert len(store.metrics("r1")) == 1
    assert store.run("r1").status == "completed"


def test_a_run_is_finished_even_if_something_before_was_refused(store):
    store.start_run(run())
    store.enqueue(plain(run_id="nobody"))
    with pytest.raises(StoreError, match="isn't in the store"):
        store.finish_run("r1", "failed")
    assert store.run("r1").status == "failed"


def test_runs_are_listed_newest_first(store):
    for i, name in enumerate("abc"):
        store.start_run(run(name, started_at=float(i + 1)))
    assert [r.id for r in store.runs()] == ["c", "b", "a"]
    with pytest.raises(StoreError, match='no run "z"'):
        store.run("z")


def test_rewinding_forgets_what_came_after_the_checkpoint(store):
    store.start_run(run())
    for step in (1, 2, 3):
        save(store, group(f"g{step}", run_id="r1", step=step))
        store.log_metrics("r1", step, {"loss": 0.5})
        store.save_policy(PolicyRecord(name="p", version=step, run_id="r1", step=step))
    store.save_evaluation(EvaluationRecord(id="v3", run_id="r1", step=3), ["g3-0"])
    store.rewind_run("r1", 2)
    assert {e.step for e in store.episodes()} == {1, 2}
    assert [p.step for p in store.metrics("r1")] == [1, 2]
    assert [p.version for p in store.policies()] == [1, 2]
    assert store.evaluations() == []


# --- what else is recorded -----------------------------------------------------------------------------------------


def test_metrics_come_back_by_step_and_the_last_value_wins(store):
    store.start_run(run())
    store.log_metrics("r1", 2, {"b": 1.5, "a": math.inf})
    store.log_metrics("r1", 1, {"a": math.nan})
    store.log_metrics("r1", 2, {"b": 2.5})
    store.drain()
    found = [(p.step, p.name, p.value) for p in store.metrics("r1")]
    assert found[1:] == [(2, "a", math.inf), (2, "b", 2.5)]
    assert found[0][:2] == (1, "a") and math.isnan(found[0][2])
    assert [p.name for p in store.metrics("r1", name="b", after_step=1)] == ["b"]


def test_events_come_back_in_order(store):
    store.start_run(run())
    store.log_event("r1", "checkpoint", {"step": 1, "path": "x"})
    store.log_event("r1", "eval", {})
    store.log_event("", "doctor", {"ok": True})
    store.drain()
    assert [(e.kind, dict(e.data)) for e in store.events(run="r1")] == [
        ("checkpoint", {"step": 1, "path": "x"}),
        ("eval", {}),
    ]
    assert [e.run_id for e in store.events(kind="doctor")] == [""]


def test_policies_and_tasks_come_back(store):
    policy = PolicyRecord(
        name="p", version=2, base_model="tiny", path="runs/x", digest="d", created_at=1.5, info={"a": 1}
    )
    store.save_policy(policy)
    task = Task(id="t", description="Set {v}", params={"v": (1, "two")}, checks=(Check(path="a", value=[1]),))
    edited = task.model_copy(update={"max_steps": 3})
    store.save_tasks([task, edited])
    store.save_tasks([task])
    assert store.policies() == [policy]
    assert sorted(t.max_steps for t in store.tasks()) == [3, 10]
    assert task.model_dump_json() in [t.model_dump_json() for t in store.tasks()]


def test_an_evaluation_comes_back_with_its_episodes_in_order(store):
    for name in "ab":
        save(store, plain(name))
    record = EvaluationRecord(id="v1", suite="settings", metrics={"eval/settings/n": 2.0}, finished_at=3.5)
    store.save_evaluation(record, ["b", "a"])
    assert store.evaluations(suite="settings") == [record]
    assert store.evaluation_episode_ids("v1") == ["b", "a"]
    store.save_evaluation(record, ["a"])
    assert store.evaluation_episode_ids("v1") == ["a"]


def test_sessions_are_found_until_they_are_closed(store):
    box = SessionRecord(id="s1", backend="gbox", external_id="box-1", owner="host:1", created_at=1.0)
    save_session(store, box)
    assert store.sessions(status="running") == [box]
    save_session(store, box.model_copy(update={"status": "closed", "closed_at": 2.0}))
    assert store.sessions(status="running") == []
    assert [c.new for c in store.history("session", "s1")] == ["running", "closed"]


# --- the store itself ----------------------------------------------------------------------------------------------


def test_a_second_store_sees_what_the_first_one_wrote(store, url, tmp_path):
    save(store, rich())
    with Store.open(url, runs_dir=tmp_path) as other:
        assert other.trajectory("rich") == rich()


def test_an_error_inside_the_block_is_not_hidden_by_a_failing_close(sqlite_store, tmp_path):
    with pytest.raises(KeyError) as caught, Store.open(f"sqlite:///{tmp_path}/test.db") as store:
        store.enqueue(plain(run_id="nobody"))
        raise KeyError("mine")
    assert "closing the store failed, too" in caught.value.__notes__[0]


def test_closing_twice_is_fine(tmp_path):
    store = Store.open(f"sqlite:///{tmp_path}/x.db")
    store.close()
    store.close()


def test_a_shown_store_tells_no_secret(store):
    assert "password" not in repr(store)
    assert "options" not in repr(store)
