"""The decoder's weights for sampling: projections that share an input fused, adapters merged in the base's type.

A second copy, so the base stays exactly what it was. It is written in place, for a captured graph reads it where it is.
Of weights in four bits no copy is kept where memory is what counts: they are unpacked for each product, with the
adapters beside, as in training (``Packed``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch

from cuarl.policy.nf4.linear import Linear4


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


class Up(NamedTuple):
    """What an adapter adds to one of some products: its ranks of all, second factor (out, rank) and scale."""

    product: int
    ranks: slice
    factor: torch.Tensor
    scale: float


@dataclass(frozen=True, slots=True)
class Packed:
    """Products with weights in four bits: ``down`` (all ranks, in) and ``ups`` are the adapters beside them."""

    layers: tuple[Linear4, ...]
    down: torch.Tensor | None
    ups: tuple[Up, ...]

    def __call__(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        """(N, in) to (N, out of all), added to ``residual`` if there is one."""
        parts = [torch.nn.functional.linear(x, layer.unpacked(x.dtype), layer.bias) for layer in self.layers]
        if self.down is not None:
            low = torch.nn.functional.linear(x, self.down)
            for up in self.ups:
                parts[up.product] = torch.addmm(parts[up.product], low[:, up.ranks], up.factor.t(), alpha=up.scale)
        out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return out if residual is None else residual + out


Product = Linear | Packed


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: what is normalised by what, and the four products."""

    before: torch.Tensor
    after: torch.Tensor
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    qkv: Product
    out: Product
    gate_up: Product
    down: Product


class Weights:
    """All layers of a Qwen-VL language model; with ``packed``, no copy of weights in four bits is made."""

    def __init__(self, language_model: Any, *, packed: bool = False) -> None:
        config = language_model.config
        attention = language_model.layers[0].self_attn
        self.heads, self.kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self.head_size, self.eps = int(attention.head_dim), float(config.rms_norm_eps)
        self.scale = float(attention.scaling)
        self.norm = language_model.norm.weight
        self._packed = packed
        self._copies: list[tuple[torch.Tensor, Callable[[], torch.Tensor]]] = []
        self.layers = [self._layer(layer) for layer in language_model.layers]

    @property
    def nbytes(self) -> int:
        """Size of the copy."""
        return sum(target.nbytes for target, _ in self._copies)

    def refresh(self) -> None:
        """Write the weights as they are now, adapters merged in float32 and rounded once."""
        with torch.no_grad():
            for target, now in self._copies:
                target.copy_(now())

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

    def _fused(self, modules: Sequence[Any]) -> Product:
        bases = [_base(m) for m in modules]
        if self._packed and all(isinstance(b, Linear4) for b in bases):
            return self._beside(modules)
        rows = [b.out_features for b in bases]
        weight = self.norm.new_empty((sum(rows), bases[0].in_features))
        bias = None if bases[0].bias is None else weight.new_empty(sum(rows))
        for i, module in enumerate(modules):
            part = slice(sum(rows[:i]), sum(rows[: i + 1]))
            self._copies.append((weight[part], partial(merged, module)))
            if bias is not None:
                self._copies.append((bias[part], partial(getattr, _base(module), "bias")))
        return Linear(weight, bias)

    def _beside(self, modules: Sequence[Any]) -> Packed:
        found = [(i, m, name) for i, m in enumerate(modules) for name in getattr(m, "lora_A", ())]
        ranks = [len(m.lora_A[name].weight) for _, m, name in found]
        layers = tuple(_base(m) for m in modules)
        down = self.norm.new_empty((sum(ranks), layers[0].in_features)) if found else None
        ups: list[Up] = []
        for k, (i, module, name) in enumerate(found):
            assert down is not None
            part = slice(sum(ranks[:k]), sum(ranks[: k + 1]))
            factor = self.norm.new_empty((layers[i].out_features, ranks[k]))
            self._copies += [
                (down[part], partial(getattr, module.lora_A[name], "weight")),
                (factor, partial(_second_factor, module, name)),
            ]
            ups.append(Up(i, part, factor, float(module.scaling[name])))
        return Packed(layers, down, tuple(ups))


def merged(module: Any) -> torch.Tensor:
    """The weight of a linear layer with its active adapters, in float32 if there are any."""
    base = _base(module)
    alone = module is base or module.disable_adapters or module.merged
    weight = base.unpacked(torch.float32) if isinstance(base, Linear4) else base.weight
    return weight if alone else weight.float() + sum(module.get_delta_weight(n).float() for n in module.active_adapters)


def _second_factor(module: Any, name: str) -> torch.Tensor:
    factor: torch.Tensor = module.lora_B[name].weight
    return torch.zeros_like(factor) if module.disable_adapters or name not in module.active_adapters else factor


def _base(module: Any) -> Any:
    return getattr(module, "base_layer", module)
