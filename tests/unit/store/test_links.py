"""Links among screenshots, and in exports of somebody else, lead nowhere."""

import os

import pytest

from cuarl.cli.app import run
from cuarl.errors import ConfigError, StoreError
from cuarl.store import Store
from cuarl.store.check import check
from cuarl.store.export import export_store
from cuarl.store.imports import import_store
from cuarl.trajectory import Turn
from cuarl.types import Finish
from tests.unit.cli.conftest import bare_terminal
from tests.unit.store.samples import picture, plain, save

__all__ = ["bare_terminal"]
SECRET = b"root:x:0:0:not a picture"
SHOTS = [picture(shade) for shade in range(3)]


@pytest.fixture
def filled(tmp_path):
    """A store with three screenshots, and a file outside of it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "passwd").write_bytes(SECRET)
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        turns = tuple(Turn(index=i, screenshot=shot.ref, action=Finish()) for i, shot in enumerate(SHOTS))
        save(store, plain(turns=turns), SHOTS)
    return tmp_path / "runs" / "blobs"


def place(blobs, shot):
    return blobs / shot.digest[:2] / f"{shot.digest[2:]}.png"


def lead_out(path):
    path.unlink()
    path.symlink_to(path.parents[3] / "outside" / "passwd")


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


def lead_folder_out(path):
    path.rename(path.parents[3] / "outside" / path.name)
    path.parent.rmdir()
    path.parent.symlink_to(path.parents[3] / "outside")


@pytest.mark.parametrize("damage", [lead_out, make_pipe, lead_folder_out])
def test_c59_an_export_follows_no_link(filled, tmp_path, damage):
    damage(place(filled, SHOTS[0]))
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        done = export_store(store, tmp_path / "out")
        assert (done.screenshots, done.missing_screenshots) == (2, 1)
        assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file() and SECRET in p.read_bytes()]
        assert not [p for p in (tmp_path / "out").rglob("*") if p.is_symlink()]
        assert check(store).problems == (f"screenshot {SHOTS[0].digest} is missing",)
        with pytest.raises(StoreError, match="is missing"):
            store.blobs.get(SHOTS[0].digest)


@pytest.mark.parametrize("damage", [lead_out, make_pipe])
def test_a_screenshot_is_written_in_the_place_of_a_link_and_not_behind_it(filled, tmp_path, damage):
    damage(place(filled, SHOTS[0]))
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        store.blobs.put(SHOTS)
        assert check(store, deep=True).problems == ()
    assert (tmp_path / "outside" / "passwd").read_bytes() == SECRET


def test_nothing_is_written_behind_a_link(filled, tmp_path):
    lead_folder_out(place(filled, SHOTS[0]))
    (tmp_path / "outside" / place(filled, SHOTS[0]).name).unlink()
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store, pytest.raises(StoreError, match="behind a link"):
        store.blobs.put(SHOTS)
    assert [p.name for p in (tmp_path / "outside").iterdir()] == ["passwd"]


def test_the_folder_of_the_screenshots_may_be_a_link_itself(filled, tmp_path):
    filled.rename(tmp_path / "elsewhere")
    filled.symlink_to(tmp_path / "elsewhere")
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        assert export_store(store, tmp_path / "out").missing_screenshots == 0


@pytest.mark.parametrize("name", ["runs.jsonl", "episodes.jsonl", "manifest.json"])
def test_an_import_follows_no_link_and_waits_for_no_pipe(filled, tmp_path, name):
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        export_store(store, tmp_path / "out")
    path = tmp_path / "out" / name
    path.rename(tmp_path / "outside" / name)
    for make in (lambda: path.symlink_to(tmp_path / "outside" / name), lambda: os.mkfifo(path)):
        make()
        with Store.open(f"sqlite:///{tmp_path}/other/x.db") as other:
            with pytest.raises((StoreError, ConfigError), match=r"can't be read|not an export"):
                import_store(other, tmp_path / "out", at=0.0)
            assert other.runs() == other.episode_ids() == []
        path.unlink()


def test_a_run_whose_folder_was_given_an_odd_name_is_shown_without_steering_the_terminal(tmp_path, capsys):
    assert run(["rollout", "--agent", "oracle", "--tasks", "settings", "--episodes", "1", "--name", "a"]) == 0
    (tmp_path / "runs" / "a").rename(tmp_path / "runs" / "a\x1b[2J\u202eb")
    assert run(["monitor", "tail"]) == 0
    assert run(["rollout", "verify", "nobody\x1b[2J"]) == 2
    assert run(["rollout", "show", "x" * 5000]) == 2
    assert run(["monitor", "tail", "x" * 5000]) == 2
    out, err = capsys.readouterr()
    assert "a\\x1b[2J\\u202eb" in err and "\x1b" not in out + err and "\u202e" not in out + err
