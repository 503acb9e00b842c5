"""Putting LoRA adapters on a policy, through PEFT."""

from __future__ import annotations

import difflib
import re
from typing import Any

import torch
from torch import nn

from cuarl.errors import ConfigError
from cuarl.policy.spec import LoraSpec

_GROUPS = {
    "attention": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
}
_GROUPS["attention+mlp"] = _GROUPS["attention"] + _GROUPS["mlp"]


def add_lora(model: Any, spec: LoraSpec, *, revision: str | None = None) -> Any:
    """Wrap ``model`` with a fresh adapter whose initial values depend on ``spec.seed`` alone.

    ``revision`` is the base's resolved commit, recorded in the adapter's settings. Raises ``ConfigError`` if a named
    target is no linear layer of the model.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=spec.rank, lora_alpha=spec.alpha or 2 * spec.rank, lora_dropout=spec.dropout,
        target_modules=target_pattern(model, spec), task_type="CAUSAL_LM", revision=revision,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(spec.seed)
        return get_peft_model(model, config)


def target_pattern(model: nn.Module, spec: LoraSpec) -> str:
    """A regular expression over module names: the chosen linear layers of the decoder, and of the tower if asked.

    A pattern rather than a list of leaf names, because some towers use the decoder's names.
    """
    linears = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and not n.endswith("lm_head")]
    language = {n.rsplit(".", 1)[-1] for n in linears if ".language_model." in n}
    vision = {n.rsplit(".", 1)[-1] for n in linears if ".visual." in n}
    if spec.targets == "all-linear":
        wanted = language
    elif isinstance(spec.targets, str):
        wanted = set(_GROUPS[spec.targets]) & language
    else:
        _check_names(spec.targets, language | (vision if spec.vision else set()))
        wanted = set(spec.targets) & language
    pattern = rf".*\.language_model\..*\.({_alternatives(wanted)})" if wanted else ""
    if spec.vision:
        inside = vision if isinstance(spec.targets, str) else vision & set(spec.targets)
        tower = rf".*\.visual\..*\.({_alternatives(inside)})"
        pattern = f"{pattern}|{tower}" if pattern else tower
    return pattern


def _alternatives(names: set[str]) -> str:
    return "|".join(re.escape(n) for n in sorted(names))


def _check_names(names: tuple[str, ...], known: set[str]) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            guess = f' (did you mean "{close[0]}"?)' if close else ""
            raise ConfigError(
                f'"{name}" is no linear layer of this model{guess}',
                where="lora targets", hint=f"choose from: {', '.join(sorted(known))}",
            )  # fmt: skip
