"""Training with the decoder's layers in shards over the processes (FSDP2, torch's ``fully_shard``; arXiv:2304.11277).

Sampling needs weights that are whole: processes sample different episodes, so nothing may wait for the others there. So
between updates every layer is whole everywhere. While an update's gradients are computed, each process keeps its shard
of weights and gradients, and gathers a layer when its turn comes; moments are in shards always. What is outside the
layers (embeddings, head, vision tower) is whole on every process, and its gradients are summed as without shards.

All processes must compute equally many micro-batches, for each takes part in the others' layers: ``train.learner``
fills up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from cuarl.policy.base import Policy


class Shards:
    """The decoder layers of ``policy``, in shards from now on, and whole outside of ``apart``."""

    def __init__(self, policy: Policy, accelerator: Accelerator) -> None:
        self._model = policy.model
        mesh = init_device_mesh(policy.device.type, (accelerator.num_processes,))
        self._layers: list[FSDPModule] = [fully_shard(layer, mesh=mesh) for layer in policy.base.get_decoder().layers]
        for layer in self._layers:
            # not all backends have means, and the loss wants sums
            layer.set_force_sum_reduction_for_comms(True)
        self._trained = [(name, p) for name, p in self._model.named_parameters() if p.requires_grad]
        self._gather()

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What is trained; of layers, this process's shards."""
        return [p for _, p in self._trained]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Inside, a layer is whole only while it computes."""
        for layer in self._layers:
            layer.set_reshard_after_forward(True)
            layer.reshard()
        try:
            yield
        finally:
            self._gather()

    def _gather(self) -> None:
        for layer in self._layers:
            layer.set_reshard_after_forward(False)
            layer.unshard()

    def weights(self) -> dict[str, torch.Tensor]:
        """All weights, whole, by name."""
        return {name: p.detach() for name, p in self._model.named_parameters()}

    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take trained weights, whole, by name. Raises ValueError if one is missing, or has no place here."""
        missing = [name for name, _ in self._trained if name not in weights]
        known = {n for n, _ in self._model.named_parameters(remove_duplicate=False)} | dict(
            self._model.named_buffers()
        ).keys()
        unknown = [name for name in weights if name not in known]
        if missing or unknown:
            matched = len(self._trained) - len(missing)
            raise ValueError(
                f"matched {matched} of {len(self._trained)} trained weights ({(missing or unknown)[0]} for one)"
            )
        with self.apart(), torch.no_grad():
            for name, p in self._trained:
                value = weights[name].to(p.device, p.dtype)
                if isinstance(p, DTensor):
                    p.to_local().copy_(distribute_tensor(value, p.device_mesh, p.placements).to_local())
                else:
                    p.copy_(value)


def whole(value: Any) -> Any:
    """``value`` with every sharded tensor in it put together; all processes must call it."""
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {k: whole(v) for k, v in value.items()}
    return [whole(v) for v in value] if isinstance(value, list) else value


def shard_moments(optimizer: torch.optim.Optimizer) -> None:
    """Cut the moments of sharded parameters, just loaded whole, like these."""
    for p, state in optimizer.state.items():
        if isinstance(p, DTensor):
            for name, value in state.items():
                if value.shape == p.shape and not isinstance(value, DTensor):
                    state[name] = distribute_tensor(value, p.device_mesh, p.placements)


def clip_gradients(accelerator: Accelerator, parameters: Sequence[nn.Parameter], limit: float) -> float:
    """Scale the gradients, some of them in shards, to a norm of at most ``limit``; returns the norm before."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    sharded = [g.to_local() for g in gradients if isinstance(g, DTensor)]
    plain = [g for g in gradients if not isinstance(g, DTensor)]
    squares = torch.zeros(2, device=accelerator.device, dtype=torch.float32)
    for i, some in enumerate((sharded, plain)):
        for g in some:
            squares[i] += g.float().square().sum()
    total = accelerator.reduce(squares[:1].clone(), reduction="sum") + squares[1:]
    norm = float(total.sqrt())
    scale = min(1.0, limit / (norm + 1e-6))
    for g in (*sharded, *plain):
        g.mul_(scale)
    return norm
