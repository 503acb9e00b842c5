"""Weights as numbers of four bits: NF4 with double quantisation, as in QLoRA (Dettmers et al., 2023, arXiv:2305.14314).

A weight is cut into blocks of 64 numbers. Each number is divided by the largest magnitude of its block, its scale, and
becomes the nearest of 16 levels, which share a normal distribution out evenly (appendix E). Scales less their mean are
quantised once more, to 8 bits in blocks of 256, with the levels of "dynamic tree quantisation" (arXiv:2110.02861,
section 2.2). Together 4.127 bits a number. Bytes are laid out as bitsandbytes does.

Plain PyTorch, for any device; on a CUDA device one Triton kernel (``kernel``) unpacks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch

try:
    from cuarl.policy.nf4 import kernel
except ImportError:  # Triton comes with torch's CUDA builds only
    kernel = None  # type: ignore[assignment]

BLOCK = 64
"""Numbers that share a scale."""
SCALES = 256
"""Scales that share a scale of their own."""
BITS = 4 + 8 / BLOCK + 32 / (BLOCK * SCALES)
"""Of memory for a number."""
LEVELS = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""Appendix E."""


class Packed(NamedTuple):
    """A weight of n numbers in b blocks."""

    codes: torch.Tensor
    """(32 b,) uint8: two numbers in a byte, the first in its upper half."""
    scales: torch.Tensor
    """(b,) uint8: the scale of each block, less the mean, by its number among ``scale_levels``."""
    scale_sizes: torch.Tensor
    """(b / 256, rounded up) float32: what each 256 of these are multiplied by."""
    mean: torch.Tensor
    """() float32: of all scales."""


def pack(weight: torch.Tensor) -> Packed:
    """Quantise a weight of any shape and floating type, where it is."""
    blocks = _cut(weight.detach().float().flatten(), BLOCK)
    sizes = blocks.abs().amax(1)
    number = _nearest(_scaled(blocks, sizes), LEVELS).to(torch.uint8)
    mean = sizes.mean()
    scales = _cut(sizes - mean, SCALES)
    scale_sizes = scales.abs().amax(1)
    chosen = _nearest(_scaled(scales, scale_sizes), scale_levels()).to(torch.uint8)
    pairs = number.view(-1, 2)
    return Packed(pairs[:, 0] << 4 | pairs[:, 1], chosen.flatten()[: len(sizes)], scale_sizes, mean)


def unpack(packed: Packed, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The weight of ``shape``: computed in float32, rounded to ``dtype`` once."""
    if packed.codes.is_cuda and kernel is not None:
        device = packed.codes.device
        levels, scale_table = _table(LEVELS, device), _table(scale_levels(), device)
        return kernel.unpack(*packed, levels, scale_table, shape, dtype)
    return unpack_plainly(packed, shape, dtype)


def unpack_plainly(packed: Packed, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The same in plain PyTorch."""
    device, blocks = packed.codes.device, len(packed.scales)
    sizes = _table(scale_levels(), device)[packed.scales.int()]
    sizes = sizes * packed.scale_sizes.repeat_interleave(SCALES)[:blocks] + packed.mean
    values = torch.nn.functional.embedding(packed.codes.int(), _pairs(device)).view(blocks, BLOCK)
    return values.mul_(sizes[:, None]).flatten()[: torch.Size(shape).numel()].view(shape).to(dtype)


@lru_cache(maxsize=1)
def scale_levels() -> tuple[float, ...]:
    """The 256 levels of dynamic tree quantisation, ascending.

    Zero, one, and in each of seven decades, 1e-7 to 1e-6 up to 0.1 to 1, the middles of 1, 2, 4, … 64 equal parts, with
    either sign.
    """
    found = [0.0, 1.0]
    for decade in range(7):
        edges = torch.linspace(0.1, 1.0, 2**decade + 1)
        middles = (edges[:-1] + edges[1:]) / 2 * 10.0 ** (decade - 6)
        found += [*middles.tolist(), *(-middles).tolist()]
    return tuple(sorted(found))


def _cut(values: torch.Tensor, size: int) -> torch.Tensor:
    """(n,) as (blocks, size), the last one filled up with zeros."""
    return torch.nn.functional.pad(values, (0, -len(values) % size)).view(-1, size)


def _scaled(blocks: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    # multiplied by the reciprocal, as bitsandbytes does: a division rounds some numbers to the other side of an edge
    return blocks * torch.where(sizes > 0, 1 / sizes, 0.0)[:, None]


def _nearest(values: torch.Tensor, levels: tuple[float, ...]) -> torch.Tensor:
    known = _table(levels, values.device)
    return torch.bucketize(values, (known[:-1] + known[1:]) / 2, out_int32=True)


@lru_cache(maxsize=16)
def _table(levels: tuple[float, ...], device: torch.device) -> torch.Tensor:
    # made once, for training too, which takes no tensor of inference mode
    with torch.inference_mode(False):
        return torch.tensor(levels, device=device)


@lru_cache(maxsize=8)
def _pairs(device: torch.device) -> torch.Tensor:
    """(256, 2): the two numbers of every byte."""
    with torch.inference_mode(False):
        levels = _table(LEVELS, device)
        return torch.stack([levels.repeat_interleave(16), levels.repeat(16)], dim=1)
