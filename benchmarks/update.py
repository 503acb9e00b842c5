"""How much of a GPU's arithmetic a LoRA update uses: ``python -m benchmarks.update`` on a GPU.

Forward and backward pass of sequences like those of real screens (``real_sizes``: 1080x2400 is 2,550 tokens of
Qwen3-VL) at the shape of Qwen3-VL-2B with random weights, pictures encoded beforehand. Needed are 4 operations a
parameter and token (forward, and backward through frozen weights), causal attention times 3 and the head; the share of
``--peak`` TFLOP/s that these are is the MFU. ``--keep GIB`` of activations are kept with gradient checkpointing;
without it, all. One JSON line for each case: the median of five passes after two.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.real_sizes import QWEN3, random_policy
from cuarl.policy.inputs import Row
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.score import Scorer
from cuarl.train.learner import _checkpoint_activations
from cuarl.types import Screenshot

ANSWER = 29
CASES = {"4 pictures": (4,), "1 picture": (1,), "3 rows of 1 picture": (1, 1, 1), "unequal": (1, 2, 1)}


def _rows(policy: QwenVLPolicy, pictures: tuple[int, ...], width: int, height: int) -> list[Row]:
    rows = []
    tokens = policy.images.grid(width, height).tokens
    for i, count in enumerate(pictures):
        noise = [
            np.random.default_rng((i, j)).integers(0, 256, (height, width, 3), dtype=np.uint8) for j in range(count)
        ]
        ids = [*range(400, 440)]
        for _ in range(count):
            ids += [policy.special.vision_start, *[policy.special.image] * tokens, policy.special.vision_end]
        rows.append(
            Row(tuple(ids), tuple(Screenshot(Image.fromarray(n)) for n in noise), tuple(range(500, 500 + ANSWER)))
        )
    return rows


def _needed(policy: QwenVLPolicy, rows: list[Row]) -> float:
    """Floating-point operations of one forward and backward pass, recomputation left out."""
    config = policy.base.config.get_text_config()
    layers = policy.base.model.language_model.layers
    weights = sum(p.numel() for n, p in layers.named_parameters() if "lora_" not in n)
    head = policy.base.lm_head.weight.numel()
    total = 0.0
    for row in rows:
        n, answers = len(row.prompt_ids) + len(row.answer_ids), len(row.answer_ids)
        attention = 2 * config.num_hidden_layers * config.num_attention_heads * config.head_dim * n * n
        total += 4 * weights * n + 3 * attention + 4 * head * answers
    return total


def measure(policy: QwenVLPolicy, scorer: Scorer, rows: list[Row]) -> dict[str, Any]:
    """Seconds and peak memory of a pass."""
    cuda = policy.device.type == "cuda"
    policy.collate(rows)
    seconds = []
    for i in range(7):
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats() if i == 2 else None
        start = time.perf_counter()
        scorer(policy.collate(rows)).logprobs.sum().backward()
        if cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        policy.model.zero_grad()
    tokens = sum(len(r.prompt_ids) + len(r.answer_ids) for r in rows)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0.0
    return {"tokens": tokens, "seconds": round(statistics.median(seconds[2:]), 4), "peak_gib": round(peak, 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cuda = torch.cuda.is_available()
    parser.add_argument("--model", choices=list(QWEN3), default="Qwen3-VL-2B" if cuda else "tiny-Qwen3-VL")
    parser.add_argument(
        "--keep", type=float, nargs="*", default=[], help="GiB kept with checkpointing; 0 keeps nothing"
    )
    parser.add_argument("--peak", type=float, default=790.0, help="TFLOP/s of a large matrix product")
    args = parser.parse_args()
    width, height = (1080, 2400) if cuda else (108, 240)
    policy = random_policy(args.model, torch.device("cuda" if cuda else "cpu"), 16)
    for keep in [None, *args.keep]:
        if keep is not None:
            _checkpoint_activations(policy.base)
        scorer = Scorer(policy, keep_bytes=int((keep or 0) * 2**30)).train()
        for name, pictures in CASES.items():
            rows = _rows(policy, pictures, width, height)
            found = measure(policy, scorer, rows)
            mfu = _needed(policy, rows) / found["seconds"] / args.peak / 1e12
            print(
                json.dumps(
                    {
                        "model": args.model,
                        "case": name,
                        "kept_gib": "all" if keep is None else keep,
                        **found,
                        "mfu": round(mfu, 3),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
