"""How likely sampled tokens are under other weights that Tinker has, and how far policies are apart there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from cuarl.policy.prompt import Renderer
from cuarl.policy.remote.tinker import model_input
from cuarl.train.loss import kl_k1, kl_k3
from cuarl.train.rows import TokenRow
from cuarl.types import Screenshot

LOG_RATIO_LIMIT = 20.0
"""Bound of log ratios, as in ``loss.LossConfig``."""


def logprobs_of(
    client: Any, rows: Sequence[TokenRow], pictures: Mapping[str, Screenshot], renderer: Renderer
) -> list[tuple[float, ...]]:
    """Log-probabilities of each row's ``token_ids`` under the weights of ``client``, a ``SamplingClient``.

    All are asked for before any is awaited. Raises what the SDK raises, and ValueError where one is missing.
    """
    asked = []
    for row in rows:
        screens = [pictures[digest] for digest in row.images]
        sent = model_input((*row.prompt_ids, *row.token_ids), screens, renderer)
        asked.append(client.compute_logprobs(sent, prompt_logprobs_last_n=len(row.token_ids)))
    return [_told(row, future.result()) for row, future in zip(rows, asked, strict=True)]


def _told(row: TokenRow, found: Sequence[float | None]) -> tuple[float, ...]:
    told = [p for p in found[-len(row.token_ids) :] if p is not None]
    if len(told) != len(row.token_ids):
        raise ValueError(f"{row.name}: {len(told)} log-probabilities for {len(row.token_ids)} tokens")
    return tuple(map(float, told))


def divergences(rows: Sequence[TokenRow], now: Sequence[Sequence[float]]) -> dict[str, float]:
    """The policy against the sampler, and against the reference where there is one; ``now`` are its log-probabilities.

    Of rows that were sampled; empty if there are none, and without what is not finite.
    """
    if not now:
        return {}
    policy = _flat(now)
    sampler = policy - _flat([row.logprobs or () for row in rows])
    found = {
        "policy/logprob_diff_mean": float(sampler.abs().mean()),
        "policy/kl_sampler": float(kl_k3(sampler, LOG_RATIO_LIMIT).mean()),
        "policy/kl_sampler_k1": float(kl_k1(sampler).mean()),
    }
    if all(row.reference for row in rows):
        found["policy/kl_ref"] = float(kl_k3(_flat([row.reference for row in rows]) - policy, LOG_RATIO_LIMIT).mean())
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _flat(rows: Sequence[Sequence[float]]) -> torch.Tensor:
    return torch.tensor([p for row in rows for p in row], dtype=torch.float64)
