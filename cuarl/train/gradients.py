"""Gradients of a whole update: summed over the processes, and checked before the first step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from torch import nn
from torch.distributed.tensor import DTensor

from cuarl.errors import TrainError

_BUCKET = 1 << 25
"""Values summed over the processes at a time (128 MB of float32)."""


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Inside, the same work on a CPU gives the same bits.

    Some backward passes (indexing with repeated indices) otherwise add up in the order in which threads happen to
    finish. Accelerators are left alone: not all of their kernels have a reproducible form.
    """
    if device.type != "cpu":
        yield
        return
    before, fill = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs time, and everything here is written first
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        torch.utils.deterministic.fill_uninitialized_memory = fill


def sum_over_processes(accelerator: Accelerator, parameters: Sequence[nn.Parameter]) -> None:
    """Replace each gradient by its sum over all processes; a process without rows counts as zero.

    One collective per bucket whatever a process has computed, so that processes with unequal, or no, work never wait
    for each other within a backward pass. The loss is weighted for the whole batch, hence the sum and not the mean.
    """
    if accelerator.num_processes == 1:
        return
    sharded = [p for p in parameters if isinstance(p, DTensor)]
    for p in sharded:
        if p.grad is not None:
            p.grad.mul_(accelerator.num_processes)  # the backward pass has made the mean
    for bucket in _buckets(p for p in parameters if not isinstance(p, DTensor)):
        # sums of many small numbers lose them in 16 bits
        flat = torch.cat([_gradient(p).float().reshape(-1) for p in bucket])
        flat = accelerator.reduce(flat, reduction="sum")
        for p, summed in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
            p.grad = summed.view_as(p).to(p.dtype)


def _gradient(parameter: nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _whole(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.full_tensor() if isinstance(gradient, DTensor) else gradient


def _buckets(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    size = 0
    for p in parameters:
        # few large collectives: each costs the same wait, whatever its size
        if bucket and size + p.numel() > _BUCKET:
            yield bucket
            bucket, size = [], 0
        bucket.append(p)
        size += p.numel()
    if bucket:
        yield bucket


def check_trained_names(named: Iterable[tuple[str, nn.Parameter]]) -> list[str]:
    """Names of what is trained of a policy with an adapter. Raises TrainError if that is not just the whole adapter."""
    trained, frozen = [], []
    for name, p in named:
        if p.requires_grad:
            trained.append(name)
        elif ".lora_" in name:
            frozen.append(name)
    base = [name for name in trained if ".lora_" not in name]
    if base or frozen:
        what = f"weights of the base would be trained along, {base[0]}" if base else f"{frozen[0]} would not be trained"
        raise TrainError(f"{what} ({len(base or frozen)} in all)", where="a policy with an adapter")
    return trained


def dead_adapters(
    named: Iterable[tuple[str, nn.Parameter]], *, pictures: bool, of_vision: Callable[[str], bool]
) -> list[str]:
    """Names of the adapted modules none of whose adapter weights got a gradient.

    A fresh adapter's A has none at first, as its B is zero, so a module lives if either has one. Modules that read
    pictures are looked at only if the rows had ``pictures``.
    """
    alive: dict[str, bool] = {}
    for name, p in named:
        if not p.requires_grad or ".lora_" not in name or (not pictures and of_vision(name)):
            continue
        module = name.split(".lora_")[0]
        # at the start B is zero, and with it the gradient of A: one of the two is enough
        alive[module] = alive.get(module, False) or (p.grad is not None and bool(_whole(p.grad).any()))
    return [module for module, lives in alive.items() if not lives]
