"""The policy as it was when training began, for a KL penalty that is taken to it rather than to the base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from cuarl.policy.base import Policy


class StartWeights:
    """Copies of what is trained of a policy: an adapter's weights, or all of them."""

    def __init__(self, policy: Policy) -> None:
        named = policy.model.named_parameters()
        self._weights = {name: p.detach().clone() for name, p in named if p.requires_grad}

    @contextmanager
    def put_into(self, policy: Policy) -> Iterator[None]:
        """Inside, ``policy``, whose weights must be whole, has these; its own are back after it, an error included."""
        named = dict(policy.model.named_parameters())
        own = {name: named[name].data for name in self._weights}
        try:
            for name, weight in self._weights.items():
                named[name].data = weight
            yield
        finally:
            for name, weight in own.items():
                named[name].data = weight

    def state(self) -> dict[str, torch.Tensor]:
        """All of it, for a checkpoint: the policy that training began with need not be there any more on resume."""
        return self._weights

    def restore(self, state: Mapping[str, torch.Tensor]) -> None:
        """Take ``state()`` back. Raises KeyError if a weight is missing."""
        self._weights = {name: state[name].to(weight.device, weight.dtype) for name, weight in self._weights.items()}
