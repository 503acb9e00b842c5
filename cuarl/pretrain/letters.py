"""Which letter is where: a head that is trained beside the language model, and thrown away afterwards.

Letters are the finest labels a renderer has. Asked for directly, at the very tokens that the language model is given,
they are learnt in seconds; through the words of answers alone the vision tower stays at chance for a long time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from cuarl.pretrain.dialogues import Letters

CODES = 95
"""Printable ASCII."""
COLUMN, ROW = 2, 8
"""Pixels of a slot: no two letters have their middles in the same."""


class Marked(NamedTuple):
    """Letters by image token and slot, int64 each."""

    tokens: torch.Tensor
    """(T,): the image tokens that have letters."""
    where: torch.Tensor
    """(N,): which of these a letter is in."""
    slot: torch.Tensor
    """(N,)."""
    code: torch.Tensor
    """(N,)."""


def marked(letters: Letters, shift: tuple[int, int], size: tuple[int, int], token: int, device: torch.device) -> Marked:
    """Where the letters of screens of ``size`` (height, width) are after a ``shift`` (down, right) that rolls them.

    Image tokens are ``token`` pixels wide and high.
    """
    screen, x, y, code = (c.astype(np.int64) for c in letters)
    height, width = size
    x, y = (x + shift[1]) % width, (y + shift[0]) % height
    cells = (height // token) * (width // token)
    at = screen * cells + (y // token) * (width // token) + x // token
    slot = (y % token) // ROW * (token // COLUMN) + (x % token) // COLUMN
    tokens, where = np.unique(at, return_inverse=True)
    return Marked(*(torch.from_numpy(a).to(device, non_blocking=True) for a in (tokens, where, slot, code)))


class LetterHead(nn.Module):
    """Reads the letter in each slot of an image token off its features."""

    def __init__(self, width: int, token: int) -> None:
        super().__init__()
        self.slots = (token // COLUMN) * (token // ROW)
        self.norm = nn.LayerNorm(width)
        self.read = nn.Linear(width, self.slots * CODES)

    def forward(self, features: torch.Tensor, at: Marked) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean cross-entropy and share of right letters for features (N, D) of all image tokens of a batch."""
        logits = self.read(self.norm(features[at.tokens])).view(-1, self.slots, CODES)[at.where, at.slot].float()
        right = (logits.argmax(-1) == at.code).float().mean()
        return nn.functional.cross_entropy(logits, at.code), right
