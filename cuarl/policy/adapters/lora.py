"""Putting LoRA adapters on a policy, through PEFT."""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
from torch import nn

from cuarl.errors import ConfigError
from cuarl.policy.adapters.modalities import Modalities
from cuarl.policy.spec import LoraSpec
from cuarl.suggest import did_you_mean

_GROUPS = {"attention": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}
_GROUPS["attention+mlp"] = _GROUPS["attention"] + _GROUPS["mlp"]

_STACKED = re.compile(r"(\\\.(?:layers|blocks)\\\.)\d+")
"""The number of a layer in an escaped name: what is chosen of one layer is chosen of all."""


def add_lora(model: Any, spec: LoraSpec, *, revision: str | None = None) -> Any:
    """Wrap ``model`` with a fresh adapter whose initial values depend on ``spec.seed`` alone.

    ``revision`` is the base's resolved commit, recorded in the adapter's settings. Raises ``ConfigError`` if a named
    target is no linear layer of the model.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=spec.rank,
        lora_alpha=spec.alpha or 2 * spec.rank,
        lora_dropout=spec.dropout,
        target_modules=target_pattern(model, spec),
        task_type="CAUSAL_LM",
        revision=revision,
    )
    # named, or every GPU of the machine would be woken
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(spec.seed)
        with warnings.catch_warnings():  # peft asks transformers for a property by its old name
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
            return get_peft_model(model, config)


def target_pattern(model: nn.Module, spec: LoraSpec) -> str:
    """A regular expression over module names: the chosen linear layers of the decoder, and of the tower if asked.

    Leaf names would not do: some towers use the decoder's names, and a convolution may be called like a linear layer.
    """
    linears, modalities = [n for n, m in model.named_modules() if isinstance(m, nn.Linear)], Modalities(model)
    language = [n for n in linears if modalities.language(n)]
    tower = [n for n in linears if modalities.vision(n)] if spec.vision else []
    if isinstance(spec.targets, str):
        chosen = [n for n in language if spec.targets == "all-linear" or _leaf(n) in _GROUPS[spec.targets]] + tower
    else:
        _check_names(spec.targets, {_leaf(n) for n in language + tower})
        chosen = [n for n in language + tower if _leaf(n) in spec.targets]
    if not [n for n in chosen if n in set(language)] and isinstance(spec.targets, str):
        raise ConfigError(
            f"the language model has no linear layers of the group {spec.targets}",
            where=f"lora targets, {type(model).__name__}",
            hint="--lora-target-option all-linear, or custom with some of: "
            + ", ".join(sorted(set(map(_leaf, language)))),
        )
    paths = {_STACKED.sub(r"\1\\d+", re.escape(_below_root(n))) for n in chosen}
    return rf".*\.({'|'.join(sorted(paths))})"


def _leaf(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _below_root(name: str) -> str:
    """The name below ``model``: what lies above depends on how the model is wrapped."""
    return name.removeprefix("model.")


def _check_names(names: tuple[str, ...], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(
                f'"{name}" is no linear layer of this model{did_you_mean(name, known)}',
                where="lora targets",
                hint=f"choose from: {', '.join(sorted(known))}",
            )
