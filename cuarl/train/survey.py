"""Passes over a batch without gradient: what the first update needs to know, and how far the last one got."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from cuarl.train.batch import BatchConfig, micro_batches, share_of_rank
from cuarl.train.loss import kl_k1, kl_k3
from cuarl.train.rows import Place, TokenRow

T = TypeVar("T")


def gather_rows(
    accelerator: Accelerator, rows: Sequence[TokenRow], config: BatchConfig, see: Callable[[Sequence[TokenRow]], list[T]]
) -> list[T]:  # fmt: skip
    """What ``see`` says of each row, in the order of ``rows`` and the same on every process, which share the work.

    ``see`` gets the rows of one forward pass; it runs without gradient. Every process must call this, whatever its share.
    """
    share = share_of_rank(rows, accelerator.process_index, accelerator.num_processes, pack=config.pack)
    found: list[tuple[Place, T]] = []
    with torch.no_grad():
        for part in micro_batches(share, config.max_tokens, pack=config.pack):
            found += zip((r.place for r in part), see(part), strict=True)
    known = dict(gather_object(found))
    return [known[r.place] for r in rows]


def post_kl(rows: Sequence[TokenRow], logprobs: Sequence[Sequence[float]], limit: float) -> dict[str, float]:
    """Estimates of KL(sampler ‖ policy) at the trained tokens, from the policy's ``logprobs`` after the step."""
    now = torch.tensor([p for row in logprobs for p in row], dtype=torch.float64)
    then = torch.tensor([p for row in rows for p in row.logprobs or ()], dtype=torch.float64)
    found = {
        "policy/kl_post_k1": float(kl_k1(now - then).mean()),
        "policy/kl_post": float(kl_k3(now - then, limit).mean()),
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}
