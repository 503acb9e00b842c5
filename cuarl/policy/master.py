"""Float32 originals of weights that are computed with in 16 bits (mixed precision training, arXiv:1710.03740).

A bfloat16 weight has eight bits: a step smaller than half the spacing there is lost when it is added, every time. So an
optimiser changes float32 originals, by gradients added up in float32, and what is computed with is rounded from these
after each of its steps. Weights that are in float32, such as adapters, are their own originals.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor

_SHORT = (torch.bfloat16, torch.float16)


class Master:
    """The originals of ``used`` parameters, which may be shards (DTensor) each with its original in shards, too."""

    def __init__(self, used: Sequence[nn.Parameter], originals: Sequence[nn.Parameter] | None = None) -> None:
        """``originals``: float32 parameters in the order of ``used``; None makes them of what these hold."""
        self.parameters = list(map(_original, used)) if originals is None else list(originals)
        """What an optimiser is given, in the order of ``used``."""
        self._pairs = [(k, u) for k, u in zip(self.parameters, used, strict=True) if k is not u]

    def take_gradients(self) -> None:
        """Move the gradients of what is computed with to the originals, added to what these have."""
        for kept, used in self._pairs:
            if used.grad is None:
                continue
            if kept.grad is None:
                kept.grad = used.grad.float()
            else:
                kept.grad += used.grad
            used.grad = None

    def write(self) -> None:
        """Round the originals into what is computed with, in place."""
        if self._pairs:
            kept, used = zip(*((_local(k), _local(u)) for k, u in self._pairs), strict=True)
            with torch.no_grad():
                torch._foreach_copy_(list(used), list(kept))

    def state(self) -> list[torch.Tensor]:
        """The originals that are no parameters of the model, whole; with shards every process must call it."""
        kept = (k.detach() for k, _ in self._pairs)
        return [k.full_tensor() if isinstance(k, DTensor) else k for k in kept]

    def restore(self, state: Sequence[torch.Tensor] | None) -> None:
        """Take ``state()`` back; None takes what is computed with instead. Raises ValueError if it does not fit."""
        if state is not None and len(state) != len(self._pairs):
            raise ValueError(f"{len(state)} float32 weights for {len(self._pairs)} of 16 bits")
        with torch.no_grad():
            for i, (kept, used) in enumerate(self._pairs):
                _local(kept).copy_(_local(used) if state is None else _like(kept, state[i]))


def _original(used: nn.Parameter) -> nn.Parameter:
    if used.dtype not in _SHORT:
        return used
    return nn.Parameter(used.detach().float())


def _local(parameter: torch.Tensor) -> torch.Tensor:
    local: torch.Tensor = parameter.to_local() if isinstance(parameter, DTensor) else parameter
    return local.detach()


def _like(kept: torch.Tensor, saved: torch.Tensor) -> torch.Tensor:
    """``saved``, whole, as far as this process has it of ``kept``."""
    if not isinstance(kept, DTensor):
        return saved
    return distribute_tensor(saved.to(kept.device), kept.device_mesh, kept.placements).to_local()
