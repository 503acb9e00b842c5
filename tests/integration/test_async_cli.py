"""Training beside collecting, as a person runs it: bounded age, killed and resumed, extended."""

import signal

import pytest
import torch
from safetensors.torch import load

from cuarl.train.metrics import METRICS
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import (  # noqa: F401
    checkpoint,
    finished,
    lines,
    measured,
    options,
    place,
    started,
    wait_until,
)

pytestmark = pytest.mark.integration


def weights(run, step):
    return checkpoint(run, step)["adapter_model.safetensors"]


@pytest.fixture
def beside(options):  # noqa: F811
    """Four steps, saved at each, with up to two steps of age and fewer slots than episodes."""
    return [
        *options,
        "--max-steps-off-policy",
        "2",
        "--save-every",
        "1",
        "--eval-every",
        "0",
        "--eval-episodes",
        "2",
        "--skip-baseline",
        "--max-concurrent-rollouts",
        "7",
    ]


def test_groups_are_of_bounded_age_and_say_by_which_policy_each_turn_was_sampled(place, beside):  # noqa: F811
    assert place.cuarl(*beside, "--name", "run").code == 0
    rows = measured(place.folder / "runs" / "run")
    assert rows[0]["async/staleness_max"] == 0
    assert 0 < max(row["async/staleness_max"] for row in rows) <= 2
    assert all(row["policy/lag_max"] == row["async/staleness_max"] for row in rows)
    assert {n for row in rows for n in row if n.startswith("async/")} == {n for n in METRICS if n.startswith("async/")}
    with place.store() as store:
        (record,) = store.runs()
        versions = {
            turn.sampled.policy_version
            for t in store.trajectories(run=record.id)
            for turn in t.turns
            if t.purpose == "train"
        }
    assert versions >= {0, 1}


def test_a_run_that_goes_on_equals_one_that_never_stopped(place, beside):  # noqa: F811
    assert place.cuarl(*beside, "--name", "whole").code == 0
    assert place.cuarl(*beside, "--name", "run", "--max-steps", "2").code == 0
    result = place.cuarl("train", "--resume", "run", "--max-steps", "4")
    assert result.code == 0, result.err
    whole, run = (place.folder / "runs" / name for name in ("whole", "run"))
    assert weights(run, 2) == weights(whole, 2)
    assert weights(run, 4) == weights(whole, 4)
    assert weights(run, 4) != weights(run, 2)
    same = [[{k: v for k, v in row.items() if not k.startswith("eval/")} for row in measured(r)] for r in (run, whole)]
    assert same[0] == same[1]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3])
def test_a_run_that_is_killed_and_resumed_equals_one_that_was_not(place, beside, rows):  # noqa: F811
    assert place.cuarl(*beside, "--name", "whole").code == 0
    cut = place.folder / "runs" / "run"
    process = started(place.folder, [*beside, "--name", "run"])
    wait_until(lambda: (cut / "manifest.json").exists() and len(lines(cut / "metrics.jsonl")) >= rows, process)
    process.kill()
    assert finished(process)[0] == -signal.SIGKILL
    code, err = finished(started(place.folder, ["train", "--resume", "run"]))
    assert code == 0, err
    assert weights(cut, 4) == weights(place.folder / "runs" / "whole", 4)


@pytest.mark.slow
def test_the_main_process_collects_for_those_that_train_beside_it_and_goes_on(place, beside):  # noqa: F811
    several = ["--processes", "2", "--save-every", "1"]
    alone, shared = (place.folder / "runs" / name for name in ("alone", "shared"))
    assert place.cuarl(*beside, "--name", "alone", "--max-steps", "1").code == 0
    code, err = finished(started(place.folder, [*beside, *several, "--name", "shared", "--max-steps", "1"]))
    assert code == 0, err
    one, two = (load(weights(run, 1)) for run in (alone, shared))
    apart = torch.cat([(one[name] - two[name]).abs().flatten() for name in one])
    # Adam's first step divides a gradient by its own size, so one that is rounding alone may go either way
    assert (apart > 1e-5).sum() <= 4 and apart.max() < 1e-3, "the same episodes, summed up in parts"
    code, err = finished(started(place.folder, ["train", "--resume", "shared", "--max-steps", "3", "--processes", "2"]))
    assert code == 0, err
    rows = measured(shared)
    assert [row["step"] for row in rows] == [1, 2, 3]
    assert 0 < max(row["async/staleness_max"] for row in rows) <= 2
    with place.store() as store:
        record = next(run for run in store.runs() if run.name == "shared")
        taken = {t.step for t in store.trajectories(run=record.id) if t.purpose == "train"}
    assert taken >= {1, 2}, "all episodes are in the main process's store"
