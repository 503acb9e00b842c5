"""Data sets: written, loaded by the library that they are for, and back in, equal."""

import json
import math
import sys

import pytest

from cuarl.errors import MissingExtra, StoreError
from cuarl.store import Store
from cuarl.store.dataset.export import export_dataset
from cuarl.store.dataset.read import joined
from cuarl.store.imports import check_export, import_loaded, import_store
from cuarl.store.records import HumanVerdict
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Click, Finish
from tests.unit.store.samples import picture, plain, rich, run, save

SHOTS = [picture(shade) for shade in range(4)]
LATER = 4e9


@pytest.fixture
def filled(tmp_path):
    """Episodes of two purposes; one names screenshots that nobody stored, and one has a picture that only a prompt
    shows."""
    with Store.open(f"sqlite:///{tmp_path}/a/x.db") as store:
        store.start_run(run("r1", directory="/home/ann/runs/r1", info={"host": "anns-laptop"}, config={"seed": 3}))
        save(store, rich(run_id="r1"))
        sampled = Sampled(
            prompt_ids=(1, 2),
            images=(SHOTS[0].ref, SHOTS[3].ref),
            token_ids=(3, 4),
            text="half \ud800 a pair",
            logprobs=(-0.1, float("-inf")),
            policy="qwen",
        )
        turns = tuple(
            Turn(index=i, screenshot=shot.ref, action=Click(x=1, y=i), sampled=sampled)
            for i, shot in enumerate(SHOTS[:2])
        )
        seen = plain("seen", run_id="r1", turns=turns, final_screenshot=SHOTS[2].ref, goal="| *go* \ud800\n# on")
        save(store, seen, SHOTS)
        save(store, plain("none", run_id="r1", turns=(), purpose="eval", verdict=None, reward=None))
        store.save_human_verdict(HumanVerdict(episode_id="seen", success=False, reason="no", actor="ann"))
        yield store


@pytest.fixture
def other(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/b/y.db") as store:
        yield store


def assert_equal(other, filled):
    assert repr(sorted(other.trajectories(), key=repr)) == repr(sorted(filled.trajectories(), key=repr))
    assert {d: other.blobs.png(d) for d in other.blobs.digests()} == {
        d: filled.blobs.png(d) for d in filled.blobs.digests()
    }


def test_a_data_set_imports_to_equal_episodes_and_screenshots(filled, other, tmp_path):
    pytest.importorskip("pyarrow")
    done = export_dataset(filled, tmp_path / "out")
    assert (done.counts["episodes"], done.counts["turns"], done.screenshots, done.missing_screenshots) == (3, 5, 4, 4)
    for _ in range(2):  # what is there already stays
        import_store(other, tmp_path / "out", at=LATER)
    assert_equal(other, filled)
    assert other.overruled() == {"seen": False}


def test_what_datasets_loads_imports_to_equal_episodes(filled, other, tmp_path):
    datasets = pytest.importorskip("datasets")
    export_dataset(filled, tmp_path / "out")

    def load(table, split, **decoding):
        cache = str(tmp_path / "cache")
        return datasets.load_dataset(str(tmp_path / "out"), table, split=split, cache_dir=cache)

    turns = load("turns", "rollout")
    assert isinstance(turns.features["image"], datasets.Image)
    assert turns[1]["image"].tobytes() == SHOTS[1].image.tobytes()
    assert turns[0]["token_ids"] == [3, 4] and turns[0]["window"] == [SHOTS[0].digest, SHOTS[3].digest]
    whole = load("episodes", "rollout")[0]
    assert whole["final_image"].size == (6, 10) and [one.size for one in whole["more_images"]] == [(6, 10)]
    import_loaded(other, load("episodes", "rollout"), turns, at=LATER)
    import_loaded(other, load("episodes", "train"), load("turns", "train"), at=LATER)
    import_loaded(other, load("episodes", "eval"), [], at=LATER)
    assert_equal(other, filled)


def test_columns_are_for_people_and_hold_no_number_that_is_none(filled, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    export_dataset(filled, tmp_path / "out")
    [row, _] = parquet.read_table(tmp_path / "out" / "turns" / "rollout-00000.parquet").to_pylist()
    assert row["logprobs"] is None and row["text"] == "half \ufffd a pair"
    assert (row["success"], row["recorded_success"]) == (False, True)
    assert json.loads(row["action"]) == {"kind": "click", "x": 1, "y": 0, "button": "left", "count": 1}
    for path in (tmp_path / "out").rglob("*.parquet"):
        flat = [v for row in parquet.read_table(path).to_pylist() for v in row.values()]
        assert not [v for v in flat if isinstance(v, float) and not math.isfinite(v)], path


def test_large_tables_are_several_files_and_come_back_in_order(filled, other, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("cuarl.store.dataset.shards._GROUP_BYTES", 1)
    monkeypatch.setattr("cuarl.store.dataset.shards._FILE_BYTES", 1)
    export_dataset(filled, tmp_path / "out")
    assert len(list((tmp_path / "out" / "turns").glob("rollout-*.parquet"))) == 2
    import_store(other, tmp_path / "out", at=LATER)
    assert_equal(other, filled)


def test_nothing_of_the_machine_or_of_persons_is_given_away_and_the_card_warns(filled, tmp_path):
    pytest.importorskip("pyarrow")
    export_dataset(filled, tmp_path / "out")
    given = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*.*"))
    assert [word for word in (b"/home/ann", b"anns-laptop", b'"ann"') if word in given] == []
    card = (tmp_path / "out" / "README.md").read_text()
    assert "whatever was on the devices" in card and "not redacted" in card
    assert "| rollout | 1 | 2 | 0 of 1 with a verdict |" in card and "| eval | 1 | 0 | 0 of 0 with a verdict |" in card
    assert "path: turns/eval" not in card, "there is no such file"
    assert "gbox (1 episodes)" in card and "qwen3-vl-mobile qwen (1)" in card


def test_without_pyarrow_one_command_helps(filled, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra) as caught:
        export_dataset(filled, tmp_path / "out")
    assert caught.value.hint == 'pip install "cuarl[data]"'
    assert not (tmp_path / "out").exists()


def test_a_broken_file_is_named_before_anything_is_imported(filled, other, tmp_path):
    pytest.importorskip("pyarrow")
    export_dataset(filled, tmp_path / "out")
    file = tmp_path / "out" / "turns" / "train-00000.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match="can't be read") as caught:
        check_export(tmp_path / "out")
    assert caught.value.where == str(file)
    file.unlink()
    with pytest.raises(StoreError, match='turns of episode "rich" are missing'):
        check_export(tmp_path / "out")
    assert list(other.trajectories()) == []


def test_rows_in_another_order_are_refused():
    record = plain("e").model_dump_json(exclude={"turns"})
    row = {"episode_id": "e", "turn_count": 1, "record": record}
    turn = {"episode_id": "f", "record": Turn(index=0, screenshot=SHOTS[0].ref, action=Finish()).model_dump_json()}
    with pytest.raises(StoreError, match="in another order"):
        list(joined([row], [turn]))
    assert [t.episode_id for t in joined([row], [{**turn, "episode_id": "e"}])] == ["e"]


def test_a_picture_that_is_not_what_its_name_says_is_refused(other):
    with pytest.raises(StoreError, match="shows something else"):
        other.blobs.put_file(SHOTS[0].png(), SHOTS[1].digest)
    with pytest.raises(StoreError, match="can't be read"):
        other.blobs.put_file(b"no picture")
    assert other.blobs.put_file(SHOTS[0].png()) == SHOTS[0].digest
    assert list(other.blobs.digests()) == [SHOTS[0].digest]
