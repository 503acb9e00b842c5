"""Losses over trained tokens. Pure: tensors in, tensors out, no model and no state.

All functions take flat vectors with one entry for each *trained* token, ``(N,) float32``: prompt, image and padding
positions never reach this module, so there is no mask that could be wrong here and nothing to divide by.

Clipped surrogate (PPO, arXiv:1707.06347, eq. 7; GRPO, arXiv:2402.03300, eq. 3; two-sided range as in DAPO,
arXiv:2503.14476, eq. 10), to be minimised::

    ratio_t = exp(log pi(a_t) − log mu(a_t))                      mu: the distribution that was sampled from
    l_t = −min(ratio_t A_t, clip(ratio_t, 1 − clip_low, 1 + clip_high) A_t)

One ratio for each answer (GSPO, arXiv:2507.18071, eq. 7): ``log ratio`` is the mean of the tokens' over the answer. An
answer is what one model call sampled, that is one turn.

Clipped weights (CISPO, arXiv:2506.13585): no token loses its gradient::

    l_t = −sg(clip(ratio_t, 1 − clip_low, 1 + clip_high)) A_t log pi(a_t)            sg: stop the gradient

Decoupled (arXiv:2110.00641; for language models AReaL, arXiv:2505.24298): ratios are taken to a proximal policy,
the one at the start of the step, and each token is weighed by what that policy is to the sampler, at most
``importance_cap`` (truncated importance sampling)::

    l_t ← sg(min(exp(log prox(a_t) − log mu(a_t)), cap)) l_t

The loss of an update is ``sum_t w_t l_t``. The weights carry the reduction (``batch.token_weights``) and are known for
the whole update before the first backward pass, so the sum may be split over micro-batches and processes at will, as
long as the tokens of an answer stay together.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat

from cuarl.types import Record

Estimator = Literal["k1", "k2", "k3"]


class LossConfig(Record):
    """How sampled tokens turn into a policy gradient."""

    clip_low: float = Field(default=0.2, ge=0, le=1)
    """The ratio is clipped from below at 1 − clip_low."""
    clip_high: PositiveFloat = 0.2
    """The ratio is clipped from above at 1 + clip_high."""
    surrogate: Literal["clip", "weights"] = "clip"
    """Clip the objective (PPO), or only the weights of a plain policy gradient (CISPO)."""
    ratio: Literal["token", "answer"] = "token"
    """One ratio for each token, or one for each answer (GSPO)."""
    decoupled: bool = False
    """Take ratios to the policy at the start of the step, and weigh by its ratio to the sampler."""
    importance_cap: PositiveFloat | None = None
    """Upper bound of that weight; None: only the numeric limit."""
    kl_penalty_coef: NonNegativeFloat = 0.0
    """Weight of KL(policy ‖ reference); 0 turns the reference pass off."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Whether the divergence is a term of the loss, or has gone into the advantages already."""
    kl_estimator: Estimator = "k3"
    entropy_coef: NonNegativeFloat = 0.0
    """Weight of the entropy bonus."""
    log_ratio_limit: float = Field(default=20.0, gt=0, le=60)
    """Log ratios are clamped to ± this before ``exp``, so that one strange token cannot make the loss infinite."""

    @property
    def uses_flat_groups(self) -> bool:
        """Whether tokens with advantage 0 have a gradient all the same."""
        return (self.kl_penalty_coef > 0 and self.kl_in == "loss") or self.entropy_coef > 0


class Tokens(NamedTuple):
    """What a policy update needs to know of each trained token; every field is ``(N,) float32``."""

    behaviour: torch.Tensor
    """Log-probability under the distribution that the token was drawn from."""
    advantages: torch.Tensor
    weights: torch.Tensor
    turns: torch.Tensor | None = None
    """int64: 0, 1, … for the answer that each token belongs to; needed for one ratio an answer."""
    proximal: torch.Tensor | None = None
    """Log-probability under the policy at the start of the step; needed where the loss is decoupled."""


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
    logprobs: torch.Tensor,
    behaviour: torch.Tensor,
    advantages: torch.Tensor,
    config: LossConfig,
    turns: torch.Tensor | None = None,
) -> Surrogate:
    """Compute ``l_t`` of the module docstring for each token; ``behaviour`` is what ratios are taken to.

    Raises ValueError if one ratio an answer is asked for without ``turns``.
    """
    log_ratio = logprobs - behaviour
    ratio = _level(log_ratio, config, turns).clamp(-config.log_ratio_limit, config.log_ratio_limit).exp()
    low, high = 1 - config.clip_low, 1 + config.clip_high
    if config.surrogate == "weights":
        # a clipped ratio keeps its gradient here, since it goes through log pi alone
        loss = -ratio.clamp(low, high).detach() * advantages * logprobs
        below, above = ratio < low, ratio > high
    else:
        loss = -torch.minimum(ratio * advantages, ratio.clamp(low, high) * advantages)
        below, above = (ratio < low) & (advantages < 0), (ratio > high) & (advantages > 0)
    return Surrogate(
        loss=loss,
        log_ratio=log_ratio,
        ratio=ratio,
        clipped_low=below,
        clipped_high=above,
        clamped=log_ratio.abs() > config.log_ratio_limit,
    )


def _level(log_ratio: torch.Tensor, config: LossConfig, turns: torch.Tensor | None) -> torch.Tensor:
    """The log ratio of each token, or of its whole answer: the mean over the answer's tokens."""
    if config.ratio == "token" or not len(log_ratio):
        return log_ratio
    if turns is None:
        raise ValueError("one ratio an answer needs to know which tokens form one")
    # answers are numbered as they stand, so the last token's is the highest
    answers = int(turns[-1]) + 1
    sums = log_ratio.new_zeros(answers).index_add(0, turns, log_ratio)
    counts = log_ratio.new_zeros(answers).index_add(0, turns, torch.ones_like(log_ratio))
    return (sums / counts)[turns]


