"""The shipped tiny vision-language model: a Qwen3-VL of a few million parameters, pre-trained on simulated screens."""

from pathlib import Path

PATCH, MERGE = 16, 2
"""Pixels of a patch's side, and patches of a token's side: one image token covers 32 x 32 pixels."""

GRID = 10
"""Calls use multiples of this on the 0-1000 scale: a hundred coordinate tokens are learnt sooner than a thousand."""


def path() -> Path:
    """Folder with the weights, tokenizer, settings and card, loadable by ``from_pretrained``."""
    return Path(__file__).parent / "weights"
