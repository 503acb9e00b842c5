"""The shipped tiny vision-language model: a Qwen3-VL of a few million parameters, pre-trained on simulated screens."""

from pathlib import Path

GRID = 10
"""Calls use multiples of this on the 0-1000 scale: a hundred coordinate tokens are learnt sooner than a thousand."""


def path() -> Path:
    """Folder with the weights, tokenizer, settings and card, loadable by ``from_pretrained``."""
    return Path(__file__).parent / "weights"


def is_own(model: str) -> bool:
    """Whether ``model`` is the shipped base, or a folder that ``cuarl model build`` made."""
    return model == "tiny" or (Path(model).expanduser() / "build.json").is_file()
