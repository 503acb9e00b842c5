"""Training whose folder of runs has no room left."""

import json

import pytest

from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import finished, measured, options, place, started  # noqa: F401
from tests.small_disk import small_disk

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_training_on_a_full_disk_fails_in_one_line_that_names_the_place_and_goes_on_with_room(
    place,  # noqa: F811
    options,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/runs/cuarl.db")  # elsewhere than the folder that is full
    args = [*options, "--save-every", "1", "--eval-every", "0", "--eval-episodes", "2", "--skip-baseline"]
    with small_disk(tmp_path / "disk", "16m") as disk:
        run, others = disk / "run", disk / "others"
        others.write_bytes(bytes(13 << 20))
        code, err = finished(
            started(place.folder, [*args, "--max-steps", "40", "--runs-dir", str(disk), "--name", "run"])
        )
        assert code == 1, err
        said = err.splitlines()[-4:]
        assert said[0].startswith("error: the checkpoint of step "), err
        assert said[1].startswith(f"  at: {run}/checkpoints/step-"), err
        assert said[2] == f"  fix: df -h {run}/checkpoints" and said[3].startswith(f"  log: {run}")
        assert "Traceback" not in err and "Logging error" not in err, err
        manifest = json.loads((run / "manifest.json").read_text())
        with place.store() as store:
            (record,) = store.runs()
        assert (manifest["status"], manifest["exit_code"], record.status) == ("failed", 1, "failed")
        done = json.loads((run / "checkpoints" / "latest.json").read_text())["step"]
        assert done >= 1
        others.unlink()
        resume = ["train", "--resume", "run", "--runs-dir", str(disk), "--max-steps", str(done + 1)]
        code, err = finished(started(place.folder, resume))
        assert code == 0, err
        assert [row["step"] for row in measured(run)] == list(range(1, done + 2))
