"""What a token costs in sampling: ``python -m benchmarks.decode --models Qwen3-VL-2B`` on a GPU.

Prompts of random ids without pictures, weights of real size and random values (``real_sizes``), an adapter that is not
zero. For each model, rows and prompt length: seconds of the first call, of the passes over the prompts, and
milliseconds a token of a second call whose lengths were never met; beside it the time in which the weights and all keys
and values could be read once (``--bandwidth`` TB/s), and the largest difference between recorded log-probabilities and
those of scoring. One JSON line each. Without a GPU a tiny model is measured, which says nothing but that it runs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

import torch

from benchmarks.real_sizes import QWEN3, random_policy
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.engine.engine import Engine
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer

TOKENS = 48


def _jobs(policy: QwenVLPolicy, rows: int, length: int, tokens: int, seed: int) -> list[Job]:
    """Rows of ``length`` tokens, give or take a few."""
    chance = random.Random(seed)
    known = [i for i in range(300, 2000) if i not in policy.special.eos]
    prompts = [
        Prompt(tuple(chance.choices(known, k=length - chance.randrange(min(40, length // 4)))), ()) for _ in range(rows)
    ]
    # greedy answers of random models repeat an end token less often than drawn ones
    return [Job(p, SamplingParams(max_tokens=tokens), seed=seed * 1000 + i) for i, p in enumerate(prompts)]


def _timed(engine: Engine, jobs: list[Job]) -> float:
    # as after an update: nothing is known, and adapters are merged anew
    engine.policy.updated()
    _synchronize()
    start = time.perf_counter()
    engine.generate(jobs)
    _synchronize()
    return time.perf_counter() - start


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(policy: QwenVLPolicy, name: str, rows: int, length: int, bandwidth: float) -> dict[str, Any]:
    """One size. An end token is made impossible, so that every row has all its tokens."""
    engine = Engine(policy)
    first = _timed(engine, _jobs(policy, rows, length, TOKENS, 1))
    prefill = _timed(engine, _jobs(policy, rows, length + 7, 1, 2))
    jobs = _jobs(policy, rows, length + 3, TOKENS, 3)
    whole = _timed(engine, jobs)
    weights = engine._weights
    assert weights is not None
    cached = rows * length * len(weights.layers) * 2 * weights.kv_heads * weights.head_size * policy.dtype.itemsize
    read = weights.nbytes + policy.base.lm_head.weight.nbytes + cached
    job = jobs[0]
    with torch.no_grad():
        row = Row(job.prompt.ids, (), tuple(job.tokens))
        scores = Scorer(policy).eval()(policy.collate([row])).logprobs[0].tolist()
    engine.release()
    found = {
        "model": name,
        "rows": rows,
        "keys": length,
        "first_s": round(first, 2),
        "prefill_s": round(prefill, 3),
        "ms_per_token": round((whole - prefill) / (TOKENS - 1) * 1e3, 2),
        "floor_ms": round(read / bandwidth / 1e9, 2),
        "logprob_diff": round(max(abs(a - b) for a, b in zip(job.logprobs, scores, strict=True)), 4),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
    }
    return found | {"of_floor": round(found["floor_ms"] / found["ms_per_token"], 2)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cuda = torch.cuda.is_available()
    parser.add_argument(
        "--models", nargs="+", choices=list(QWEN3), default=["Qwen3-VL-2B" if cuda else "tiny-Qwen3-VL"]
    )
    parser.add_argument("--sizes", nargs="+", default=["16x2616", "64x2616", "16x10400"] if cuda else ["4x64"])
    parser.add_argument("--bandwidth", type=float, default=4.3, help="TB/s that a copy within the device reaches")
    args = parser.parse_args()
    for name in args.models:
        policy = random_policy(name, torch.device("cuda" if cuda else "cpu"), 16)
        for n, p in policy.model.named_parameters():
            if "lora_B" in n:
                torch.nn.init.normal_(p, std=0.01)
        object.__setattr__(policy.special, "eos", frozenset())
        for size in args.sizes:
            rows, length = map(int, size.split("x"))
            print(json.dumps(measure(policy, name, rows, length, args.bandwidth)), flush=True)


if __name__ == "__main__":
    main()
