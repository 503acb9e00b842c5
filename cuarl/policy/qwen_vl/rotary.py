"""Rotary position embedding (RoFormer, arXiv:2104.09864)."""

from __future__ import annotations

import torch


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn halves (a, b) of the last axis of ``x`` to (a cos - b sin, b cos + a sin); ``cos``, ``sin`` broadcast.

    The same as concatenating (-b, a) and adding products, with half the memory traffic.
    """
    half = x.shape[-1] // 2
    out = x * cos
    out[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
    out[..., half:].addcmul_(x[..., :half], sin[..., half:])
    return out
