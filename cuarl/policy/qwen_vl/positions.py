"""Multi-axis rotary positions of Qwen-VL prompts, for a whole batch at once.

Text advances time, height and width together by one a token. An image block starting at position p gives its tokens
(p, p + row, p + column), and what follows starts at p + max(rows, columns) (Qwen2-VL, arXiv:2409.12191, section 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from cuarl.policy.qwen_vl.images import Grid


class Positions(NamedTuple):
    """``axes`` (3, B, L) int64: time, height, width; 0 at padding. ``next`` (B,) int64: position of a further token."""

    axes: torch.Tensor
    next: torch.Tensor


def multi_axis_positions(is_image: torch.Tensor, mask: torch.Tensor, grids: Sequence[Grid]) -> Positions:
    """Positions from where the image tokens are.

    ``is_image`` and ``mask`` are (B, L) bool (``mask`` False at padding, on either side); ``grids`` are those of all
    pictures, row after row. Raises ValueError if the grids do not account for the image tokens.
    """
    device = is_image.device
    tokens = torch.tensor([g.tokens for g in grids], dtype=torch.long, device=device)
    total = sum(g.tokens for g in grids)
    if total != int(is_image.sum()):
        raise ValueError(f"{int(is_image.sum())} image tokens, but the pictures have {total}")
    advance = mask.long()
    row = torch.zeros_like(advance)
    col = torch.zeros_like(advance)
    if grids:
        width = torch.tensor([g.token_cols for g in grids], device=device)
        side = torch.tensor([max(g.token_rows, g.token_cols) for g in grids], device=device)
        picture = torch.repeat_interleave(torch.arange(len(grids), device=device), tokens)
        ends = tokens.cumsum(0)
        index = torch.arange(total, device=device) - (ends - tokens)[picture]
        # a block advances once, at its last token, so that all its tokens share one start
        step = torch.zeros(total, dtype=torch.long, device=device)
        step[ends - 1] = side
        advance[is_image] = step
        row[is_image] = index // width[picture]
        col[is_image] = index % width[picture]
    ends_at = advance.cumsum(1)
    start = (ends_at - advance) * mask
    return Positions(torch.stack([start, start + row, start + col]), ends_at[:, -1])
