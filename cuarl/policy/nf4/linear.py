"""Linear layers with frozen weights in four bits, unpacked for each product."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from cuarl.policy.nf4.codes import Packed, pack, unpack


class Linear4(nn.Linear):
    """What a linear layer computes, with its weight in NF4.

    The weight is unpacked to the type of what it is multiplied with, and forgotten again: backward it is unpacked anew,
    so that no layer's is kept. What is packed is in parameters, frozen, so that copies of a policy share it.
    """

    def __init__(self, layer: nn.Linear, device: torch.device | None = None) -> None:
        """Pack the weight of ``layer``, on ``device`` if there is one: it alone is there whole."""
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        packed = pack(layer.weight.detach().to(device))
        self.weight = _frozen(packed.codes)
        self.scales, self.scale_sizes, self.mean = map(_frozen, packed[1:])
        bias = None if layer.bias is None else _frozen(layer.bias.detach().to(device))
        self.register_parameter("bias", bias)

    def unpacked(self, dtype: torch.dtype) -> torch.Tensor:
        """The weight, (out, in)."""
        packed = Packed(self.weight.data, self.scales.data, self.scale_sizes.data, self.mean.data)
        return unpack(packed, (self.out_features, self.in_features), dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, in) to (…, out)."""
        out: torch.Tensor = _Product.apply(x, self)
        return out

    def plain(self, dtype: torch.dtype) -> nn.Linear:
        """A usual linear layer that computes the same."""
        with torch.device("meta"):
            made = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None)
        made.weight = _frozen(self.unpacked(dtype))
        if self.bias is not None:
            made.bias = _frozen(self.bias.to(dtype))
        return made


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: Linear4) -> torch.Tensor:
        ctx.layer = layer
        return nn.functional.linear(x, layer.unpacked(x.dtype), layer.bias)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradients[0] @ ctx.layer.unpacked(gradients[0].dtype), None


def quantise(model: nn.Module, names: list[str], device: torch.device) -> None:
    """Replace the linear layers ``names`` of ``model``, one after the other, by packed ones on ``device``."""
    for name in names:
        _put(model, name, Linear4(model.get_submodule(name), device))


def dequantise(model: nn.Module, dtype: torch.dtype) -> None:
    """Replace all packed layers of ``model`` by usual ones."""
    for name, module in list(model.named_modules()):
        if isinstance(module, Linear4):
            _put(model, name, module.plain(dtype))


def _put(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(parent), leaf, module)


def _frozen(values: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(values, requires_grad=False)
