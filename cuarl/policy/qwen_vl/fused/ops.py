"""RMS norm, rotary positions and SwiGLU: plain PyTorch everywhere, single Triton kernels on a CUDA device.

The plain forms are the reference in tests, and what runs where a weight is trained along.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from cuarl.policy.qwen_vl.rotary import rotate

try:
    from cuarl.policy.qwen_vl.fused import kernels
except ImportError:  # Triton comes with torch's CUDA builds only
    kernels = None  # type: ignore[assignment]

_LARGEST_ROW = 16_384
"""Values of a row that one program of a kernel can hold."""


def fast(x: torch.Tensor) -> bool:
    """Whether the kernels run where ``x`` is."""
    return bool(x.is_cuda and kernels is not None)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """(…, D) divided by its root mean square, times ``weight`` (D,) (arXiv:1910.07467)."""
    if fast(x) and not weight.requires_grad and x.shape[-1] <= _LARGEST_ROW:
        return cast(torch.Tensor, kernels.RmsNorm.apply(x, weight, eps))
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


def norm_rotate(
    x: torch.Tensor, weight: torch.Tensor | None, cos: torch.Tensor, sin: torch.Tensor, eps: float
) -> torch.Tensor:
    """Heads (N, heads, size), normalised singly if there is a ``weight`` (size,), then turned by (N, size) angles."""
    if fast(x) and _halves(x) and not (weight is not None and weight.requires_grad):
        return cast(torch.Tensor, kernels.NormRotate.apply(x, weight, cos, sin, eps))
    if weight is not None:
        x = rms_norm(x.contiguous(), weight, eps)
    return rotate(x, cos[:, None], sin[:, None])


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up of (N, M) tensors with equal strides (arXiv:2002.05202)."""
    if fast(gate) and gate.stride() == up.stride() and gate.stride(1) == 1:
        return cast(torch.Tensor, kernels.SwiGlu.apply(gate, up))
    return nn.functional.silu(gate) * up


def place(
    qkv: torch.Tensor,
    query_norm: torch.Tensor | None,
    key_norm: torch.Tensor | None,
    rotary: tuple[Any, Any],
    eps: float,
    slots: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """Queries (N, H, size) of fused projections ``qkv`` (N, H + 2 KV, size); keys and values go into their buffers.

    Token n's are written at ``slots[n]`` of ``keys`` and ``values`` (all slots, KV, size). Without gradients.
    """
    cos, sin = rotary
    if fast(qkv) and _halves(qkv):
        return kernels.place(qkv, query_norm, key_norm, cos, sin, eps, slots, keys, values)
    kv = keys.shape[1]
    q, k, v = qkv.split([qkv.shape[1] - 2 * kv, kv, kv], dim=1)
    keys.index_copy_(0, slots, norm_rotate(k, key_norm, cos, sin, eps))
    values.index_copy_(0, slots, v)
    return norm_rotate(q, query_norm, cos, sin, eps)


def _halves(x: torch.Tensor) -> bool:
    half = int(x.shape[-1]) // 2
    whole: bool = x.stride(-1) == 1 and x.stride(-2) == x.shape[-1]
    return whole and half & (half - 1) == 0 and half >= 8
