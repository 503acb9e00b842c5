"""A random model of real shape in a folder that vLLM and cuarl load alike."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import decoders
from transformers import AutoModelForImageTextToText, AutoTokenizer, Qwen2VLImageProcessor

from benchmarks.real_sizes import PROCESSORS, configuration, family
from cuarl.policy import tiny

SPARE = 267
"""Ids of a model of the Qwen family that its tokenizer has no token for."""
SHARPNESS = 3.0
"""Factor of the logits: those of a random model hardly differ from one another, those of a trained one do."""
_FILES = ("tokenizer_config.json", "chat_template.jinja")


def write(folder: Path, name: str, device: torch.device, dtype: torch.dtype) -> Path:
    """The base of that size with random weights, its tokenizer and settings of pictures; what is there is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in _FILES:
        shutil.copy(tiny.path() / file, folder / file)
    state = json.loads((tiny.path() / "tokenizer.json").read_text(encoding="utf-8"))
    wanted = configuration(name, AutoTokenizer.from_pretrained(str(tiny.path()))).text_config.vocab_size - SPARE
    (folder / "tokenizer.json").write_text(json.dumps(filled(state, wanted)), encoding="utf-8")
    shape = configuration(name, AutoTokenizer.from_pretrained(str(folder)))
    Qwen2VLImageProcessor(**PROCESSORS[family(name)]).save_pretrained(str(folder))
    torch.manual_seed(0)
    with device:
        model = AutoModelForImageTextToText.from_config(shape, dtype=dtype, attn_implementation="sdpa")
    with torch.no_grad():
        model.model.language_model.norm.weight.mul_(SHARPNESS)
    model.save_pretrained(str(folder))
    return folder


def filled(state: dict[str, Any], size: int) -> dict[str, Any]:
    """A tokenizer of ``size`` tokens, of which those that are added occur in no prompt and are read back as they are.

    A server is sent past answers as text: were its tokens not those that were sampled, nothing could be trained on.
    """
    model, added, pieces = state["model"], state["added_tokens"], state["pre_tokenizer"]["pretokenizers"]
    # parts of letters are no text by themselves, so that they are given up for words of their own
    kept = {word: i for word, i in model["vocab"].items() if decoders.ByteLevel().decode([word]).isascii()}
    # special tokens and their like are numbered behind all others
    end = size - len(added)
    vocabulary = kept | {f"<t{i}>": i for i in set(range(end)) - set(kept.values())}
    whole = {"type": "Split", "pattern": {"Regex": "<t[0-9]+>"}, "behavior": "Isolated", "invert": False}
    # the other patterns would take such a word apart again
    first = {**pieces[0], "pattern": {"Regex": "<t[0-9]+>|" + pieces[0]["pattern"]["Regex"]}}
    return state | {
        "model": model
        | {
            "vocab": vocabulary,
            "ignore_merges": True,
            "merges": [one for one in model["merges"] if {*one, "".join(one)} <= kept.keys()],
        },
        "added_tokens": [one | {"id": end + i} for i, one in enumerate(added)],
        "pre_tokenizer": state["pre_tokenizer"] | {"pretokenizers": [whole, first, *pieces[1:]]},
    }


def write_moved(folder: Path, out: Path, by: float = 0.02) -> Path:
    """The same model with other weights in ``out``: every matrix moved at random by that share of its own size."""
    shutil.copytree(folder, out, dirs_exist_ok=True)
    weights = load_file(str(folder / "model.safetensors"))
    torch.manual_seed(1)
    moved = {
        n: w + (by * w.float().std() * torch.randn(w.shape)).to(w.dtype) for n, w in weights.items() if w.dim() > 1
    }
    save_file(weights | moved, out / "model.safetensors", metadata={"format": "pt"})
    return out
