"""Which layers of a model are kept in four bits."""

from __future__ import annotations

from torch import nn

from cuarl.errors import ConfigError
from cuarl.policy.adapters.modalities import Modalities

_LEAST = 0.5
"""Share of the language model below which four bits save too little to be what was meant."""


def chosen_layers(model: nn.Module) -> list[str]:
    """Names of the linear layers of the language model; not its head, embeddings and norms, nor what reads pictures.

    Raises ConfigError for a model that is quantised already, and for one whose weights are mostly elsewhere, as those
    of experts are.
    """
    kind = type(model).__name__
    if getattr(model.config, "quantization_config", None) is not None:
        raise ConfigError("the model comes quantised already", where=kind, hint="leave --quantization nf4 out")
    modalities = Modalities(model)
    names = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and modalities.language(n)]
    kept = sum(model.get_submodule(n).weight.numel() for n in names)
    embeddings = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    whole = sum(p.numel() for n, p in model.named_parameters() if modalities.language(n) and id(p) not in embeddings)
    if kept < _LEAST * whole:
        raise ConfigError(
            f"only {kept / max(whole, 1):.0%} of the language model are linear layers; experts can't be kept in four "
            "bits",
            where=f"--quantization nf4, {kind}",
            hint="--quantization none",
        )
    return names
