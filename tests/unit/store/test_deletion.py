"""A run is taken out of the store whole, with the screenshots that it alone has, and nothing of anybody else's."""

import json
import time

import pytest

from cuarl.cli.app import run as cuarl
from cuarl.store import EpisodeStart, EvaluationRecord, PolicyRecord, SessionRecord, Store
from cuarl.store.check import check
from cuarl.store.deletion import delete_run, prune
from cuarl.tasks.task import Task
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Finish
from tests.unit.cli.conftest import bare_terminal
from tests.unit.store.databases import query
from tests.unit.store.samples import picture, plain, save, save_session
from tests.unit.store.samples import run as record

__all__ = ["bare_terminal"]

ALONE, SHARED, IN_WINDOW, LAST, UNUSED = (picture(shade) for shade in range(5))


def shown(episode_id, *shots, window=(), last=None, **fields):
    sampled = Sampled(prompt_ids=(1,), token_ids=(2,), images=tuple(s.ref for s in window)) if window else None
    turns = tuple(Turn(index=i, screenshot=s.ref, action=Finish(), sampled=sampled) for i, s in enumerate(shots))
    return plain(episode_id, turns=turns, final_screenshot=last and last.ref, **fields)


def fill(store, other_status="completed"):
    """Two runs that share a screenshot, and one screenshot that belongs to neither."""
    store.start_run(record("mine"))
    store.start_run(record("theirs", parent_id="mine"))
    for run_id in ("mine", "theirs"):
        store.log_metrics(run_id, 1, {"loss": 0.5})
        store.log_event(run_id, "kind", {})
        store.save_policy(PolicyRecord(name=f"p-{run_id}", run_id=run_id))
        store.start_episode(
            EpisodeStart(episode_id=f"{run_id}-begun", run_id=run_id, task_id="t", group_id=f"g-{run_id}")
        )
    mine = shown("mine-1", ALONE, SHARED, window=(IN_WINDOW,), last=LAST, run_id="mine", group_id="g-mine")
    save(store, mine, [ALONE, SHARED, IN_WINDOW, LAST, UNUSED])
    save(store, shown("theirs-1", SHARED, run_id="theirs", group_id="g-theirs"), [SHARED])
    store.save_evaluation(EvaluationRecord(id="v-mine", run_id="mine"), ["mine-1"])
    store.save_evaluation(EvaluationRecord(id="v-theirs", run_id="theirs"), ["theirs-1", "mine-1"])
    save_session(store, SessionRecord(id="s", backend="gbox", run_id="mine"))
    store.save_tasks([Task(id="t", description="Do it")])
    store.drain()
    if other_status != "running":
        store.finish_run("theirs", other_status)


def test_a_run_leaves_nothing_but_what_others_need(store):
    fill(store)
    done = delete_run(store, "mine")
    assert (done.episodes, done.screenshots, done.kept) == (1, 3, 0)
    assert set(store.blobs.digests()) == {SHARED.digest, UNUSED.digest}
    assert [r.id for r in store.runs()] == ["theirs"] and store.run("theirs").parent_id is None
    assert {e.episode_id for e in store.episodes()} == {"theirs-1", "theirs-begun"}
    assert [g.group_id for g in store.groups()] == ["g-theirs"]
    assert [v.id for v in store.evaluations()] == ["v-theirs"]
    assert store.evaluation_episode_ids("v-theirs") == ["theirs-1"]
    assert {c.entity_id for c in store.history()} == {"theirs", "theirs-1", "theirs-begun", "v-theirs", "s"}
    assert [s.run_id for s in store.sessions()] == [""]  # a device must be given back all the same
    assert store.metrics("mine") == [] and len(store.metrics("theirs")) == 1
    assert [p.name for p in store.policies()] == ["p-theirs"] and len(store.events()) == 1
    assert check(store, deep=True).problems == ()
    assert delete_run(store, "mine").episodes == 0  # once more is fine


