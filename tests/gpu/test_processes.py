"""Two GPUs of one machine equal one on the same batches: whole models, and layers in shards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cuarl.train.launch import launch_command

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
DRIVER = "tests.integration.train_driver"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs of one machine"),
]


@pytest.mark.parametrize("preset", ["ddp", "fsdp2"])
@pytest.mark.parametrize("kind", ["grpo", "ppo", "full"])
def test_two_gpus_equal_one_on_the_same_batches(tmp_path, kind, preset):
    one = [sys.executable, "-m", DRIVER, str(tmp_path / "one"), kind]
    two = [*launch_command([], processes=2, accelerate=preset)[:-1], DRIVER, str(tmp_path / "two"), kind]
    for command in (one, two):
        subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, timeout=240)
    alone, shared = (load_file(tmp_path / name / "rank0.safetensors") for name in ("one", "two"))
    assert set(alone) == set(shared)
    assert all(torch.allclose(alone[name], shared[name], atol=1e-4) for name in alone)
    assert (tmp_path / "two" / "checkpoints" / "latest").exists() == (preset == "fsdp2"), "layers were in shards"


def test_in_bfloat16_loss_and_gradient_equal_one_gpus_within_rounding():
    command = [sys.executable, "benchmarks/scaling.py", "--tiny"]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_both_gpus_sampled_is_proven(tmp_path):
    cuarl = [sys.executable, "-m", "cuarl"]
    train = ["train", "--tasks", "settings", "--difficulty", "easy", "--processes", "2", "--max-steps", "2"]
    sizes = ["--groups-per-batch", "4", "--group-size", "4", "--eval-episodes", "2", "--save-every", "1"]
    places = {"CUARL_RUNS_DIR": str(tmp_path), "DATABASE_URL": f"sqlite:///{tmp_path}/cuarl.db"}
    environment = ENVIRONMENT | places
    subprocess.run([*cuarl, *train, *sizes, "--skip-baseline", "--name", "pair"], env=environment, check=True)
    verify = [*cuarl, "rollout", "verify", "pair"]
    done = subprocess.run(verify, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
