"""Adapters that fit: whoever puts one on a policy sees that all of its weights arrive, and that none is left over.

PEFT itself leaves out what a model has no place for, and keeps fresh values where a file has none; the policy is then
the base, or half of an adapter, under the adapter's name.
"""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from cuarl.errors import CheckpointError

READ_ERRORS = (OSError, ValueError, KeyError, RuntimeError, SafetensorError, pickle.UnpicklingError)
"""What PEFT, torch and safetensors raise for a folder that is damaged or does not fit."""


def put_on(model: Any, folder: Path, *, trained: bool = False) -> Any:
    """``model`` with the adapter in ``folder`` on it, every weight of it.

    A ``model`` on torch's meta device gets an adapter there, too: names and shapes are compared, and nothing is
    computed. Raises CheckpointError for a folder without an adapter, and for one that does not fit.
    """
    from peft import PeftModel

    _check_folder(folder)
    device = next(model.parameters()).device
    how = {
        "is_trainable": trained,
        "low_cpu_mem_usage": device.type == "meta",
        "torch_device": "cpu" if device.type == "meta" else str(device),
        "key_mapping": getattr(model, "_checkpoint_conversion_mapping", {}),
    }
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Found missing adapter keys")
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
            wrapped = PeftModel.from_pretrained(model, str(folder.absolute()), **how)
        # said again, since only this tells what did not arrive
        result = wrapped.load_adapter(str(folder.absolute()), "default", **how)
        expected = expected_shapes(wrapped)
    except READ_ERRORS as error:
        raise CheckpointError(f"the adapter does not fit: {_reason(error)}", where=str(folder)) from error
    missing = [name.replace(".default.", ".") for name in result.missing_keys]
    _refuse(len(expected), missing, result.unexpected_keys, folder, model)
    return wrapped


def exchange(model: Any, folder: Path) -> None:
    """Put the weights of the adapter in ``folder`` in the place of those of ``model``'s own adapter.

    Raises CheckpointError if they don't fit; ``model`` is then as it was.
    """
    from peft import set_peft_model_state_dict

    weights = weights_of(folder, str(next(model.parameters()).device))
    try:
        _compare(expected_shapes(model), weights, folder, model)
        set_peft_model_state_dict(model, weights)
    except READ_ERRORS as error:
        raise CheckpointError(f"the adapter does not fit: {_reason(error)}", where=str(folder)) from error


def write(model: Any, folder: Path) -> None:
    """Write ``model``'s adapter into ``folder``, to be read by another program.

    Raises CheckpointError if what lies there then is not the whole adapter, number by number.
    """
    from peft import get_peft_model_state_dict

    model.save_pretrained(str(folder), save_embedding_layers=False)
    written = weights_of(folder)
    own = get_peft_model_state_dict(model, save_embedding_layers=False)
    _refuse(len(own), own.keys() - written.keys(), written.keys() - own.keys(), folder, model)
    other = [name for name, value in own.items() if not torch.equal(value.cpu(), written[name])]
    if other:
        raise CheckpointError(f"the adapter was not written as it is: {other[0]} differs", where=str(folder))


def weights_of(folder: Path, device: str = "cpu") -> dict[str, torch.Tensor]:
    """The weights of the adapter in ``folder`` by name. Raises CheckpointError if there is none or it is damaged."""
    from peft import load_peft_weights

    _check_folder(folder)
    try:
        weights: dict[str, torch.Tensor] = load_peft_weights(str(folder.absolute()), device=device)
    except READ_ERRORS as error:
        raise CheckpointError(f"the adapter can't be read: {_reason(error)}", where=str(folder)) from error
    return weights


def expected_shapes(model: Any) -> dict[str, torch.Size]:
    """Shapes of the weights of ``model``'s adapter, by the names that they have in a file."""
    from peft import get_peft_model_state_dict

    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    return {name: value.shape for name, value in state.items()}


def trained_on(folder: Path) -> str:
    """How the base was quantised that the adapter in ``folder`` was trained on, as noted there; "none" if it was not.

    Raises CheckpointError for a note that can't be read.
    """
    facts = folder / "cuarl.json"
    try:
        return str(json.loads(facts.read_text(encoding="utf-8"))["quantization"]) if facts.is_file() else "none"
    except KeyError:  # written before there was a choice
        return "none"
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"the facts of the checkpoint can't be read: {error}", where=str(facts)) from error


def is_untrained(weights: Mapping[str, torch.Tensor]) -> bool:
    """Whether an adapter changes nothing: all of its B are zero, as at the start of training."""
    ups = [value for name, value in weights.items() if ".lora_B" in name or ".lora_embedding_B" in name]
    return bool(ups) and not any(value.any() for value in ups)


def _check_folder(folder: Path) -> None:
    """Raise CheckpointError unless an adapter lies here: PEFT would look for it on the network."""
    if not (folder / "adapter_config.json").is_file():
        raise CheckpointError("no adapter here (no adapter_config.json)", where=str(folder))
    if not any((folder / name).is_file() for name in ("adapter_model.safetensors", "adapter_model.bin")):
        raise CheckpointError("the adapter has no weights (no adapter_model.safetensors)", where=str(folder))


def _compare(expected: Mapping[str, torch.Size], weights: Mapping[str, torch.Tensor], folder: Path, model: Any) -> None:
    _refuse(len(expected), expected.keys() - weights.keys(), weights.keys() - expected.keys(), folder, model)
    for name, shape in expected.items():
        if weights[name].shape != shape:
            raise ValueError(f"size mismatch for {name}: {tuple(weights[name].shape)}, not {tuple(shape)}")


def _refuse(total: int, missing: Collection[str], unknown: Collection[str], folder: Path, model: Any) -> None:
    if not missing and not unknown:
        return
    said = [
        f"{what}: {min(keys)}" + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")
        for what, keys in (("missing", missing), ("left over", unknown))
        if keys
    ]
    raise CheckpointError(
        f"the adapter does not fit: matched {total - len(missing)} of {total} weights ({'; '.join(said)})",
        where=str(folder),
        hint=_how_to_fix(folder, str(getattr(model.config, "_name_or_path", ""))),
    )


def _how_to_fix(folder: Path, model: str) -> str:
    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    base = settings.get("base_model_name_or_path")
    if base and base != model:
        return f"put it on the model that it was made for: --model-name {base}"
    return "write it anew, with PEFT's save_pretrained on the model that it was trained with"


def _reason(error: Exception) -> str:
    """The first that torch or PEFT complain about: with sizes that don't match, they list every layer."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[:2])
