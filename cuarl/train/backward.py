"""The gradient of an update's loss, micro-batch by micro-batch: one after the other, or each in a lane of its own.

In lanes (``policy.lanes``) a small model's passes run beside each other on a CPU, each in one thread. Every one has a
gradient of its own, and these are added in the order of the micro-batches, whatever is over first: what they come to
depends on the rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from accelerate import Accelerator
from torch import nn

from cuarl.policy.base import Policy
from cuarl.policy.lanes import lanes, run_alone
from cuarl.train.batch import lane_batches
from cuarl.train.config import LearnerConfig
from cuarl.train.objective import MicroBatch, Objective, Pictures
from cuarl.train.rows import TokenRow

_MOST_IN_LANES = 1 << 23
"""Trained values beyond which gradients of several micro-batches are not held beside each other."""


class Computed(NamedTuple):
    """A micro-batch whose gradient has been added."""

    rows: Sequence[TokenRow]
    part: MicroBatch


class Backward:
    """Adds gradients to the ``trained`` weights."""

    def __init__(
        self,
        policy: Policy,
        objective: Objective,
        accelerator: Accelerator,
        config: LearnerConfig,
        trained: Sequence[nn.Parameter],
        take: Callable[[], None],
    ) -> None:
        """``take`` is called whenever a gradient has been added, before the next is."""
        self._policy, self._objective, self._accelerator, self._config = policy, objective, accelerator, config
        self._trained, self._take = trained, take
        self._few = not config.sharded and sum(p.numel() for p in trained) <= _MOST_IN_LANES

    def run(
        self, batches: Sequence[list[TokenRow]], pictures: Pictures, given_up: Callable[[], bool]
    ) -> Iterator[Computed]:
        """Those of ``batches``, or other ones of the same rows; no more once ``given_up`` says so before one."""
        rows = [row for batch in batches for row in batch]
        return (
            self._in_lanes(rows, pictures, given_up)
            if self._may(rows, pictures)
            else self._in_turn(batches, pictures, given_up)
        )

    def _in_turn(
        self, batches: Sequence[list[TokenRow]], pictures: Pictures, given_up: Callable[[], bool]
    ) -> Iterator[Computed]:
        for rows in batches:
            if given_up():
                return
            part = self._objective.loss(rows, pictures)
            self._accelerator.backward(part.loss.total)
            self._take()
            yield Computed(rows, part)

    def _may(self, rows: Sequence[TokenRow], pictures: Pictures) -> bool:
        """Whether lanes are of use for ``rows``."""
        if not self._few or not self._objective.scorer.unpadded or lanes() is None:
            return False
        shown = {d for row in rows for d in row.images if d in pictures}
        return self._policy.in_lanes(pictures[d] for d in sorted(shown))

    def _in_lanes(
        self, rows: Sequence[TokenRow], pictures: Pictures, given_up: Callable[[], bool]
    ) -> Iterator[Computed]:
        def computed(share: list[TokenRow]) -> tuple[MicroBatch, tuple[torch.Tensor | None, ...]] | None:
            if given_up():
                return None
            part = self._objective.loss(share, pictures)
            return part, torch.autograd.grad(part.loss.total, self._trained, allow_unused=True)

        shares = lane_batches(rows, self._config.batch.max_tokens, pack=self._config.batch.pack)
        for share, found in zip(shares, run_alone([partial(computed, share) for share in shares]), strict=True):
            if found is None:
                return
            part, gradients = found
            for p, gradient in zip(self._trained, gradients, strict=True):
                if gradient is not None:
                    p.grad = gradient if p.grad is None else p.grad.add_(gradient)
            self._take()
            yield Computed(share, part)
