"""Triton kernels behind ``ops``. One program a row (or a row's heads); float32, rounded as transformers does.

Importing this module raises ImportError where Triton is not installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _rms_forward(X, W, Y, D, eps, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    ok = i < D
    x = tl.load(X + row * D + i, mask=ok, other=0.0).to(tl.float32)
    r = 1.0 / tl.sqrt(tl.sum(x * x, 0) / D + eps)
    w = tl.load(W + i, mask=ok, other=0.0).to(tl.float32)
    y = (x * r).to(Y.dtype.element_ty).to(tl.float32) * w
    tl.store(Y + row * D + i, y.to(Y.dtype.element_ty), mask=ok)


@triton.jit
def _rms_backward(X, W, DY, DX, D, eps, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    ok = i < D
    x = tl.load(X + row * D + i, mask=ok, other=0.0).to(tl.float32)
    w = tl.load(W + i, mask=ok, other=0.0).to(tl.float32)
    g = tl.load(DY + row * D + i, mask=ok, other=0.0).to(tl.float32) * w
    r = 1.0 / tl.sqrt(tl.sum(x * x, 0) / D + eps)
    dx = r * g - x * (r * r * r * tl.sum(g * x, 0) / D)
    tl.store(DX + row * D + i, dx.to(DX.dtype.element_ty), mask=ok)


@triton.jit
def _unit(a, b, W, j, eps, HALF: tl.constexpr, T: tl.constexpr):  # type: ignore[no-untyped-def]
    """RMS norm of heads given as halves (heads, HALF), rounded to ``T`` where transformers rounds."""
    r = 1.0 / tl.sqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / (2 * HALF) + eps)
    wa = tl.load(W + j).to(tl.float32)
    wb = tl.load(W + HALF + j).to(tl.float32)
    a = ((a * r[:, None]).to(T).to(tl.float32) * wa[None, :]).to(T).to(tl.float32)
    b = ((b * r[:, None]).to(T).to(tl.float32) * wb[None, :]).to(T).to(tl.float32)
    return a, b


@triton.jit
def _rotate_forward(  # type: ignore[no-untyped-def]
    X, W, C, S, Y, stride, H, eps, NORM: tl.constexpr, HALF: tl.constexpr, HEADS: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    j = tl.arange(0, HALF)
    ok = (h < H)[:, None]
    at = h[:, None] * (2 * HALF) + j[None, :]
    a = tl.load(X + n * stride + at, mask=ok, other=0.0).to(tl.float32)
    b = tl.load(X + n * stride + at + HALF, mask=ok, other=0.0).to(tl.float32)
    if NORM:
        a, b = _unit(a, b, W, j, eps, HALF, Y.dtype.element_ty)
    c = tl.load(C + n * (2 * HALF) + j).to(tl.float32)[None, :]
    s = tl.load(S + n * (2 * HALF) + j).to(tl.float32)[None, :]
    out = Y + n * H * (2 * HALF) + at
    tl.store(out, (a * c - b * s).to(Y.dtype.element_ty), mask=ok)
    tl.store(out + HALF, (b * c + a * s).to(Y.dtype.element_ty), mask=ok)


@triton.jit
def _rotate_backward(  # type: ignore[no-untyped-def]
    X, W, C, S, DY, DX, stride, H, eps, NORM: tl.constexpr, HALF: tl.constexpr, HEADS: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    j = tl.arange(0, HALF)
    ok = (h < H)[:, None]
    at = h[:, None] * (2 * HALF) + j[None, :]
    dense = n * H * (2 * HALF) + at
    ga = tl.load(DY + dense, mask=ok, other=0.0).to(tl.float32)
    gb = tl.load(DY + dense + HALF, mask=ok, other=0.0).to(tl.float32)
    c = tl.load(C + n * (2 * HALF) + j).to(tl.float32)[None, :]
    s = tl.load(S + n * (2 * HALF) + j).to(tl.float32)[None, :]
    da = ga * c + gb * s
    db = gb * c - ga * s
    if NORM:
        a = tl.load(X + n * stride + at, mask=ok, other=0.0).to(tl.float32)
        b = tl.load(X + n * stride + at + HALF, mask=ok, other=0.0).to(tl.float32)
        da *= tl.load(W + j).to(tl.float32)[None, :]
        db *= tl.load(W + HALF + j).to(tl.float32)[None, :]
        r = 1.0 / tl.sqrt((tl.sum(a * a, 1) + tl.sum(b * b, 1)) / (2 * HALF) + eps)
        pull = (r * r * r * (tl.sum(da * a, 1) + tl.sum(db * b, 1)) / (2 * HALF))[:, None]
        da = da * r[:, None] - a * pull
        db = db * r[:, None] - b * pull
    tl.store(DX + dense, da.to(DX.dtype.element_ty), mask=ok)
    tl.store(DX + dense + HALF, db.to(DX.dtype.element_ty), mask=ok)


@triton.jit
def _swiglu_forward(G, U, Y, stride, M, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = i < M
    g = tl.load(G + row * stride + i, mask=ok, other=0.0).to(tl.float32)
    u = tl.load(U + row * stride + i, mask=ok, other=0.0).to(tl.float32)
    silu = (g * tl.sigmoid(g)).to(Y.dtype.element_ty).to(tl.float32)
    tl.store(Y + row * M + i, (silu * u).to(Y.dtype.element_ty), mask=ok)


@triton.jit
def _swiglu_backward(G, U, DY, DG, DU, stride, M, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = i < M
    g = tl.load(G + row * stride + i, mask=ok, other=0.0).to(tl.float32)
    u = tl.load(U + row * stride + i, mask=ok, other=0.0).to(tl.float32)
    dy = tl.load(DY + row * M + i, mask=ok, other=0.0).to(tl.float32)
    p = tl.sigmoid(g)
    dg = dy * u * p * (1.0 + g * (1.0 - p))
    tl.store(DG + row * M + i, dg.to(DG.dtype.element_ty), mask=ok)
    tl.store(DU + row * M + i, (dy * g * p).to(DU.dtype.element_ty), mask=ok)


@triton.jit
def _place(  # type: ignore[no-untyped-def]
    X, QW, KW, C, S, SLOTS, Q, K, V, eps, H, KV, NORM: tl.constexpr, HALF: tl.constexpr, HEADS: tl.constexpr
):
    n = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * HEADS
    h = first + tl.arange(0, HEADS)
    j = tl.arange(0, HALF)
    D = 2 * HALF
    at = X + n * (H + 2 * KV) * D + h[:, None] * D + j[None, :]
    slot = tl.load(SLOTS + n)
    if first >= H + KV:
        out = V + (slot * KV + h - H - KV)[:, None] * D + j[None, :]
        tl.store(out, tl.load(at))
        tl.store(out + HALF, tl.load(at + HALF))
    else:
        a = tl.load(at).to(tl.float32)
        b = tl.load(at + HALF).to(tl.float32)
        c = tl.load(C + n * D + j).to(tl.float32)[None, :]
        s = tl.load(S + n * D + j).to(tl.float32)[None, :]
        if first < H:
            if NORM:
                a, b = _unit(a, b, QW, j, eps, HALF, Q.dtype.element_ty)
            out = Q + (n * H + h)[:, None] * D + j[None, :]
        else:
            if NORM:
                a, b = _unit(a, b, KW, j, eps, HALF, Q.dtype.element_ty)
            out = K + (slot * KV + h - H)[:, None] * D + j[None, :]
        tl.store(out, (a * c - b * s).to(Q.dtype.element_ty))
        tl.store(out + HALF, (b * c + a * s).to(Q.dtype.element_ty))


class RmsNorm(torch.autograd.Function):
    """RMS norm of the last axis; the weight gets no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Normalise rows of ``x``."""
        x = x.contiguous()
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        y, width = torch.empty_like(x), x.shape[-1]
        block = triton.next_power_of_2(width)
        _rms_forward[(x.numel() // width,)](x, weight, y, width, eps, BLOCK=block, num_warps=_warps(block))
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """The gradient of ``x``."""
        x, weight = ctx.saved_tensors
        dx, width = torch.empty_like(x), x.shape[-1]
        block = triton.next_power_of_2(width)
        _rms_backward[(x.numel() // width,)](
            x, weight, dy.contiguous(), dx, width, ctx.eps, BLOCK=block, num_warps=_warps(block)
        )
        return dx, None, None


class NormRotate(torch.autograd.Function):
    """RMS norm of each head (if there is a weight), then its rotary position; the weight gets no gradient."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor | None, cos: torch.Tensor, sin: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Normalise and turn heads ``x`` (N, heads, size)."""
        tokens, heads, size = x.shape
        ctx.save_for_backward(x, weight, cos, sin)
        ctx.eps = eps
        y = torch.empty((tokens, heads, size), dtype=x.dtype, device=x.device)
        step = min(8, triton.next_power_of_2(heads))
        _rotate_forward[(tokens, triton.cdiv(heads, step))](
            x,
            x if weight is None else weight,
            cos,
            sin,
            y,
            x.stride(0),
            heads,
            eps,
            NORM=weight is not None,
            HALF=size // 2,
            HEADS=step,
            num_warps=4 if step * size >= 1024 else 1,
        )
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        """The gradient of ``x``."""
        x, weight, cos, sin = ctx.saved_tensors
        tokens, heads, size = x.shape
        dx = torch.empty((tokens, heads, size), dtype=x.dtype, device=x.device)
        step = min(8, triton.next_power_of_2(heads))
        _rotate_backward[(tokens, triton.cdiv(heads, step))](
            x,
            x if weight is None else weight,
            cos,
            sin,
            dy.contiguous(),
            dx,
            x.stride(0),
            heads,
            ctx.eps,
            NORM=weight is not None,
            HALF=size // 2,
            HEADS=step,
            num_warps=4 if step * size >= 1024 else 1,
        )
        return dx, None, None, None, None