def test_screenshots_stay_while_another_run_may_be_about_to_refer_to_them(store):
    fill(store, "running")
    done = delete_run(store, "mine")
    assert (done.screenshots, done.kept, done.because) == (0, 3, 'run "theirs" is under way')
    assert prune(store).kept == 4
    store.finish_run("theirs")
    assert (prune(store).screenshots, prune(store).screenshots) == (4, 0)
    assert set(store.blobs.digests()) == {SHARED.digest}


def test_a_run_that_was_killed_long_ago_keeps_nothing(store, url):
    fill(store, "running")
    query(url, "UPDATE runs SET heartbeat_at = :then, started_at = :then", then=time.time() - 90_000)
    assert delete_run(store, "mine").screenshots == 3


def test_screenshots_stay_while_another_database_uses_their_folder(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/a.db") as store, Store.open(f"sqlite:///{tmp_path}/b.db") as other:
        fill(store)
        save(other, shown("e", ALONE), [ALONE])
        done = delete_run(store, "mine")
        assert (done.screenshots, done.kept) == (0, 3) and "b.db uses the same folder" in done.because
        assert check(other).problems == ()


def test_a_removed_screenshot_is_stored_again_by_the_same_store(store):
    fill(store)
    delete_run(store, "mine")
    save(store, shown("again", ALONE), [ALONE])
    assert check(store, deep=True).problems == ()


def test_the_commands_delete_runs_by_name_and_prune(capsys):
    with Store.open("sqlite:///runs/cuarl.db") as store:
        fill(store)
    assert cuarl(["db", "delete", "min"]) == 2
    assert cuarl(["db", "delete", "mine"]) == 2  # there is no terminal to ask on
    assert "1 runs and their episodes (mine may be under way)" in capsys.readouterr().err
    assert cuarl(["db", "delete", "mine", "--yes"]) == 0
    assert "mine: 1 episodes and 3 screenshots deleted" in capsys.readouterr().out
    assert cuarl(["db", "prune", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["screenshots"] == 1
    assert cuarl(["db", "check", "--deep"]) == 0


@pytest.mark.integration
def test_overwrite_removes_a_run_from_disk_and_store_alike(capsys, tmp_path):
    command = ["rollout", "--agent", "oracle", "--tasks", "settings", "--episodes", "2", "--name", "same", "--json"]
    ids = []
    for extra in (
        [],
        ["--overwrite"],
        ["--overwrite", "--tasks", "nothing-of-that-name"],
        ["--overwrite", "--seed", "5"],
    ):
        code = cuarl([*command, *extra])
        ids += [json.loads(line)["run_id"] for line in capsys.readouterr().out.splitlines() if '"start"' in line]
        assert code == (2 if "--tasks" in extra else 0)
        with Store.open("sqlite:///runs/cuarl.db") as store:
            assert [r.id for r in store.runs()] == [ids[-1]]
            assert {e.run_id for e in store.episodes()} == {ids[-1]} and len(store.episodes()) == 2
            report = check(store, deep=True)
            assert (report.problems, report.unused_screenshots) == ((), 0)
    assert len(set(ids)) == 3


def test_a_store_that_cannot_forget_a_run_keeps_its_folder(capsys, tmp_path, monkeypatch):
    command = ["rollout", "--agent", "oracle", "--tasks", "settings", "--episodes", "1", "--name", "same"]
    assert cuarl(command) == 0
    before = (tmp_path / "runs" / "same" / "manifest.json").read_bytes()
    query(
        "sqlite:///runs/cuarl.db", "CREATE TRIGGER no BEFORE DELETE ON runs BEGIN SELECT RAISE(ABORT, 'not now'); END"
    )
    assert cuarl([*command, "--overwrite"]) == 1
    assert "not now" in capsys.readouterr().err
    assert (tmp_path / "runs" / "same" / "manifest.json").read_bytes() == before
    with Store.open("sqlite:///runs/cuarl.db") as store:
        assert len(store.episode_ids()) == 1
