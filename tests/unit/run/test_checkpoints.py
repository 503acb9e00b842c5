"""Which checkpoint a run is resumed from, whatever became of it on the way here."""

import json
import shutil
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from cuarl.errors import CheckpointError
from cuarl.run.checkpoints import POINTER, mark, marked_step, newest, saved_steps, step_name


def write(root, *steps, marked=True):
    """Small checkpoints, each with all that one has."""
    for step in steps:
        folder, trainer = root / step_name(step), root / "trainer" / step_name(step)
        folder.mkdir(parents=True), trainer.mkdir(parents=True)
        save_file({"a": torch.zeros(3), "b": torch.zeros(2, 2)}, folder / "adapter_model.safetensors")
        (folder / "cuarl.json").write_text(json.dumps({"step": step}))
        torch.save({"step": step}, trainer / "state.pt")
        if marked:
            mark(root, step)
    return root


def copied_without_links(root, to):
    shutil.copytree(root, to, symlinks=True, ignore=lambda folder, names: [n for n in names if n == "latest"])
    return to


def copied_following_links(root, to):
    return shutil.copytree(root, to, symlinks=False)


@pytest.mark.parametrize("copy", [copied_without_links, copied_following_links])
@pytest.mark.parametrize("old", [False, True], ids=["with the mark in a file", "with the link alone"])
def test_b16_a_copied_run_goes_on_from_its_newest_checkpoint(tmp_path, copy, old):
    root = write(tmp_path / "a", 1, 2, 3)
    if old:
        (root / "latest.json").unlink()
    there = copy(root, tmp_path / "b")
    assert newest(there).step == 3
    assert bool(newest(there).note) == (old and copy is copied_without_links)
    write(there, 4)
    assert newest(there) == (4, "")
    assert (there / "latest").readlink().name == "step-000004"
    assert (there / "latest.copy").is_dir() == (copy is copied_following_links)


def test_a_run_without_any_mark_goes_on_from_the_newest_that_is_whole(tmp_path):
    root = write(tmp_path, 1, 2, 3, marked=False)
    (root / "trainer" / "step-000003" / "state.pt").unlink()
    assert newest(root).step == 2
    assert "nothing says which checkpoint is the newest" in newest(root).note
    assert newest(root, state=False).step == 3


def test_a_checkpoint_that_was_not_committed_is_left_out(tmp_path):
    mark(tmp_path, 0)
    write(tmp_path, 1, marked=False)
    assert newest(tmp_path) is None
    mark(tmp_path, 1)
    write(tmp_path, 2, marked=False)
    assert newest(tmp_path) == (1, "")


def cut(file):
    file.write_bytes(file.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        pytest.param(lambda root: cut(root / "step-000002/adapter_model.safetensors"), "cut off", id="weights cut off"),
        pytest.param(
            lambda root: (root / "step-000002/adapter_model.safetensors").unlink(),
            "weights are missing",
            id="weights missing",
        ),
        pytest.param(
            lambda root: (root / "step-000002/adapter_model.safetensors").write_bytes(b"x" * 40),
            "damaged",
            id="no weights",
        ),
        pytest.param(
            lambda root: (root / "step-000002/cuarl.json").unlink(), "cuarl.json is missing", id="facts missing"
        ),
        pytest.param(
            lambda root: cut(root / "trainer/step-000002/state.pt"), "state.pt is cut off", id="state cut off"
        ),
        pytest.param(
            lambda root: (root / "trainer/step-000002/state.pt").unlink(), "state.pt is missing", id="state missing"
        ),
        pytest.param(
            lambda root: (root / "step-000002/model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}})
            ),
            "model-00001-of-00002.safetensors is missing",
            id="a shard missing",
        ),
    ],
)
def test_a_newest_checkpoint_that_is_damaged_is_an_error_and_no_way_back_unasked(tmp_path, damage, says):
    root = write(tmp_path, 1, 2)
    damage(root)
    with pytest.raises(CheckpointError, match=says) as caught:
        newest(root)
    (root / "step-000002").rename(root / "damaged")  # as the hint says
    assert f"mv {root / 'step-000002'}" in (caught.value.hint or "")
    assert newest(root) == (1, "the checkpoint of step 2 is gone: resuming from step 1, the newest that is whole")


def test_steps_that_were_done_and_are_not_here_are_an_error(tmp_path):
    assert newest(tmp_path / "none") is None
    with pytest.raises(CheckpointError, match="has done 8 steps"):
        newest(tmp_path / "none", finished=8)
    mark(tmp_path, 0)
    assert newest(tmp_path, finished=8) is None  # killed between the first checkpoint and its commit


def test_checkpoints_none_of_which_is_whole_are_an_error(tmp_path):
    root = write(tmp_path, 1, 2, marked=False)
    shutil.rmtree(root / "trainer")
    with pytest.raises(CheckpointError, match=r"none of 2 checkpoints is whole; step 2: .*state\.pt is missing"):
        newest(root)


def test_a_pointer_to_weights_that_are_kept_elsewhere_is_whole(tmp_path):
    (tmp_path / "step-000007").mkdir()
    (tmp_path / "step-000007" / POINTER).write_text(json.dumps({"step": 7}))
    assert newest(tmp_path).step == 7


@pytest.mark.parametrize("text", ["", "{", "[]", '{"step": null}'])
def test_a_broken_mark_gives_way_to_the_link(tmp_path, text):
    write(tmp_path, 1)
    (tmp_path / "latest.json").write_text(text)
    assert marked_step(tmp_path) == 1


def test_only_folders_of_steps_are_checkpoints(tmp_path):
    write(tmp_path, 1)
    (tmp_path / "step-000009").write_text("a file")
    (tmp_path / "step-2").mkdir()
    assert saved_steps(tmp_path) == [1]
    assert zipfile.is_zipfile(tmp_path / "trainer" / "step-000001" / "state.pt")
