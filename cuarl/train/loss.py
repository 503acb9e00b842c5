"""Losses over trained tokens. Pure: tensors in, tensors out, no model and no state.

All functions take flat vectors with one entry for each *trained* token, ``(N,) float32``: prompt, image and padding
positions never reach this module, so there is no mask that could be wrong here and nothing to divide by.

Clipped surrogate (PPO, arXiv:1707.06347, eq. 7; GRPO, arXiv:2402.03300, eq. 3; two-sided range as in DAPO,
arXiv:2503.14476, eq. 10), to be minimised::

    ratio_t = exp(log pi(a_t) − log mu(a_t))                      mu: the distribution that was sampled from
    l_t = −min(ratio_t A_t, clip(ratio_t, 1 − clip_low, 1 + clip_high) A_t)

The loss of an update is ``sum_t w_t l_t``. The weights carry the reduction (``batch.token_weights``) and are known for
the whole update before the first backward pass, so the sum may be split over micro-batches and processes at will.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat

from cuarl.types import Record


class LossConfig(Record):
    """How sampled tokens turn into a policy gradient."""

    clip_low: float = Field(default=0.2, ge=0, le=1)
    """The ratio is clipped from below at 1 − clip_low."""
    clip_high: PositiveFloat = 0.2
    """The ratio is clipped from above at 1 + clip_high."""
    kl_penalty_coef: NonNegativeFloat = 0.0
    """Weight of the k3 estimate of KL(policy ‖ base); 0 turns the reference pass off."""
    entropy_coef: NonNegativeFloat = 0.0
    """Weight of the entropy bonus."""
    log_ratio_limit: float = Field(default=20.0, gt=0, le=60)
    """Log ratios are clamped to ± this before ``exp``, so that one strange token cannot make the loss infinite."""

    @property
    def uses_flat_groups(self) -> bool:
        """Whether tokens with advantage 0 have a gradient all the same."""
        return self.kl_penalty_coef > 0 or self.entropy_coef > 0


class Tokens(NamedTuple):
    """What a policy update needs to know of each trained token; every field is ``(N,) float32``."""

    behaviour: torch.Tensor
    """Log-probability under the distribution that the token was drawn from."""
    advantages: torch.Tensor
    weights: torch.Tensor


class Surrogate(NamedTuple):
    """The clipped surrogate of each token; every field is ``(N,)``."""

    loss: torch.Tensor
    """float32, to be minimised."""
    log_ratio: torch.Tensor
    """float32, as it was before clamping."""
    ratio: torch.Tensor
    """float32, finite."""
    clipped_low: torch.Tensor
    """bool: the lower bound took the gradient away (A < 0)."""
    clipped_high: torch.Tensor
    """bool: the upper bound took the gradient away (A > 0)."""
    clamped: torch.Tensor
    """bool: the log ratio was beyond the limit."""


def surrogate(
    logprobs: torch.Tensor, behaviour: torch.Tensor, advantages: torch.Tensor, config: LossConfig
) -> Surrogate:
    """Compute ``l_t`` of the module docstring for each token."""
    log_ratio = logprobs - behaviour
    ratio = log_ratio.clamp(-config.log_ratio_limit, config.log_ratio_limit).exp()
    low, high = 1 - config.clip_low, 1 + config.clip_high
    loss = -torch.minimum(ratio * advantages, ratio.clamp(low, high) * advantages)
    return Surrogate(
        loss=loss,
        log_ratio=log_ratio,
        ratio=ratio,
        clipped_low=(ratio < low) & (advantages < 0),
        clipped_high=(ratio > high) & (advantages > 0),
        clamped=log_ratio.abs() > config.log_ratio_limit,
    )


def kl_k1(log_ratio: torch.Tensor) -> torch.Tensor:
    """Per-token estimate of KL(q ‖ p) from tokens drawn from q, with ``log_ratio = log p − log q``.

    Unbiased, may be negative, high variance (http://joschu.net/blog/kl-approx.html).
    """
    return -log_ratio


def kl_k3(log_ratio: torch.Tensor, limit: float = 20.0) -> torch.Tensor:
    """Like ``kl_k1``: unbiased too, never negative, lower variance. Clamped like the ratio."""
    clamped = log_ratio.clamp(-limit, limit)
    return torch.expm1(clamped) - clamped


class Loss(NamedTuple):
    """A loss with what is reported about it."""

    total: torch.Tensor
    """() float32 with gradient: the weighted sum over the tokens given."""
    sums: dict[str, torch.Tensor]
    """() float32 each, without gradient: plain sums over the tokens given, to be added up and divided by ``tokens``."""


def policy_loss(
    logprobs: torch.Tensor,
    tokens: Tokens,
    config: LossConfig,
    *,
    entropy: torch.Tensor,
    reference: torch.Tensor | None = None,
) -> Loss:
    """Policy-gradient loss, with the KL penalty and the entropy bonus where the configuration has them.

    Args:
        logprobs: (N,) under the policy that is trained, at the sampling temperature.
        tokens: what is known of each token.
        config: clip range and coefficients.
        entropy: (N,) of the policy's distribution at each token.
        reference: (N,) logprobs under the base model; required if ``kl_penalty_coef`` is not 0.
    """
    s = surrogate(logprobs, tokens.behaviour, tokens.advantages, config)
    per_token = s.loss
    sums = {
        "tokens": torch.ones_like(logprobs).sum(),
        "ratio": s.ratio.sum(),
        "clip_low": s.clipped_low.sum(),
        "clip_high": s.clipped_high.sum(),
        "clamped": s.clamped.sum(),
        "kl_k1": kl_k1(s.log_ratio).sum(),
        "kl_k3": kl_k3(s.log_ratio, config.log_ratio_limit).sum(),
        "abs_log_ratio": s.log_ratio.abs().sum(),
        "entropy": entropy.sum(),
    }
    if config.entropy_coef:
        per_token = per_token - config.entropy_coef * entropy
    if config.kl_penalty_coef:
        if reference is None:
            raise ValueError("a KL penalty needs the reference logprobs")
        kl = kl_k3(reference - logprobs, config.log_ratio_limit)
        per_token = per_token + config.kl_penalty_coef * kl
        sums["kl_ref"] = kl.sum()
    total = (tokens.weights * per_token).sum()
    sums["loss"] = total
    return Loss(total, {name: value.detach().float() for name, value in sums.items()})


def cross_entropy(logprobs: torch.Tensor, weights: torch.Tensor, *, entropy: torch.Tensor) -> Loss:
    """Supervised loss ``−sum_t w_t log pi(a_t)``; ``logprobs``, ``weights`` and ``entropy`` are (N,)."""
    total = -(weights * logprobs).sum()
    sums = {
        "tokens": torch.ones_like(logprobs).sum(),
        "nll": -logprobs.sum(),
        "entropy": entropy.sum(),
        "loss": total,
    }
    return Loss(total, {name: value.detach().float() for name, value in sums.items()})
