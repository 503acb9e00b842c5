"""Attention of rounds that share their screen's prompt: each sees the whole prompt and its own past.

On a GPU in half precision neither masks nor copies of the prompt: flash attention runs over all sequences by
themselves, once more from the rounds to their prompts, and the two softmaxes are joined by their normalisers, forwards
as backwards. Elsewhere plain PyTorch under a mask, which is the reference in tests.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention

_HALF = (torch.bfloat16, torch.float16)


class Bounds(NamedTuple):
    """Where sequences begin and end among N tokens: first the prompts, then the rounds about each, then any others.

    ``own`` (S + 1,) bounds all of them, ``prompts`` (P + 1,) the prompts, equally long, and ``asked`` (P + 1,) each
    prompt's rounds together, counted from the first round: int32, with the longest of each.
    """

    own: Any
    own_longest: int
    prompts: Any
    prompt_length: int
    asked: Any
    asked_longest: int
    first: int
    """Of the rounds' tokens."""
    end: int
    """Behind the rounds' tokens."""


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bounds: Bounds) -> torch.Tensor:
    """Causal attention of queries (N, heads, size) to keys and values (N, KV heads, size); differentiable."""
    if q.is_cuda and q.dtype in _HALF:
        joined: torch.Tensor = _Joined.apply(q.contiguous(), k.contiguous(), v.contiguous(), bounds)
        return joined
    return _plain(q, k, v, bounds)


class _Joined(torch.autograd.Function):
    """Two flash attentions with one softmax.

    Flash attention's backward pass needs only the output and the logarithm of the normaliser: given those of the joint
    softmax, each part yields its share of the gradients (as in ring attention, arXiv:2310.01889).
    """

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, b: Bounds) -> torch.Tensor:
        """See ``attend``."""
        asked, prompts = slice(b.first, b.end), slice(0, b.first)
        out, total = _flash(q, k, v, b.own, b.own, b.own_longest, b.own_longest, True)
        shared, more = _flash(
            q[asked], k[prompts], v[prompts], b.asked, b.prompts, b.asked_longest, b.prompt_length, False
        )
        joint = torch.logaddexp(total[:, asked], more)
        own_share = (total[:, asked] - joint).exp().t()[..., None]
        shared_share = (more - joint).exp().t()[..., None]
        out[asked] = (out[asked] * own_share + shared * shared_share).to(out.dtype)
        total[:, asked] = joint
        ctx.save_for_backward(q, k, v, out, total)
        ctx.bounds = b
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        """Gradients of queries, keys and values."""
        q, k, v, out, total = ctx.saved_tensors
        b: Bounds = ctx.bounds
        grad, asked, prompts = grad.contiguous(), slice(b.first, b.end), slice(0, b.first)
        dq, dk, dv = _flash_backward(grad, q, k, v, out, total, b.own, b.own, b.own_longest, b.own_longest, True)
        more = _flash_backward(
            grad[asked],
            q[asked],
            k[prompts],
            v[prompts],
            out[asked],
            total[:, asked].contiguous(),
            b.asked,
            b.prompts,
            b.asked_longest,
            b.prompt_length,
            False,
        )
        dq[asked] += more[0]
        dk[prompts] += more[1]
        dv[prompts] += more[2]
        return dq, dk, dv, None


def _flash(q: Any, k: Any, v: Any, *bounds: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Output (N, heads, size) and logarithms of the normalisers (heads, N)."""
    queries, keys, longest, longest_keys, causal = bounds
    out, total, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, queries, keys, longest, longest_keys, 0.0, causal, False, scale=q.shape[-1] ** -0.5
    )
    return out, total


def _flash_backward(grad: Any, q: Any, k: Any, v: Any, out: Any, total: Any, *bounds: Any) -> Any:
    queries, keys, longest, longest_keys, causal = bounds
    # seed and offset of dropout, of which there is none
    unused = torch.zeros(2, dtype=torch.uint64, device=q.device)
    return torch.ops.aten._flash_attention_backward(
        grad,
        q,
        k,
        v,
        out,
        total,
        queries,
        keys,
        longest,
        longest_keys,
        0.0,
        causal,
        unused,
        unused[:0],
        scale=q.shape[-1] ** -0.5,
    )


def _plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, b: Bounds) -> torch.Tensor:
    """Sequence by sequence; a prompt's rounds at once."""
    own, asked = b.own.tolist(), b.asked.tolist()
    prompts = len(asked) - 1
    alone = [(x, y) for x, y in pairwise(own) if not b.first <= x < b.end]
    out = torch.empty_like(q)
    for x, y in alone:
        out[x:y] = _masked(q[x:y], k[x:y], v[x:y], None)
    number = torch.bucketize(torch.arange(b.first, b.end, device=q.device), b.own, right=True)
    for p in range(prompts):
        x, y = b.first + asked[p], b.first + asked[p + 1]
        if x == y:
            continue
        round_of = number[asked[p] : asked[p + 1]]
        same = (round_of[:, None] == round_of[None]).tril()
        mask = torch.cat([same.new_ones(y - x, b.prompt_length), same], 1)
        prompt = slice(p * b.prompt_length, (p + 1) * b.prompt_length)
        keys, values = (torch.cat([t[prompt], t[x:y]]) for t in (k, v))
        out[x:y] = _masked(q[x:y], keys, values, mask)
    return out


def _masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Of one sequence, (tokens, heads, size); without a mask causal."""
    q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
    grouped = q.shape[1] != k.shape[1]
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=grouped)
    return out[0].transpose(0, 1)
