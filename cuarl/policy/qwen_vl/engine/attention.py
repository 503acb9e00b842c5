"""Attention without padding or masks: over rows of unequal length behind each other, and over pages.

One seam: flash attention for variable lengths (``torch.nn.attention.varlen``) and a Triton kernel on a GPU in half
precision; plain PyTorch elsewhere, which is the reference in tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch

from cuarl.policy.qwen_vl.engine.pages import PAGE

try:
    from cuarl.policy.qwen_vl.engine.kernel import PagedAttention
except ImportError:  # Triton comes with torch's CUDA builds only
    PagedAttention = None  # type: ignore[assignment,misc]

_HALF = (torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class Segments:
    """Segment i has the queries ``queries[i]:queries[i + 1]`` and the keys ``keys[i]:keys[i + 1]``, its last ones last.

    The bounds are int32 tensors (segments + 1,), ``*_list`` the same as numbers.
    """

    queries: torch.Tensor
    keys: torch.Tensor
    queries_list: tuple[int, ...]
    keys_list: tuple[int, ...]

    @property
    def longest(self) -> tuple[int, int]:
        """The most queries, and the most keys, of a segment."""
        q, k = self.queries_list, self.keys_list
        return max(b - a for a, b in pairwise(q)), max(b - a for a, b in pairwise(k))


def segments(queries: Sequence[int], keys: Sequence[int], device: torch.device) -> Segments:
    """Segments of so many queries and keys each."""
    bounds = [_bounds(queries), _bounds(keys)]
    tensors = [torch.tensor(b, dtype=torch.int32, device=device) for b in bounds]
    return Segments(tensors[0], tensors[1], bounds[0], bounds[1])


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, parts: Segments, scale: float) -> torch.Tensor:
    """Each query (N, heads, size) over its segment's keys and values (M, KV heads, size) up to its own; differentiable.

    A segment's last query sees all of its keys.
    """
    if flash(q):
        longest = parts.longest
        arguments = _arguments(q.shape[1] != k.shape[1])
        return _varlen()(q, k, v, parts.queries, parts.keys, *longest, scale=scale, **arguments)
    bounds = zip(pairwise(parts.queries_list), pairwise(parts.keys_list), strict=True)
    return torch.cat([_one(q[a:b], k[c:d], v[c:d], scale) for (a, b), (c, d) in bounds])


def flash(q: torch.Tensor) -> bool:
    """Whether flash attention for variable lengths runs for ``q``."""
    return q.is_cuda and q.dtype in _HALF and q.shape[-1] <= 256 and _varlen() is not None


def paged_attention(rows: int, heads: int, kv_heads: int, size: int, device: torch.device) -> Any:
    """What ``decode`` is done with for ``rows`` rows: a callable of its arguments."""
    fits = heads // kv_heads <= 16 and size & (size - 1) == 0 and size >= 16
    if device.type == "cuda" and PagedAttention is not None and fits:
        return PagedAttention(rows, heads, kv_heads, size, device)
    return decode


def decode(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor, scale: float
) -> torch.Tensor:
    """One query a row, (rows, heads, size), over its first ``lengths`` (rows,) tokens; the plain form.

    ``keys`` and ``values`` (slots, KV heads, size) hold pages of ``PAGE`` slots each, and ``table`` (rows, pages) int32
    says which a row has.
    """
    longest = int(lengths.max())
    at = torch.arange(longest, device=q.device)
    slots = table[:, at // PAGE].long() * PAGE + at % PAGE
    group = q.shape[1] // keys.shape[1]
    k, v = (t[slots].float().repeat_interleave(group, dim=2) for t in (keys, values))
    weights = torch.einsum("rhd,rnhd->rhn", q.float(), k) * scale
    beyond = at >= lengths[:, None, None]
    weights = weights.masked_fill(beyond, -torch.inf).softmax(-1)
    # memory that nothing was written to yet may hold what times nought is not nought
    v = v.masked_fill(beyond[:, 0, :, None, None], 0.0)
    return torch.einsum("rhn,rnhd->rhd", weights, v).to(q.dtype)


@lru_cache(1)
def _varlen() -> Any:
    """Imported where it runs only: it brings torch's compiler along, which takes longer than torch itself."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:  # before torch 2.10
        return None
    return varlen_attn


def _one(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    whole = len(q) == len(k)
    mask = None if whole else _last_ones(len(q), len(k), q.device)
    q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=whole, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return out[0].transpose(0, 1)


@lru_cache(64)
def _last_ones(queries: int, keys: int, device: torch.device) -> torch.Tensor:
    """What each of the last ``queries`` of ``keys`` tokens sees; the same for all layers."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def _arguments(grouped: bool) -> dict[str, Any]:
    """How this torch is told of causality and of groups."""
    known = inspect.signature(_varlen()).parameters
    found: dict[str, Any] = {"window_size": (-1, 0)} if "window_size" in known else {"is_causal": True}
    if grouped and "enable_gqa" in known:
        found["enable_gqa"] = True
    return found


def _bounds(lengths: Sequence[int]) -> tuple[int, ...]:
    found = [0]
    for length in lengths:
        found.append(found[-1] + length)
    return tuple(found)
