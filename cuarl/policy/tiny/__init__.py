"""The shipped tiny vision-language model: a Qwen3-VL of a few million parameters, pre-trained on simulated screens."""

from pathlib import Path

PATCH, MERGE = 8, 2
"""Pixels of a patch's side, and patches of a token's side, in bases that ``cuarl model build`` makes. A letter is about
seven pixels wide: a patch of 16 holds two or three, at any of 256 offsets, and reading is learnt far more slowly."""
TOKEN = PATCH * MERGE
"""Pixels of an image token's side."""

GRID = 10
"""Calls use multiples of this on the 0-1000 scale: a hundred coordinate tokens are learnt sooner than a thousand."""


def path() -> Path:
    """Folder with the weights, tokenizer, settings and card, loadable by ``from_pretrained``."""
    return Path(__file__).parent / "weights"


def is_own(model: str) -> bool:
    """Whether ``model`` is the shipped base, or a folder that ``cuarl model build`` made."""
    return model == "tiny" or (Path(model).expanduser() / "build.json").is_file()
