"""The distribution that tokens are drawn from, defined once for sampling and scoring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

NEVER = -1e30
"""Logit of a token that can't be drawn: its probability is exactly 0, and products with it stay finite."""


def log_softmax(
    logits: torch.Tensor, temperature: torch.Tensor | float, suppressed: torch.Tensor | None = None
) -> torch.Tensor:
    """Log-probabilities (…, V) of ``logits`` (…, V) float32 at ``temperature``, without the ``suppressed`` ids (int64).

    The temperature divides the logits before the softmax, so that these are the log-probabilities of what is drawn.
    """
    scaled = logits / temperature
    if suppressed is not None:
        scaled = scaled.index_fill(-1, suppressed, NEVER)
    return torch.log_softmax(scaled, dim=-1)


def truncate(logprobs: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Log-probabilities (B, V) of the ``top_k`` (B,) likeliest tokens, then of the fewest that reach ``top_p`` (B,).

    0 and 1 leave everything. The rest is renormalised, so that these are again those of what is drawn (nucleus
    sampling, arXiv:1904.09751). Ties fall to the lower id.
    """
    ordered, index = logprobs.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(logprobs.shape[-1], device=logprobs.device)
    limit = torch.where(top_k > 0, top_k, logprobs.shape[-1])[:, None]
    kept = ordered.masked_fill(rank >= limit, NEVER)
    kept = torch.log_softmax(kept, dim=-1)
    before = kept.exp().cumsum(-1) - kept.exp()
    kept = kept.masked_fill((before >= top_p[:, None]) & (rank > 0), NEVER)
    return torch.log_softmax(torch.empty_like(kept).scatter_(-1, index, kept), dim=-1)


class Drawn(NamedTuple):
    """Tokens (B,) int64 and their log-probabilities (B,) float32."""

    tokens: torch.Tensor
    logprobs: torch.Tensor


def draw(logprobs: torch.Tensor, chance: torch.Tensor) -> Drawn:
    """One token a row by inverting the distribution function at ``chance`` (B,) in [0, 1); greedy where it is negative.

    A row's token depends on its own log-probabilities and its own number alone.
    """
    cumulative = logprobs.to(widest(logprobs.device)).exp().cumsum(-1)
    total = cumulative[:, -1:]
    # the largest number below the total: rounding must not step past the last token
    aim = torch.minimum(chance.to(total.dtype)[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(cumulative, aim, right=True)[:, 0]
    tokens = torch.where(chance < 0, logprobs.argmax(-1), tokens)
    return Drawn(tokens, logprobs.gather(1, tokens[:, None])[:, 0])


def widest(device: torch.device) -> torch.dtype:
    """The widest floating-point type of a device; Apple's has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


class Chance:
    """Uniform numbers in [0, 1) of one seed, one a token; alike on every machine (Philox, counter-based)."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(key=seed & (1 << 128) - 1))
        self._block: list[float] = []

    def at(self, position: int) -> float:
        """The number for the token at ``position``."""
        while position >= len(self._block):
            self._block += self._generator.random(64).tolist()
        return self._block[position]

    def block(self, first: int, count: int) -> list[float]:
        """The numbers for ``count`` tokens from ``first`` on."""
        self.at(first + count - 1)
        return self._block[first : first + count]
