"""Manifest and store say the same of how a run ended."""

import pytest
import typer

from cuarl.config.load import resolve
from cuarl.errors import BarMissed, StoreError, TrainError
from cuarl.run import Run
from cuarl.store import Store
from cuarl.workflow.ending import IN_STORE, in_store, settle
from tests.small_disk import fill, small_disk


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/cuarl.db") as store:
        yield store


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "runs", resolve(flags={"tasks": ["settings"]}), name="a")


def full():
    raise StoreError("the disk is full")


@pytest.mark.parametrize(
    ("error", "flush", "status"),
    [
        (None, None, "success"),
        (BarMissed("40 % of 50 %"), None, "success"),
        (SystemExit(0), None, "success"),
        (TrainError("not finite"), None, "failed"),
        (ValueError(), None, "failed"),
        (KeyboardInterrupt(), None, "cancelled"),
        (typer.Exit(130), None, "failed"),
        (None, full, "failed"),
        (KeyboardInterrupt(), full, "failed"),
        (TrainError("not finite"), full, "failed"),
    ],
    ids=lambda value: value.__name__ if callable(value) else repr(value),
)
def test_a_run_ended_alike_in_manifest_and_store(store, run, error, flush, status):
    try:
        with run, in_store(store, run, resolve().config, flush or store.drain):
            if error is not None:
                raise error
    except BaseException as raised:  # noqa: BLE001 (each is one that the test raises)
        assert raised is error or "full" in str(raised)
    (record,) = store.runs()
    assert (Run(run.path).status, record.status) == (status, IN_STORE[status])


def test_what_ended_a_run_is_stored_without_credentials(store, run):
    said = "no answer from http://ann:sesame-84@host/v1?api_key=sesame-85\nmore"
    with pytest.raises(TrainError), run, in_store(store, run, resolve().config, store.drain):
        raise TrainError(said)
    (record,) = store.runs()
    assert "no answer from http" in record.message and "more" not in record.message
    assert "sesame" not in record.message + run.path.joinpath("manifest.json").read_text()


def test_a_run_with_a_broken_manifest_stops_no_other(store, run, tmp_path):
    with run, in_store(store, run, resolve().config, store.drain):
        record = store.runs()[0]
    store.start_run(record)
    (run.path / "manifest.json").write_text("{")
    settle(store)
    other = Run.create(tmp_path / "runs", resolve(flags={"tasks": ["settings"]}), name="b")
    with other, in_store(store, other, resolve().config, store.drain):
        pass
    assert {r.name: r.status for r in store.runs()} == {"a": "running", "b": "completed"}


def test_a_killed_run_is_marked_by_the_next_that_is_recorded(store, run, tmp_path):
    with run, in_store(store, run, resolve().config, store.drain):
        owner = run.manifest.attempts[0].owner.model_copy(update={"started": "1"})
        run.update(attempts=[run.manifest.attempts[0].model_copy(update={"owner": owner})])
        killed, record = run.manifest, store.runs()[0]
    run.update(**killed.model_dump())
    store.start_run(record)
    settle(store)
    assert (Run(run.path).status, run.path.joinpath("manifest.json").read_text().count("killed")) == ("killed", 2)
    (record,) = store.runs()
    assert (record.status, record.message) == ("failed", "killed")


def test_a_run_whose_disk_was_full_for_its_store_too_is_marked_when_there_is_room(tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        run = Run.create(disk, resolve(flags={"tasks": ["settings"]}), name="a")
        with Store.open(f"sqlite:///{disk}/cuarl.db", retry_s=0.1) as store:
            with pytest.raises(TrainError) as caught, run, in_store(store, run, resolve().config, store.drain):
                filling = fill(disk)
                store.log_metrics(run.run_id, 1, {f"reward/{number}{'x' * 50}": 0.1 for number in range(5000)})
                raise TrainError("not finite")
            assert "full" in "".join(caught.value.__notes__)
            assert (Run(run.path).status, store.run(run.run_id).status) == ("failed", "running")
            filling.unlink()
            settle(store)
            assert (store.run(run.run_id).status, store.run(run.run_id).message) == ("failed", "not finite")