class SwiGlu(torch.autograd.Function):
    """silu(gate) * up."""

    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """Of (N, M) tensors with equal strides."""
        ctx.save_for_backward(gate, up)
        y = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
        rows, width = gate.shape
        _swiglu_forward[(rows, triton.cdiv(width, 1024))](gate, up, y, gate.stride(0), width, BLOCK=1024)
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradients of both."""
        gate, up = ctx.saved_tensors
        rows, width = gate.shape
        dg, du = (torch.empty(gate.shape, dtype=gate.dtype, device=gate.device) for _ in range(2))
        _swiglu_backward[(rows, triton.cdiv(width, 1024))](
            gate, up, dy.contiguous(), dg, du, gate.stride(0), width, BLOCK=1024
        )
        return dg, du


def place(
    qkv: torch.Tensor,
    query_norm: torch.Tensor | None,
    key_norm: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    eps: float,
    slots: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """See ``ops.place``."""
    tokens, total, size = qkv.shape
    kv = keys.shape[1]
    heads = total - 2 * kv
    step = next(n for n in (8, 4, 2, 1) if heads % n == 0 and kv % n == 0)
    q = torch.empty((tokens, heads, size), dtype=qkv.dtype, device=qkv.device)
    norm = query_norm is not None
    _place[(tokens, total // step)](
        qkv,
        query_norm if norm else qkv,
        key_norm if norm else qkv,
        cos,
        sin,
        slots,
        q,
        keys,
        values,
        eps,
        heads,
        kv,
        NORM=norm,
        HALF=size // 2,
        HEADS=step,
        num_warps=2 if step * size >= 512 else 1,
    )
    return q


def _warps(block: int) -> int:
    return 8 if block >= 4096 else 4
