import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cuarl.train.launch import launch_command

ROOT = Path(__file__).parents[2]
DRIVER = "tests.integration.train_driver"
pytestmark = [pytest.mark.integration, pytest.mark.slow]


def run(command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=240)


def alone_and_in_two(folder, kind, preset):
    """Weights of one process and of the first of two, which the second has, too; and the metrics of both."""
    run([sys.executable, "-m", DRIVER, str(folder / "one"), kind])
    launcher = launch_command([], processes=2, accelerate=preset)[:-1]  # all but the name of the package
    run([*launcher, DRIVER, str(folder / "two"), kind])
    one, two, other = (load_file(folder / f"{name}.safetensors") for name in ("one/rank0", "two/rank0", "two/rank1"))
    assert set(one) == set(two)
    assert all(torch.equal(two[name], other[name]) for name in two)
    assert (folder / "two" / "rank1.json").read_text() == (folder / "two" / "rank0.json").read_text()
    return one, two, [json.loads((folder / n).read_text()) for n in ("one/rank0.json", "two/rank0.json")]


@pytest.mark.parametrize(
    ("kind", "preset"),
    [
        ("grpo", "ddp"),
        ("ppo", "ddp"),
        ("start", "ddp"),
        ("grpo", "fsdp2"),
        ("ppo", "fsdp2"),
        ("full", "fsdp2"),
        ("start", "fsdp2"),
    ],
)
def test_c38_two_processes_equal_one_on_the_same_batches_even_if_one_has_nothing_to_do(tmp_path, kind, preset):
    one, two, history = alone_and_in_two(tmp_path, kind, preset)
    assert all(torch.allclose(one[name], two[name], atol=1e-6) for name in one)
    assert kind == "full" or any((one[name] != 0).any() for name in one if "lora_B" in name)
    for alone, shared in zip(*history, strict=True):
        # how much is padded, packed and encoded depends on the cut, and nothing else does
        cut = {name: shared.get(name) for name in ("train/padding_frac", "train/packed_frac", "train/pictures")}
        # sums in another order, in shards with adapters apart; a norm of 13 has eight digits in float32
        assert shared == pytest.approx(alone | cut, abs=1e-5, rel=1e-5 if preset == "fsdp2" else 2e-6)
    assert (tmp_path / "two" / "checkpoints" / "latest").exists() == (preset == "fsdp2"), "layers were in shards"


@pytest.mark.parametrize("preset", ["ddp", "fsdp2"])
def test_two_processes_with_all_weights_in_bfloat16_stay_together_and_near_one(tmp_path, preset):
    one, two, history = alone_and_in_two(tmp_path, "full-16", preset)
    assert {p.dtype for p in two.values()} == {torch.bfloat16}
    # rows are cut otherwise, so passes round otherwise; then the spacing of the weights themselves
    apart = torch.cat([(one[name].float() - two[name].float()).abs().flatten() for name in one])
    assert apart.mean() < 1e-3 and apart.max() < 1.5e-2, "of five updates of at most 1e-2 each"
    for alone, shared in zip(*history, strict=True):
        assert shared["optim/grad_norm"] == pytest.approx(alone["optim/grad_norm"], rel=0.05)
