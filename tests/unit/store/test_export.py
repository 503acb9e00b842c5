import json

import pytest

from cuarl.errors import ConfigError, StoreError
from cuarl.store import EpisodeStart, EvaluationRecord, PolicyRecord, SessionRecord, Store
from cuarl.store.aside import whole_or_not_at_all
from cuarl.store.check import check
from cuarl.store.export import export_store
from cuarl.store.imports import check_export, import_store
from cuarl.store.rebuild import rebuild
from cuarl.store.schema import VERSION_TABLE
from cuarl.tasks.task import Task
from cuarl.trajectory import Turn
from cuarl.types import Finish
from tests.unit.store.databases import query
from tests.unit.store.samples import group, picture, plain, rich, run, save, save_session

FAR_FUTURE = 4e9


@pytest.fixture
def filled(store):
    """A bit of everything, in two runs of which the second comes from the first."""
    store.start_run(run("r1", config={"a": [1, None]}))
    store.start_run(run("r2", parent_id="r1", started_at=5.0))
    shot = picture(1)
    save(store, rich(run_id="r1"))
    turn = Turn(index=0, screenshot=shot.ref, action=Finish())
    save(store, plain("seen", run_id="r2", turns=(turn,)), [shot, picture(2)])
    save(store, group(run_id="r2", step=3))
    store.start_episode(EpisodeStart(episode_id="half", run_id="r2", task_id="t"))
    store.save_evaluation(EvaluationRecord(id="v", run_id="r2", suite="s", metrics={"n": 2.0}), ["seen", "rich"])
    store.save_policy(PolicyRecord(name="p", run_id="r2"))
    store.save_tasks([Task(id="t", description="Do it")])
    store.log_metrics("r1", 1, {"loss": float("nan")})
    store.log_metrics("r2", 2, {"loss": 0.5})
    store.log_event("r2", "checkpoint", {"step": 2})
    save_session(store, SessionRecord(id="s", backend="gbox", run_id="r2"))
    store.finish_run("r1", "completed")
    return store


