"""Sampling with the adapter folded into the weights.

Separate low-rank products cost a small model a third of its sampling time. Folding is exact up to float32 rounding
(log-probabilities move by about 1e-6), so it is done in float32 only. The base's own weights are put aside and back,
never added to and subtracted from: they do not drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LARGEST = 1 << 30
"""Bytes of folded weights beyond which the memory is worth more than the time."""


class Folded:
    """The folded weights of a PEFT model's LoRA layers, made anew when the adapter has changed."""

    def __init__(self, model: Any) -> None:
        from peft.tuners.lora import Linear

        layers = [m for m in model.modules() if isinstance(m, Linear)]
        size = sum(m.base_layer.weight.nbytes for m in layers)
        single = all(m.base_layer.weight.dtype == torch.float32 for m in layers)
        self._layers: list[Any] = layers if single and size <= _LARGEST else []
        self._adapters = [p for n, p in model.named_parameters() if "lora_" in n]
        self._weights: list[torch.Tensor] = []
        self._state: tuple[Any, ...] = ()

    @contextmanager
    def active(self, version: int) -> Iterator[None]:
        """Inside, the layers use folded weights. ``version`` tells of changes that tensors don't count themselves."""
        layers = [m for m in self._layers if not (m.merged or m.disable_adapters)]
        if not layers or len(layers) != len(self._layers):
            yield
            return
        self._refresh(version)
        own = [m.base_layer.weight.data for m in layers]
        try:
            for layer, weight in zip(layers, self._weights, strict=True):
                layer.base_layer.weight.data = weight
                layer.merged_adapters.extend(layer.active_adapters)
            yield
        finally:
            for layer, weight in zip(layers, own, strict=True):
                layer.base_layer.weight.data = weight
                layer.merged_adapters.clear()

    def _refresh(self, version: int) -> None:
        state = (version, *(p._version for p in self._adapters))
        if state == self._state:
            return
        with torch.no_grad():
            self._weights = [
                m.base_layer.weight + sum(m.get_delta_weight(a) for a in m.active_adapters) for m in self._layers
            ]
        self._state = state
