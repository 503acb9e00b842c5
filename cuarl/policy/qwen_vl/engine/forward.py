"""The decoder layers over tokens behind each other, with keys and values written to pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from cuarl.policy.qwen_vl.engine.weights import Weights
from cuarl.policy.qwen_vl.fused.ops import place, rms_norm, swiglu

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""From queries (N, heads, size) and a layer's keys and values (slots, KV heads, size) to what was attended to."""


class Deep(NamedTuple):
    """Picture features (levels, M, D) that are added at the tokens ``index`` (M,) behind the first layers."""

    index: torch.Tensor
    features: torch.Tensor


class Narrow(NamedTuple):
    """The only tokens ``index`` (M,) that are wanted of the last layer, and how their queries attend there."""

    index: torch.Tensor
    attend: Attend


def run_layers(
    weights: Weights,
    hidden: torch.Tensor,
    rotary: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    buffer: Sequence[torch.Tensor],
    attend: Attend,
    deep: Deep | None = None,
    narrow: Narrow | None = None,
) -> torch.Tensor:
    """Hidden states (N, D) behind all layers, or (M, D) of those that ``narrow`` names, before the final norm.

    ``rotary`` are cosine and sine (N, size); token n's keys and values go to ``slots[n]`` (int64) of ``buffer``, which
    has (2, slots, KV heads, size) for each layer.
    """
    tokens, eps = len(hidden), weights.eps
    heads = weights.heads + 2 * weights.kv_heads
    for i, layer in enumerate(weights.layers):
        keys, values = buffer[i].unbind(0)
        qkv = layer.qkv(rms_norm(hidden, layer.before, eps)).view(tokens, heads, weights.head_size)
        q = place(qkv, layer.query_norm, layer.key_norm, rotary, eps, slots, keys, values)
        if narrow is not None and i + 1 == len(weights.layers):
            # of the others only keys and values matter
            hidden, q, attend = hidden[narrow.index], q[narrow.index], narrow.attend
        hidden = layer.out(attend(q, keys, values).flatten(1), hidden)
        gate_up = layer.gate_up(rms_norm(hidden, layer.after, eps))
        hidden = layer.down(swiglu(*gate_up.chunk(2, dim=1)), hidden)
        if deep is not None and i < len(deep.features):
            hidden = hidden.index_add(0, deep.index, deep.features[i].to(hidden.dtype))
    return hidden
