"""Memory of training a model of real size on a base in four bits: ``python -m benchmarks.four_bits --out four.jsonl``.

A checkpoint of random weights at the shape of Qwen3-VL-8B is written to ``--folder`` (17 GiB; a temporary one unless
named) and loaded as ``cuarl train --quantization nf4`` does. Four attempts of three turns see screenshots of 1080x1080,
two at a time, then come two updates with LoRA of rank 16 and gradient checkpointing. Nothing is downloaded. On a GPU
the process may take ``--card-gib`` at most, so that what fits here fits a card of that size.

Prints one JSON line: seconds and peak memory by phase, the difference of log-probabilities between sampling and
training, and on a GPU how far the kernel that unpacks is from plain PyTorch, and how fast it is. ``--quantization
none`` is the same without. Without a GPU, or with ``--tiny``, a miniature of the same family is rehearsed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer, Qwen2VLImageProcessorPil

from benchmarks.real_sizes import PROCESSORS, REAL, TINY, Clock, configuration, family, play
from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.policy import tiny
from cuarl.policy.load import load_policy
from cuarl.policy.nf4.codes import pack, unpack, unpack_plainly
from cuarl.policy.nf4.linear import Linear4
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.train.batch import BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner

ATTEMPTS, TURNS, PICTURES = 4, 3, 2
BAR_GIB = 22.0
"""What a card of 24 GB has for one process."""


def write_checkpoint(name: str, folder: Path, device: torch.device) -> None:
    """A model of that size with random weights, as ``save_pretrained`` writes it."""
    tokenizer = AutoTokenizer.from_pretrained(str(tiny.path()))
    torch.manual_seed(0)
    with device:
        model = AutoModelForImageTextToText.from_config(configuration(name, tokenizer), dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(**PROCESSORS[family(name)]).save_pretrained(folder)


def kernel(device: torch.device) -> dict[str, float]:
    """The kernel against plain PyTorch, and GiB of a bfloat16 weight of the 8B model that it writes in a second."""
    shape = (12_288, 4096)
    weight = torch.randn(shape, device=device, dtype=torch.bfloat16) * 0.02
    packed = pack(weight)
    apart = (unpack(packed, shape, torch.float32) - unpack_plainly(packed, shape, torch.float32)).abs().max()
    for _ in range(3):
        unpack(packed, shape, torch.bfloat16)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(50):
        unpack(packed, shape, torch.bfloat16)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / 50
    return {"kernel_diff": float(apart), "kernel_gib_per_s": round(weight.nbytes / 2**30 / seconds, 1)}


def measure(name: str, folder: Path, spec: ModelSpec, size: Size, answer_tokens: int) -> dict[str, Any]:
    """Load, sample and learn twice."""
    device = torch.device(spec.device)
    clock = Clock(device)
    with clock.phase("load"):
        policy = load_policy(spec)
    sampler, format = LocalSampler(policy), formats.get(family(name))
    episodes = {"attempts": ATTEMPTS, "turns": TURNS, "shown": PICTURES}
    # the first calls compile and choose kernels, once a process
    with clock.phase("first rollout"):
        play(sampler, format, size, answer_tokens, **episodes)
    with clock.phase("rollout"):
        batch = play(sampler, format, size, answer_tokens, **episodes, first=ATTEMPTS)
    learner = Learner(policy, LearnerConfig(batch=BatchConfig(max_tokens=8192), gradient_checkpointing=True))
    metrics: dict[str, float] = {}
    for number, phase in enumerate(("first update", "update"), start=1):
        with clock.phase(phase):
            learner.begin_step(number)
            found = learner.update(batch, number)
        metrics = metrics or found
    sampled = [t.sampled for g in batch.groups for e in g.trajectories for t in e.turns if t.sampled]
    return {
        "model": name,
        "quantization": spec.quantization,
        "layers_packed": sum(isinstance(m, Linear4) for m in policy.model.modules()),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "weights_gib": round(sum(p.nbytes for p in policy.model.parameters()) / 2**30, 3),
        "screen": list(size),
        "pictures_max": max(len(s.images) for s in sampled),
        "prompt_tokens_max": max(len(s.prompt_ids) for s in sampled),
        "answer_tokens": sum(len(s.token_ids) for s in sampled),
        "seconds": clock.seconds,
        "peak_gib": clock.peak_gib,
        "logprob_diff_mean": metrics["policy/logprob_diff_mean"],
        "grad_norm": metrics["optim/grad_norm"],
        **(kernel(device) if device.type == "cuda" else {}),
    }


def faults(found: dict[str, Any]) -> list[str]:
    """What of a measurement is not as it must be."""
    said = [] if found["pictures_max"] == PICTURES else ["no prompt had all the screenshots"]
    if (found["quantization"] == "nf4") != bool(found["layers_packed"]):
        said.append("the base is not as it was asked for")
    if not found["grad_norm"] > 0:
        said.append("the adapter got no gradient")
    if found.get("kernel_diff", 0) > 1e-6:
        said.append("the kernel does not unpack what plain PyTorch does")
    high = {phase: peak for phase, peak in found["peak_gib"].items() if peak > BAR_GIB}
    return [*said, *(f"{phase}: {peak} GiB, more than {BAR_GIB:g}" for phase, peak in high.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to append the JSON line to, besides standard output")
    parser.add_argument("--model", choices=[*REAL, *TINY])
    parser.add_argument("--quantization", choices=["nf4", "none"], default="nf4")
    parser.add_argument("--folder", type=Path, help="a checkpoint that is there already, or where to write it")
    parser.add_argument("--answer-tokens", type=int, default=128)
    parser.add_argument("--kv-cache-gib", type=float, default=4.0)
    parser.add_argument("--card-gib", type=float, default=23.0, help="what the process may take of a GPU; 0 is all")
    parser.add_argument("--dtype", default="auto", help="of what is not in four bits")
    parser.add_argument("--tiny", action="store_true", help="a miniature on small screens")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    device = torch.device(args.device)
    small = args.tiny or device.type == "cpu"
    name = args.model or (TINY[0] if small else "Qwen3-VL-8B")
    if device.type == "cuda" and args.card_gib:
        whole = torch.cuda.get_device_properties(device).total_memory / 2**30
        torch.cuda.set_per_process_memory_fraction(min(1.0, args.card_gib / whole))
    with ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not (folder / "config.json").is_file():
            write_checkpoint(name, folder, device)
            if device.type == "cuda":
                torch.cuda.empty_cache()
        spec = ModelSpec(
            model=str(folder),
            device=str(device),
            dtype=args.dtype,
            quantization=args.quantization,
            lora=LoraSpec(rank=16),
            train="adapter",
            kv_cache_gib=args.kv_cache_gib if device.type == "cuda" else None,
        )
        found = measure(name, folder, spec, Size(108, 108) if small else Size(1080, 1080), args.answer_tokens)
    line = json.dumps(found | {"faults": faults(found)})
    print(line, flush=True)
    if args.out:
        with args.out.open("a") as file:
            file.write(line + "\n")
    raise SystemExit(1 if faults(found) else 0)


if __name__ == "__main__":
    main()
