"""The learning rate of each training step: a pure function, so that nothing about it has to be saved or restored."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

from cuarl.types import Record

Schedule = Literal["constant", "linear", "cosine"]


class OptimConfig(Record):
    """AdamW (arXiv:1711.05101) and its learning rate."""

    learning_rate: PositiveFloat = 2e-4
    """Peak rate."""
    lr_schedule: Schedule = "constant"
    """After the warm-up: stay, or fall to zero at the end of the run, along a line or half a cosine."""
    warmup_steps: NonNegativeInt = 0
    """Training steps over which the rate rises from zero."""
    max_grad_norm: PositiveFloat = 1.0
    """The whole gradient of an update is scaled down to this norm."""
    weight_decay: NonNegativeFloat = 0.0
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    adam_eps: PositiveFloat = 1e-8


def learning_rate(config: OptimConfig, step: int, max_steps: int) -> float:
    """Rate of training step ``step`` of 1 … ``max_steps``; never zero within the run."""
    peak = config.learning_rate
    if step <= config.warmup_steps:
        return peak * step / config.warmup_steps
    if config.lr_schedule == "constant":
        return peak
    done = (step - 1 - config.warmup_steps) / max(1, max_steps - config.warmup_steps)
    done = min(done, 1.0)
    return peak * (1 - done if config.lr_schedule == "linear" else (1 + math.cos(math.pi * done)) / 2)
