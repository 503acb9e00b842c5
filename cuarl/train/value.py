"""The critic of PPO: a head on the policy's hidden state, its advantages and its loss.

The hidden state from which a token is drawn is the state that the token acts in, so the critic is a small network on
it: no second model, and one forward pass for both. Generalised advantage estimation (arXiv:1506.02438, eq. 16)::

    δ_k = r_k + discount V_k+1 − V_k,    A_k = sum over l of (discount λ)^l δ_k+l,    R_k = A_k + V_k

with V = 0 behind the end of the episode, where its reward falls due. At turn level k counts turns, V_k is the value
before a turn's first token, and all its tokens share A_k. At token level k counts the sampled tokens of the whole
episode; the discount then holds between turns only, so that a long answer does not make a success worth less.

The loss with clipping (the value's range of PPO's reference implementation; arXiv:2005.12729, section 2)::

    ½ max((V − R)², (clip(V, V_old − c, V_old + c) − R)²)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat
from torch import nn

from cuarl.types import Record


class CriticConfig(Record):
    """What the critic values and how it learns."""

    level: Literal["turn", "token"] = "turn"
    trace_lambda: float = Field(default=0.95, ge=0, le=1)
    discount: float = Field(default=1.0, gt=0, le=1)
    clip: NonNegativeFloat = 0.2
    """How far an update may move a value; 0: no bound."""
    trunk: Literal["detached", "shared"] = "detached"
    """Whether the critic's gradient stops at its head."""
    coef: PositiveFloat = 0.5
    """Weight of its loss in the layers of the policy, where these are shared."""
    learning_rate: PositiveFloat = 1e-3
    warmup_steps: NonNegativeInt = 0
    """First training steps in which only the critic learns."""
    seed: NonNegativeInt = 0


class ValueHead(nn.Module):
    """Two layers on a hidden state; its last one starts at zero, so every value is 0 at first."""

    def __init__(self, width: int, config: CriticConfig) -> None:
        super().__init__()
        self.detached = config.trunk == "detached"
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.hidden = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        generator = torch.Generator().manual_seed(config.seed)
        with torch.no_grad():
            self.hidden.weight.normal_(0.0, width**-0.5, generator=generator)
            self.hidden.bias.zero_()
            self.out.weight.zero_()
            self.out.bias.zero_()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """(N, D) hidden states to (N,) float32 values."""
        hidden = hidden.float()
        if self.detached:
            hidden = hidden.detach()
        return self.out(nn.functional.gelu(self.hidden(self.norm(hidden))))[:, 0]


def gae(
    rewards: Sequence[float], values: Sequence[float], discounts: Sequence[float], trace_lambda: float
) -> tuple[list[float], list[float]]:
    """Advantages and returns of one episode; ``discounts[k]`` is that between k and k + 1."""
    trace, following = 0.0, 0.0
    advantages: list[float] = []
    for reward, value, discount in zip(reversed(rewards), reversed(values), reversed(discounts), strict=True):
        trace = reward + discount * following - value + discount * trace_lambda * trace
        advantages.append(trace)
        following = value
    advantages.reverse()
    return advantages, [a + v for a, v in zip(advantages, values, strict=True)]


class ValueLoss(NamedTuple):
    """The critic's loss with what is reported about it."""

    total: torch.Tensor
    """() float32 with gradient: the weighted sum over the values given."""
    sums: dict[str, torch.Tensor]
    """() float32 each, without gradient, to be added up and divided by ``values``."""


def value_loss(
    values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, weights: torch.Tensor, clip: float
) -> ValueLoss:
    """The loss of the module docstring; all tensors are (N,) float32."""
    error = (values - returns) ** 2
    clipped = torch.zeros_like(error, dtype=torch.bool)
    if clip > 0:
        near = (old + (values - old).clamp(-clip, clip) - returns) ** 2
        clipped = near > error
        error = torch.maximum(error, near)
    total = 0.5 * (weights * error).sum()
    sums = {
        "values": torch.ones_like(values).sum(),
        "value_loss": total,
        "value_clipped": clipped.sum(),
        "value": old.sum(),
        "return": returns.sum(),
        "return_squared": (returns**2).sum(),
        "residual": (returns - old).sum(),
        "residual_squared": ((returns - old) ** 2).sum(),
    }
    return ValueLoss(total, {name: v.detach().float() for name, v in sums.items()})
