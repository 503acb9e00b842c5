"""Which letter is where: a head that is trained beside the language model, and thrown away afterwards.

Letters are the finest labels a renderer has. Asked for directly, at the very tokens that the language model is given,
they are learnt in seconds; through the words of answers alone the vision tower stays at chance for a long time.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from cuarl.policy.tiny import TOKEN
from cuarl.pretrain.dialogues import Letters

CODES = 95
"""Printable ASCII."""
COLUMN, ROW = 2, 8
"""Pixels of a slot: no two letters have their middles in the same."""
SLOTS = (TOKEN // COLUMN) * (TOKEN // ROW)


class Marked(NamedTuple):
    """Letters by image token and slot, (N,) int64 each."""

    token: torch.Tensor
    slot: torch.Tensor
    code: torch.Tensor


def marked(letters: Letters, shift: tuple[int, int], size: tuple[int, int], device: torch.device) -> Marked:
    """Where the letters of screens of ``size`` (height, width) are after a ``shift`` (down, right) that rolls them."""
    screen, x, y, code = (torch.from_numpy(c).to(device, torch.long) for c in letters)
    height, width = size
    x, y = (x + shift[1]) % width, (y + shift[0]) % height
    cells = (height // TOKEN) * (width // TOKEN)
    token = screen * cells + (y // TOKEN) * (width // TOKEN) + x // TOKEN
    return Marked(token, (y % TOKEN) // ROW * (TOKEN // COLUMN) + (x % TOKEN) // COLUMN, code)


class LetterHead(nn.Module):
    """Reads the letter in each slot of an image token off its features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.read = nn.Linear(width, SLOTS * CODES)

    def forward(self, features: torch.Tensor, at: Marked) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean cross-entropy and share of right letters for features (N, D) of all image tokens of a batch."""
        tokens, where = at.token.unique(return_inverse=True)
        logits = self.read(self.norm(features[tokens])).float().view(-1, SLOTS, CODES)[where, at.slot]
        right = (logits.argmax(-1) == at.code).float().mean()
        return nn.functional.cross_entropy(logits, at.code), right
