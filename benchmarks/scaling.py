"""One GPU and two of one machine on the same batch: the same loss, and how much faster: ``python
benchmarks/scaling.py``.

A model of real size with random weights (``real_sizes``) in bfloat16, LoRA, GRPO and PPO with a critic; alone, and in
two processes with whole models (ddp) and with layers in shards (fsdp2). The batch is played once and is the same for
all. Prints one JSON line for each: loss, entropy and gradient norm of two updates, seconds of the second one, peak
memory; and says which differ from one GPU's by more than bfloat16 explains. ``--tiny`` runs a small model, on a CPU
too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampling.local import LocalSampler
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.launch import launch_command
from cuarl.train.learner import Learner
from cuarl.train.processes import join_processes, sharded

ROOT = Path(__file__).parents[1]
KINDS, PRESETS = ("grpo", "ppo"), ("ddp", "fsdp2")
UPDATES = 2
TOLERANCE = {"policy/loss": 5e-3, "value/loss": 5e-3, "policy/entropy": 1e-2, "optim/grad_norm": 5e-2}
"""How far apart values may be, relative to the larger of them and 1: bfloat16 has a relative step of 1/128, and how
rows are cut into passes decides how sums are rounded. The gradient's norm is compared relative to itself."""


def work(name: str, kinds: Sequence[str], folder: Path) -> None:
    """What each process does: every algorithm in turn, each with a fresh policy."""
    accelerator = join_processes()
    for kind in kinds:
        line = updated(name, kind, folder, accelerator)
        if accelerator.is_main_process:
            (folder / f"{kind}.json").write_text(json.dumps(line))
        # the next policy is prepared as if there had been none before
        accelerator.free_memory()
        gc.collect()
        if accelerator.device.type == "cuda":
            torch.cuda.empty_cache()


def batch_of(policy: QwenVLPolicy, name: str, folder: Path) -> Batch:
    """The batch that all train on, played once."""
    from benchmarks.real_sizes import TINY, family, play

    played = folder / "batch.pickle"
    if not played.exists():
        size = Size(108, 240) if name in TINY else Size(1080, 2400)
        made = play(LocalSampler(policy), formats.get(family(name)), size, 32, attempts=8, turns=3, shown=2)
        played.write_bytes(pickle.dumps(made))
    batch: Batch = pickle.loads(played.read_bytes())
    return batch


def updated(name: str, kind: str, folder: Path, accelerator: Accelerator) -> dict[str, Any]:
    """Losses, seconds and memory of a few updates."""
    from benchmarks.real_sizes import random_policy

    cuda = accelerator.device.type == "cuda"
    policy = random_policy(name, accelerator.device, rank=16, dtype=torch.bfloat16)
    batch = batch_of(policy, name, folder)
    if cuda:
        # the process that plays needs more than training does
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    config = LearnerConfig(
        batch=BatchConfig(max_tokens=8192, baseline="critic" if kind == "ppo" else "group"),
        gradient_checkpointing=True,
        sharded=sharded(),
    )
    learner = Learner(policy, config, accelerator)
    history, seconds = [], []
    for step in range(1, UPDATES + 1):
        learner.begin_step(step)
        accelerator.wait_for_everyone()
        start = time.perf_counter()
        metrics = learner.update(batch, step)
        accelerator.wait_for_everyone()
        seconds.append(round(time.perf_counter() - start, 2))
        history.append({n: metrics[n] for n in TOLERANCE if n in metrics})
    peak = torch.tensor([torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0], device=accelerator.device)
    return {
        "model": name,
        "algorithm": kind,
        "processes": accelerator.num_processes,
        "sharded": config.sharded,
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "torch": torch.__version__,
        "rows": sum(len(t.turns) for g in batch.groups for t in g.trajectories),
        "update_s": seconds[-1],
        "seconds": seconds,
        "peak_gib": [round(p, 2) for p in accelerator.gather(peak).tolist()],
        "updates": history,
    }


def apart(alone: Mapping[str, Any], shared: Mapping[str, Any]) -> list[str]:
    """What differs by more than it may."""
    found = []
    for i, (one, two) in enumerate(zip(alone["updates"], shared["updates"], strict=True), 1):
        for name, allowed in TOLERANCE.items():
            if name in one:
                floor = one[name] if name == "optim/grad_norm" else max(1.0, abs(one[name]))
                if abs(one[name] - two[name]) > allowed * floor:
                    found.append(f"{name} of update {i}: {one[name]:.5g} alone, {two[name]:.5g} shared")
    return found


def launched(name: str, kinds: Sequence[str], preset: str | None, folder: Path) -> dict[str, dict[str, Any]]:
    """Lines by algorithm."""
    arguments = ["benchmarks.scaling", "--model", name, "--work", "--algorithms", *kinds, "--folder", str(folder)]
    launcher = launch_command([], processes=2, accelerate=preset)[:-1] if preset else [sys.executable, "-m"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([*launcher, *arguments], cwd=ROOT, env=environment, check=True)
    return {kind: {"setup": preset or "alone", **json.loads((folder / f"{kind}.json").read_text())} for kind in kinds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to append the JSON lines to, besides standard output")
    parser.add_argument("--model", default="Qwen3-VL-2B")
    parser.add_argument("--tiny", action="store_true", help="a small model on small screens")
    parser.add_argument("--algorithms", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.model, args.algorithms, args.folder)
        return
    name = "tiny-Qwen3-VL" if args.tiny or torch.cuda.device_count() < 2 else args.model
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        alone = launched(name, args.algorithms, None, Path(folder))
        shared = [launched(name, args.algorithms, preset, Path(folder)) for preset in PRESETS]
        for line in (setup[kind] for kind in args.algorithms for setup in (alone, *shared)):
            one = alone[line["algorithm"]]
            line |= {"speed_up": round(one["update_s"] / line["update_s"], 2), "apart": apart(one, line)}
            differing += len(line["apart"])
            print(json.dumps(line), flush=True)
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    raise SystemExit(1 if differing else 0)


if __name__ == "__main__":
    main()
