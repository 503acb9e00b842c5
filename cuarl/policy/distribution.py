"""The distribution that tokens are drawn from, defined once for sampling and scoring."""

from __future__ import annotations

from collections.abc import Sequence

import torch

NEVER = -1e30
"""Logit of a suppressed token: its probability is exactly 0, and products with it stay finite."""


def log_softmax(
    logits: torch.Tensor, temperature: torch.Tensor | float, suppressed: Sequence[int] = ()
) -> torch.Tensor:
    """Log-probabilities (…, V) of ``logits`` (…, V) float32 at ``temperature``, without the suppressed tokens.

    The temperature divides the logits before the softmax, so that these are the log-probabilities of what is drawn.
    """
    scaled = logits / temperature
    if suppressed:
        index = torch.tensor(suppressed, device=logits.device)
        scaled = scaled.index_fill(-1, index, NEVER)
    return torch.log_softmax(scaled, dim=-1)
