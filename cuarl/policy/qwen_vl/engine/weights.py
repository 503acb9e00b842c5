"""The decoder's weights for sampling: projections that share an input fused, adapters merged in the base's type.

A second copy, so the base stays exactly what it was. It is written in place, for a captured graph reads it where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Linear:
    """``weight`` (out, in) and maybe ``bias`` (out,)."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def __call__(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """(N, in) to (N, out), added to ``residual`` if there is one."""
        if residual is None:
            return torch.nn.functional.linear(x, self.weight, self.bias)
        out = torch.addmm(residual, x, self.weight.t())
        return out if self.bias is None else out + self.bias


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: what is normalised by what, and the four products."""

    before: torch.Tensor
    after: torch.Tensor
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    qkv: Linear
    out: Linear
    gate_up: Linear
    down: Linear


class Weights:
    """All layers of a Qwen-VL language model."""

    def __init__(self, language_model: Any) -> None:
        config = language_model.config
        attention = language_model.layers[0].self_attn
        self.heads, self.kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self.head_size, self.eps = int(attention.head_dim), float(config.rms_norm_eps)
        self.scale = float(attention.scaling)
        self.norm = language_model.norm.weight
        self._copies: list[tuple[torch.Tensor, Any, str]] = []
        self.layers = [self._layer(layer) for layer in language_model.layers]

    @property
    def nbytes(self) -> int:
        """Size of the copy."""
        return sum(target.nbytes for target, _, _ in self._copies)

    def refresh(self) -> None:
        """Write the weights as they are now, adapters merged in float32 and rounded once."""
        with torch.no_grad():
            for target, module, name in self._copies:
                target.copy_(merged(module) if name == "weight" else _base(module).bias)

    def _layer(self, layer: Any) -> Layer:
        a, m = layer.self_attn, layer.mlp
        return Layer(
            before=layer.input_layernorm.weight,
            after=layer.post_attention_layernorm.weight,
            query_norm=a.q_norm.weight if hasattr(a, "q_norm") else None,
            key_norm=a.k_norm.weight if hasattr(a, "k_norm") else None,
            qkv=self._fused([a.q_proj, a.k_proj, a.v_proj]),
            out=self._fused([a.o_proj]),
            gate_up=self._fused([m.gate_proj, m.up_proj]),
            down=self._fused([m.down_proj]),
        )

    def _fused(self, modules: Sequence[Any]) -> Linear:
        bases = [_base(m) for m in modules]
        rows = [b.weight.shape[0] for b in bases]
        weight = torch.empty(
            (sum(rows), bases[0].weight.shape[1]), dtype=bases[0].weight.dtype, device=bases[0].weight.device
        )
        bias = None if bases[0].bias is None else weight.new_empty(sum(rows))
        for i, module in enumerate(modules):
            part = slice(sum(rows[:i]), sum(rows[: i + 1]))
            self._copies.append((weight[part], module, "weight"))
            if bias is not None:
                self._copies.append((bias[part], module, "bias"))
        return Linear(weight, bias)


def merged(module: Any) -> torch.Tensor:
    """The weight of a linear layer with its active adapters, in float32 if there are any."""
    base = _base(module).weight
    if module is _base(module) or module.disable_adapters or module.merged:
        return base
    return base.float() + sum(module.get_delta_weight(name).float() for name in module.active_adapters)


def _base(module: Any) -> Any:
    return getattr(module, "base_layer", module)