@pytest.fixture
def other(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/other/x.db") as opened:
        yield opened


def everything(store):
    return repr(
        [
            sorted(store.runs(), key=lambda r: r.id),
            list(store.trajectories()),
            store.groups(),
            store.policies(),
            store.tasks(),
            store.evaluations(),
            store.evaluation_episode_ids("v"),
            store.metrics("r1"),
            store.metrics("r2"),
            store.events(),
            [c for c in store.history() if c.entity != "session" and c.entity_id != "half"],
        ]
    )


def test_an_export_imports_to_an_equal_store(filled, other, tmp_path):
    done = export_store(filled, tmp_path / "out")
    assert (done.counts["episodes"], done.screenshots, done.missing_screenshots) == (5, 1, 5)
    assert import_store(other, tmp_path / "out", at=FAR_FUTURE).counts == done.counts
    assert everything(other) == everything(filled)
    assert list(other.blobs.digests()) == [picture(1).digest]
    assert check(other).problems == check(filled).problems  # rich names screenshots that nobody stored


def test_an_import_may_be_repeated(filled, other, tmp_path):
    export_store(filled, tmp_path / "out")
    import_store(other, tmp_path / "out", at=FAR_FUTURE)
    again = import_store(other, tmp_path / "out", at=FAR_FUTURE + 1)
    assert again.counts["episodes"] == 0
    assert everything(other) == everything(filled)


def test_a_run_is_exported_by_its_name_or_as_the_latest(filled, tmp_path):
    named = next(record for record in filled.runs() if record.name)
    for number, reference in enumerate((named.id, named.name)):
        export_store(filled, tmp_path / f"out{number}", run=reference)
        assert json.loads((tmp_path / f"out{number}" / "manifest.json").read_text())["run"] == named.id
    export_store(filled, tmp_path / "newest", run="latest")
    assert json.loads((tmp_path / "newest" / "manifest.json").read_text())["run"] == filled.runs()[0].id


def test_what_is_there_already_stays(filled, other, tmp_path):
    export_store(filled, tmp_path / "out")
    other.start_run(run("r1", name="mine"))
    save(other, plain("seen", goal="mine"))
    import_store(other, tmp_path / "out", at=FAR_FUTURE)
    assert other.run("r1").name == "mine"
    assert other.trajectory("seen").goal == "mine"
    assert other.trajectory("rich") == rich(run_id="r1")


def test_an_export_comes_from_a_machine_whose_clock_is_ahead(filled, other, tmp_path):
    export_store(filled, tmp_path / "out")
    import_store(other, tmp_path / "out", at=0.0)
    assert everything(other) == everything(filled)


def test_an_export_of_one_run_has_that_run_and_those_it_came_from(filled, other, tmp_path):
    done = export_store(filled, tmp_path / "out", run="r2")
    assert {k: done.counts[k] for k in ("runs", "episodes", "metrics", "evaluations")} == {
        "runs": 2,
        "episodes": 4,
        "metrics": 1,
        "evaluations": 1,
    }
    import_store(other, tmp_path / "out", at=FAR_FUTURE)
    assert {e.run_id for e in other.episodes()} == {"r2"}
    assert other.evaluation_episode_ids("v") == ["seen"]
    with pytest.raises(ConfigError, match=r'no run "r22" in the store \(did you mean "r2"'):
        export_store(filled, tmp_path / "out9", run="r22")
    assert not (tmp_path / "out9").exists()


def test_one_line_is_one_whole_episode(filled, tmp_path):
    export_store(filled, tmp_path / "out", images=False)
    lines = (tmp_path / "out" / "episodes.jsonl").read_text().splitlines()
    assert {json.loads(line)["episode_id"] for line in lines} == {"rich", "seen", "g0-0", "g0-1", "g0-2"}
    assert not (tmp_path / "out" / "blobs").exists()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["counts"]["episodes"] == 5


def test_an_export_does_not_mix_with_what_is_in_a_folder(filled, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("")
    with pytest.raises(ConfigError, match="empty folder"):
        export_store(filled, tmp_path / "out")


def test_a_broken_line_is_named_before_anything_is_imported(filled, other, tmp_path):
    export_store(filled, tmp_path / "out")
    path = tmp_path / "out" / "metrics.jsonl"
    path.write_text(path.read_text() + "{\n")
    with pytest.raises(StoreError, match="can't be read") as caught:
        import_store(other, tmp_path / "out", at=FAR_FUTURE)
    assert caught.value.where == f"{path}, line 3"
    assert other.runs() == []


@pytest.mark.parametrize(
    ("manifest", "message"),
    [("{}", "not an export"), ("x", "not an export"), ('{"format": 99, "trajectory_schema": 1}', "newer than")],
    ids=["empty", "no JSON", "newer"],
)
def test_a_folder_that_is_no_export_of_ours_is_refused(tmp_path, manifest, message):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(ConfigError, match=message):
        check_export(tmp_path)


def test_parquet_has_one_turn_a_row(filled, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert export_store(filled, tmp_path / "out").parquet
    rows = parquet.read_table(tmp_path / "out" / "turns.parquet").to_pylist()
    assert len(rows) == sum(len(e.turns) for e in filled.trajectories())
    [seen] = [row for row in rows if row["episode_id"] == "seen"]
    assert (tmp_path / "out" / seen["image"]).exists()
    first = next(row for row in rows if row["episode_id"] == "rich" and row["turn"] == 0)
    assert first["token_ids"] == list(rich().turns[0].sampled.token_ids)
    assert first["logprobs"] == list(rich().turns[0].sampled.logprobs)


def test_an_export_that_breaks_off_leaves_nothing(filled, url, tmp_path):
    query(url, "UPDATE turns SET width = 0 WHERE episode_id = 'seen'")
    for folder in (tmp_path / "new", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(StoreError, match="can't be read"):
            export_store(filled, folder)
        assert sorted(tmp_path.rglob("*")) == before


def test_an_interrupted_folder_is_gone_and_a_whole_one_has_its_manifest_last(tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), whole_or_not_at_all(folder) as aside:
        (aside / "x").write_text("")
        assert not folder.exists()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        with whole_or_not_at_all(folder) as aside:
            (aside / "manifest.json").write_text("")
            (aside / "x").write_text("")
        assert {entry.name for entry in folder.iterdir()} == {"manifest.json", "x"}
        for entry in folder.iterdir():
            entry.unlink()  # an empty folder is as good as none


def test_what_a_killed_export_left_is_named_and_not_mixed(filled, tmp_path):
    (tmp_path / ".out.unfinished").mkdir()
    with pytest.raises(ConfigError, match="under way, or was killed") as caught:
        export_store(filled, tmp_path / "out")
    assert caught.value.hint == f"rm -r {tmp_path}/.out.unfinished"


def test_a_file_in_the_place_of_the_folder_is_left_alone(filled, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ConfigError, match="this is a file"):
        export_store(filled, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_rebuilding_starts_over_whatever_the_schema_was(filled, url, tmp_path):
    query(url, f"UPDATE {VERSION_TABLE} SET version_num = '0099'")
    query(url, "CREATE TABLE theirs (id INTEGER)")
    copied = rebuild(url)
    assert (copied is not None) == url.startswith("sqlite")
    with Store.open(url, f"{tmp_path}/blobs", runs_dir=tmp_path) as store:
        assert store.runs() == []
        assert check(store).problems == ()
    assert query(url, "SELECT count(*) FROM theirs") == [(0,)]
    query(url, "DROP TABLE theirs")
