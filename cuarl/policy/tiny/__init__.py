"""The shipped tiny vision-language model: a Qwen3-VL of a few million parameters, pre-trained on simulated screens."""

from pathlib import Path

GRID = 10
"""Calls use multiples of this on the 0-1000 scale: a hundred coordinate tokens are learnt sooner than a thousand."""


def path() -> Path:
    """Folder with the weights, tokenizer, settings and card, loadable by ``from_pretrained``."""
    return Path(__file__).parent / "weights"


def folder(model: str) -> Path:
    """Where the files of ``model`` are: the shipped base, or a folder."""
    return path() if model == "tiny" else Path(model).expanduser()


def is_own(model: str) -> bool:
    """Whether ``model`` is the shipped base, or a folder that ``cuarl model build`` made."""
    return (folder(model) / "build.json").is_file()
