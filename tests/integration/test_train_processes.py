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
    run([sys.executable, "-m", DRIVER, str(tmp_path / "one"), kind])
    launcher = launch_command([], processes=2, accelerate=preset)[:-1]  # all but the name of the package
    run([*launcher, DRIVER, str(tmp_path / "two"), kind])
    one = load_file(tmp_path / "one" / "rank0.safetensors")
    two = load_file(tmp_path / "two" / "rank0.safetensors")
    assert set(one) == set(two)
    assert all(torch.allclose(one[name], two[name], atol=1e-6) for name in one)
    assert kind == "full" or any((one[name] != 0).any() for name in one if "lora_B" in name)
    history = [json.loads((tmp_path / n).read_text()) for n in ("one/rank0.json", "two/rank0.json")]
    for alone, shared in zip(*history, strict=True):
        # how much is padded, packed and encoded depends on the cut, and nothing else does
        cut = {name: shared.get(name) for name in ("train/padding_frac", "train/packed_frac", "train/pictures")}
        # sums in another order, in shards with adapters apart; a norm of 13 has eight digits in float32
        assert shared == pytest.approx(alone | cut, abs=1e-5, rel=1e-5 if preset == "fsdp2" else 2e-6)
    assert (tmp_path / "two" / "checkpoints" / "latest").exists() == (preset == "fsdp2"), "layers were in shards"
    other = load_file(tmp_path / "two" / "rank1.safetensors")
    assert all(torch.equal(two[name], other[name]) for name in two)
    assert (tmp_path / "two" / "rank1.json").read_text() == (tmp_path / "two" / "rank0.json").read_text()
