"""A second policy on the same base: one is trained while the other samples.

The copy has modules of its own, so that modes, adapters switched off and folded weights of one don't reach the other.
It shares the memory of what is frozen, and copies what is trained: for an adapter that is next to nothing. On a device
of its own it shares nothing; what is copied after an update is what is trained, from memory to memory.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import nn

from cuarl.errors import CheckpointError
from cuarl.policy.base import Policy

P = TypeVar("P", bound=Policy)


def sampler_copy(policy: P, device: str | None = None) -> P:
    """A policy that samples like ``policy`` does now, and goes on doing so whatever happens to ``policy``.

    ``device`` is where a whole copy of the weights goes; None shares the frozen ones on the device that they are on.
    """
    memo: dict[int, object] = {}
    for p in policy.model.parameters():
        if device is not None:
            values = p.detach().to(device, copy=True)
        else:
            values = p.detach().clone() if p.requires_grad else p.data
        # a parameter of its own even where the values are shared: folding exchanges the values of one
        memo[id(p)] = nn.Parameter(values, requires_grad=False)
    model = copy.deepcopy(policy.model, memo)
    if device is not None:
        model.to(device)  # the buffers, which are few
    return policy.with_model(model, memo)


def copy_weights(other: Policy, policy: Policy, version: int) -> None:
    """Give the copy of ``policy`` its trained weights, of version ``version``. Neither may be at work meanwhile.

    Raises CheckpointError, with the copy as it was, if it has no place for one of them.
    """
    theirs = other.model.state_dict(keep_vars=True)
    trained = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
    missing = [name for name, p in trained.items() if name not in theirs or theirs[name].shape != p.shape]
    if missing:
        matched = len(trained) - len(missing)
        raise CheckpointError(
            f"the copy that samples does not fit: matched {matched} of {len(trained)} trained weights",
            where=f"{policy.name}, {missing[0]}",
        )
    with torch.no_grad():
        for name, p in trained.items():
            theirs[name].copy_(p)
    other.updated(version)
    # what was encoded beside which picture must not depend on when a run was resumed
    other.forget_pictures()