def importance_weights(
    proximal: torch.Tensor, behaviour: torch.Tensor, config: LossConfig, turns: torch.Tensor | None = None
) -> torch.Tensor:
    """(N,) without gradient: what the proximal policy is to the one that sampled, at most ``importance_cap``."""
    log_ratio = _level(proximal - behaviour, config, turns)
    weight = log_ratio.clamp(-config.log_ratio_limit, config.log_ratio_limit).exp()
    return weight.clamp(max=config.importance_cap).detach() if config.importance_cap else weight.detach()


def kl_k1(log_ratio: torch.Tensor) -> torch.Tensor:
    """Per-token estimate of KL(q ‖ p) from tokens drawn from q, with ``log_ratio = log p − log q``.

    Unbiased, may be negative, high variance (http://joschu.net/blog/kl-approx.html).
    """
    return -log_ratio


def kl_k3(log_ratio: torch.Tensor, limit: float = 20.0) -> torch.Tensor:
    """Like ``kl_k1``: unbiased too, never negative, lower variance. Clamped like the ratio."""
    clamped = log_ratio.clamp(-limit, limit)
    return torch.expm1(clamped) - clamped


def kl_k2(log_ratio: torch.Tensor) -> torch.Tensor:
    """Half the squared log ratio: biased, never negative; its gradient is that of the divergence."""
    return 0.5 * log_ratio**2


def kl_estimate(estimator: Estimator, log_ratio: torch.Tensor, limit: float = 20.0) -> torch.Tensor:
    """The chosen estimate of KL(q ‖ p) from tokens drawn from q, with ``log_ratio = log p − log q``."""
    if estimator == "k1":
        return kl_k1(log_ratio)
    return kl_k2(log_ratio) if estimator == "k2" else kl_k3(log_ratio, limit)


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
        config: kind of loss, clip range and coefficients.
        entropy: (N,) of the policy's distribution at each token.
        reference: (N,) logprobs under the reference; required if ``kl_penalty_coef`` is not 0.

    Raises ValueError if something is missing that the configuration needs.
    """
    old = tokens.behaviour
    if config.decoupled:
        if tokens.proximal is None:
            raise ValueError("a decoupled loss needs the logprobs of the proximal policy")
        old = tokens.proximal
    # decoupled, clipping bounds what this step does to the policy, not what it is to one that sampled long ago
    s = surrogate(logprobs, old, tokens.advantages, config, tokens.turns)
    per_token = s.loss
    sampler_ratio = logprobs - tokens.behaviour
    sums = {
        "tokens": torch.ones_like(logprobs).sum(),
        "ratio": s.ratio.sum(),
        "clip_low": s.clipped_low.sum(),
        "clip_high": s.clipped_high.sum(),
        "clamped": s.clamped.sum(),
        "kl_k1": kl_k1(sampler_ratio).sum(),
        "kl_k3": kl_k3(sampler_ratio, config.log_ratio_limit).sum(),
        "abs_log_ratio": sampler_ratio.abs().sum(),
        "entropy": entropy.sum(),
    }
    if config.decoupled and tokens.proximal is not None:
        weight = importance_weights(tokens.proximal, tokens.behaviour, config, tokens.turns)
        per_token = weight * per_token
        sums["importance"] = weight.sum()
    if config.entropy_coef:
        per_token = per_token - config.entropy_coef * entropy
    if config.kl_penalty_coef:
        if reference is None:
            raise ValueError("a KL penalty needs the reference logprobs")
        if config.kl_in == "loss":
            kl = kl_estimate(config.kl_estimator, reference - logprobs, config.log_ratio_limit)
            per_token = per_token + config.kl_penalty_coef * kl
        # reported by one estimate whichever is trained with, so that runs can be compared
        sums["kl_ref"] = kl_k3(reference - logprobs, config.log_ratio_limit).sum()
    total = (tokens.weights * per_token).sum()
    sums["loss"] = total
    return Loss(total, {name: value.detach().float() for name, value in sums.items()})


def beside(loss: Loss, logprobs: torch.Tensor, weights: torch.Tensor) -> Loss:
    """``loss`` and ``−sum_t w_t log pi(a_t)`` of imitated tokens; ``logprobs`` and ``weights`` are (N,)."""
    sums = {"imitated": torch.ones_like(logprobs).sum(), "imitated_nll": -logprobs.sum()}
    total = loss.total - (weights * logprobs).sum()
    return Loss(total, loss.sums | {name: value.detach().float() for name, value in sums.items()})


def cross_entropy(
    logprobs: torch.Tensor, weights: torch.Tensor, *, entropy: torch.Tensor, rehearsed: torch.Tensor | None = None
) -> Loss:
    """Supervised loss ``−sum_t w_t log pi(a_t)``; ``logprobs``, ``weights`` and ``entropy`` are (N,).

    ``rehearsed`` (N,) is 1 at tokens that are reported apart from those of demonstrations, else 0; None: there are
    none.
    """
    total = -(weights * logprobs).sum()
    apart = torch.zeros_like(logprobs) if rehearsed is None else rehearsed
    sums = {
        "tokens": torch.ones_like(logprobs).sum(),
        "nll": -((1 - apart) * logprobs).sum(),
        "rehearsed": apart.sum(),
        "rehearsed_nll": -(apart * logprobs).sum(),
        "entropy": entropy.sum(),
        "loss": total,
    }
    return Loss(total, {name: value.detach().float() for name, value in sums.items()})
