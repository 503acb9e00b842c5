"""Attention of one new token a row over paged keys and values, split along the keys (Flash-Decoding), in Triton.

Lengths and pages are read on the device, so one captured launch serves every length. Importing this module raises
ImportError where Triton is not installed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from cuarl.policy.qwen_vl.engine.pages import PAGE

_KEYS = 64
"""Keys that a program looks at together."""
_QUERIES = 16
"""Queries of one key head that a program holds, the least that a matrix unit takes; more than a group ever has."""


@triton.jit
def _split(  # type: ignore[no-untyped-def]
    Q,
    K,
    V,
    TABLE,
    LENGTHS,
    M,
    L,
    ACC,
    width,
    scale,
    KV: tl.constexpr,
    G: tl.constexpr,
    D: tl.constexpr,
    BN: tl.constexpr,
    SPLITS: tl.constexpr,
    PAGE: tl.constexpr,
    GB: tl.constexpr,
):
    pid, part = tl.program_id(0), tl.program_id(1)
    row, head = pid // KV, pid % KV
    length = tl.load(LENGTHS + row)
    chunk = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    low = part * chunk
    high = tl.minimum(low + chunk, length)
    g, d, n = tl.arange(0, GB), tl.arange(0, D), tl.arange(0, BN)
    q = tl.load(Q + (pid * G + g[:, None]) * D + d[None, :], mask=g[:, None] < G, other=0.0)
    top = tl.full((GB,), -1.0e30, tl.float32)
    total = tl.zeros((GB,), tl.float32)
    acc = tl.zeros((GB, D), tl.float32)
    for start in range(low, high, BN):
        at = start + n
        ok = at < high
        page = tl.load(TABLE + row * width + at // PAGE, mask=ok, other=0).to(tl.int64)
        place = ((page * PAGE + at % PAGE) * KV + head) * D
        k = tl.load(K + place[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(ok[None, :], x, -1.0e30)
        new = tl.maximum(top, tl.max(x, 1))
        p = tl.where(ok[None, :], tl.exp(x - new[:, None]), 0.0)
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, 1)
        v = tl.load(V + place[:, None] + d[None, :], mask=ok[:, None], other=0.0)
        acc = acc * old[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = new
    o = (pid * SPLITS + part) * GB + g
    tl.store(M + o, top)
    tl.store(L + o, total)
    tl.store(ACC + o[:, None] * D + d[None, :], acc)


@triton.jit
def _combine(  # type: ignore[no-untyped-def]
    M, L, ACC, OUT, G: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr, GB: tl.constexpr
):
    pid, g = tl.program_id(0), tl.program_id(1)
    s, d = tl.arange(0, SPLITS), tl.arange(0, D)
    o = (pid * SPLITS + s) * GB + g
    top, total = tl.load(M + o), tl.load(L + o)
    weight = tl.exp(top - tl.max(top, 0))
    acc = tl.load(ACC + o[:, None] * D + d[None, :])
    out = tl.sum(acc * weight[:, None], 0) / tl.sum(weight * total, 0)
    tl.store(OUT + (pid * G + g) * D + d, out.to(OUT.dtype.element_ty))


class PagedAttention:
    """Kernels with their buffers, for ``rows`` rows. Sizes of heads must be powers of two, groups at most 16."""

    def __init__(self, rows: int, heads: int, kv_heads: int, size: int, device: torch.device) -> None:
        self._kv, self._group, self._size = kv_heads, heads // kv_heads, size
        # enough programs to fill the device, whatever the number of rows
        self._splits = min(64, max(4, triton.next_power_of_2(triton.cdiv(2048, rows * kv_heads))))
        self._programs = rows * kv_heads
        shape = (self._programs, self._splits, _QUERIES)
        self._top, self._total = (torch.empty(shape, device=device) for _ in range(2))
        self._acc = torch.empty((*shape, size), device=device)

    def __call__(
        self,
        q: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        table: torch.Tensor,
        lengths: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """See ``attention.decode``."""
        out = torch.empty_like(q)
        parts = (self._top, self._total, self._acc)
        _split[(self._programs, self._splits)](
            q,
            keys,
            values,
            table,
            lengths,
            *parts,
            table.shape[1],
            scale,
            KV=self._kv,
            G=self._group,
            D=self._size,
            BN=_KEYS,
            SPLITS=self._splits,
            PAGE=PAGE,
            GB=_QUERIES,
            num_warps=4,
            num_stages=3,
        )
        _combine[(self._programs, self._group)](
            *parts, out, G=self._group, D=self._size, SPLITS=self._splits, GB=_QUERIES, num_warps=4
        )
        return out
