"""The files of a model, as far as they tell whether it can be loaded: where they are, whether weights are whole."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from math import prod
from pathlib import Path

from cuarl.errors import CheckpointError, PrerequisiteError

HUB_S = 5.0
"""Longest time in which the model hub answers, before its models are looked for on this machine alone."""
_HEADER = 8
"""Bytes at the start of a safetensors file that say how long its header is."""
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model")
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def cached(model: str, revision: str | None) -> Path | None:
    """The folder of a hub model on this machine, whose ``config.json`` is there at least; None if it is not."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(model, "config.json", revision=revision)
    return Path(found).parent if isinstance(found, str) else None


def offline(model: str, revision: str | None) -> bool:
    """Whether a hub model has to be loaded without the network: by the hub client's settings, or since there is none.

    Raises PrerequisiteError where the hub does not answer and the model is not on this machine. The client itself would
    try for half a minute, and print each time.
    """
    if any(os.environ.get(name, "").upper() in ("1", "TRUE", "YES", "ON") for name in _OFFLINE):
        return True
    reason = _unreachable()
    if reason and cached(model, revision) is None:
        raise PrerequisiteError(
            f'the model "{model}" is not on this machine, and the model hub does not answer: {reason}',
            hint=f"hf download {model}, where there is a network, then --model-name FOLDER",
        )
    return bool(reason)


@lru_cache(maxsize=1)
def _unreachable() -> str:
    """Why the hub can't be asked; empty if it answers. Asked once."""
    import httpx
    from huggingface_hub import constants

    try:
        httpx.head(constants.ENDPOINT, timeout=HUB_S, follow_redirects=False)
    except httpx.HTTPError as error:
        return f"{constants.ENDPOINT}: {str(error) or type(error).__name__}"
    return ""


def check_tokenizer(folder: Path) -> None:
    """See that a folder has a tokenizer: transformers would make up one without words. Raises PrerequisiteError."""
    if not any(path.name in _VOCABULARIES or path.suffix == ".tiktoken" for path in folder.iterdir()):
        raise PrerequisiteError(
            "the model has no tokenizer beside it (tokenizer.json or vocab.json)",
            where=str(folder),
            hint="fetch the whole model again",
        )


def check_weights(folder: Path) -> int:
    """See that all files of a model's weights are there, to their last byte. How many numbers they have, 0 if unknown.

    Raises PrerequisiteError for files that are not there, and CheckpointError for one that is cut off.
    """
    names = _weight_names(folder)
    absent = [name for name in names if not (folder / name).is_file()]
    if absent or not names:
        raise PrerequisiteError(
            f"{len(absent)} of {len(names)} files of weights are missing, {absent[0]} for one"
            if absent
            else "there are no weights beside the model's config.json",
            where=str(folder),
            hint="fetch the whole model again",
        )
    return sum(_whole(folder / name) for name in names)


def _weight_names(folder: Path) -> list[str]:
    for index in folder.glob("*.index.json"):
        try:
            return sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise CheckpointError(f"the index of the weights can't be read: {error}", where=str(index)) from error
    alone = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    return [path.name for path in alone]


def _whole(path: Path) -> int:
    """How many numbers a file of weights has. The header of safetensors says so, and how long the file is."""
    if path.suffix != ".safetensors":
        return 0
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            header = int.from_bytes(file.read(_HEADER), "little")
            tensors = [t for name, t in json.loads(file.read(min(header, size))).items() if name != "__metadata__"]
        meant = _HEADER + header + max((tensor["data_offsets"][1] for tensor in tensors), default=0)
        numbers: int = sum(prod(tensor["shape"]) for tensor in tensors)
    except (OSError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        raise CheckpointError(f"this is no safetensors file, or not all of one: {error}", where=str(path)) from error
    if size != meant:
        raise CheckpointError(
            f"the file of weights has {size:,} bytes of {meant:,}", where=str(path), hint="fetch or copy it again"
        )
    return numbers
