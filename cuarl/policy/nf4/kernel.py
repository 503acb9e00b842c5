"""The Triton kernel behind ``codes.unpack``. Importing this module raises ImportError where Triton is not installed."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_BYTES = 1024
"""Bytes of one program."""


@triton.jit
def _unpack(CODES, SCALES, SIZES, MEAN, LEVELS, TABLE, OUT, n, BYTES: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BYTES + tl.arange(0, BYTES)
    ok = 2 * i < n
    code = tl.load(CODES + i, mask=ok, other=0).to(tl.int32)
    block = i // 32
    chosen = tl.load(SCALES + block, mask=ok, other=0).to(tl.int32)
    size = tl.load(TABLE + chosen) * tl.load(SIZES + block // 256, mask=ok, other=0.0) + tl.load(MEAN)
    first = tl.load(LEVELS + (code >> 4)) * size
    second = tl.load(LEVELS + (code & 15)) * size
    place = 2 * tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, 2 * BYTES)
    tl.store(OUT + place, tl.interleave(first, second).to(OUT.dtype.element_ty), mask=place < n)


def unpack(
    codes: torch.Tensor,
    scales: torch.Tensor,
    scale_sizes: torch.Tensor,
    mean: torch.Tensor,
    levels: torch.Tensor,
    scale_table: torch.Tensor,
    shape: tuple[int, ...],
    dtype: torch.dtype,
) -> torch.Tensor:
    """The weight of ``shape`` from the parts of a ``Packed`` and both tables of levels."""
    out = torch.empty(shape, dtype=dtype, device=codes.device)
    grid = (triton.cdiv(len(codes), _BYTES),)
    _unpack[grid](codes, scales, scale_sizes, mean, levels, scale_table, out, out.numel(), BYTES=_BYTES)
    return out
