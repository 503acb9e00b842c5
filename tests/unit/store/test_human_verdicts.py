"""What people say of episodes: kept with its history, beside the recorded verdict, through exports and deletions."""

import pytest

from cuarl.errors import StoreError
from cuarl.store import Store
from cuarl.store.deletion import delete_run
from cuarl.store.export import export_store
from cuarl.store.imports import import_store
from cuarl.store.records import HumanVerdict
from tests.unit.store.samples import plain, run, save


def say(store, success, reason="", episode="e0"):
    return store.save_human_verdict(HumanVerdict(episode_id=episode, success=success, reason=reason, actor="ann"))


@pytest.fixture
def judged(store):
    store.start_run(run())
    save(store, plain(run_id="r1"))
    save(store, plain("e1", run_id="r1"))
    say(store, False, "it\x00 was <b>bluetooth</b>")
    say(store, True, "no, it was right")
    return store


def test_the_newest_holds_and_all_are_kept(judged):
    assert [(v.success, v.reason) for v in judged.human_verdicts(episode="e0")] == [
        (False, "it\x00 was <b>bluetooth</b>"),
        (True, "no, it was right"),
    ]
    assert judged.overruled(run="r1") == {"e0": True}
    assert judged.trajectory("e0").success is True
    say(judged, None)
    assert judged.overruled() == {}
    assert len(judged.human_verdicts(run="r1")) == 3


def test_what_was_said_later_does_not_count_before(judged):
    first, second = judged.human_verdicts()
    assert judged.overruled(before=first.at - 1) == {}
    assert judged.overruled(before=(first.at + second.at) / 2) == {"e0": first.at == second.at}


def test_only_a_finished_episode_can_be_judged(judged):
    with pytest.raises(StoreError, match="no finished episode"):
        say(judged, True, episode="nobody")


def test_an_export_and_import_keep_them_and_a_deleted_run_takes_them_along(judged, tmp_path):
    export_store(judged, tmp_path / "out", run="r1")
    with Store.open(f"sqlite:///{tmp_path}/copy/x.db") as copy:
        import_store(copy, tmp_path / "out", at=5.0)
        import_store(copy, tmp_path / "out", at=6.0)
        assert copy.human_verdicts() == judged.human_verdicts()
    delete_run(judged, "r1")
    assert judged.human_verdicts() == []


def test_the_table_for_data_frames_says_what_holds_and_what_was_recorded(judged, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    say(judged, False)
    export_store(judged, tmp_path / "out")
    rows = parquet.read_table(tmp_path / "out" / "turns.parquet").to_pylist()
    assert {r["episode_id"]: (r["success"], r["recorded_success"]) for r in rows} == {
        "e0": (False, True),
        "e1": (True, True),
    }
