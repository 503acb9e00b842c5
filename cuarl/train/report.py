"""Adds up what the updates of one training step report, over micro-batches and processes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from accelerate.utils import gather_object

from cuarl.policy.inputs import Inputs
from cuarl.train.loss import Loss, kl_k1, kl_k3
from cuarl.train.rows import TokenRow

_MEANS = {
    "ratio": "policy/ratio_mean",
    "clip_low": "policy/clip_frac_low",
    "clip_high": "policy/clip_frac_high",
    "clamped": "policy/clamp_frac",
    "kl_k1": "policy/kl_sampler_k1",
    "kl_k3": "policy/kl_sampler",
    "kl_ref": "policy/kl_ref",
    "entropy": "policy/entropy",
    "importance": "policy/importance_mean",
}
"""Sums of the losses, and the metric that each is as a mean over the trained tokens."""

_VALUE_MEANS = {"value": "value/mean", "return": "value/return_mean", "value_clipped": "value/clip_frac"}
"""The same for the critic, as a mean over the values."""


_LEAST_SPREAD = 1e-5
"""Returns that vary less have no variance to explain, but the dust of rounding."""


class StepReport:
    """Collects during one training step; every process has one and calls ``metrics`` at its end."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.skipped_flat = 0
        self.skipped_nonfinite = 0
        self._norms: list[float] = []
        self._sums: dict[str, float] = {}

    def add(self, loss: Loss, rows: Sequence[TokenRow], inputs: Inputs, *, unpadded: bool) -> None:
        """Take in one micro-batch, whose padding was not computed if ``unpadded``."""
        values = dict(zip(loss.sums, torch.stack(list(loss.sums.values())).tolist(), strict=True))
        values["rows"] = len(rows)
        size = inputs.size._replace(padded=inputs.size.real) if unpadded else inputs.size
        values |= {"packed": len(rows) - len(inputs.behind.prompt_of)} | size._asdict()
        if not self._norms and "abs_log_ratio" in values:
            # only before the first update is the policy the one that sampled
            values["first_tokens"], values["first_diff"] = values["tokens"], values["abs_log_ratio"]
        self._sums = _add([self._sums, values])

    def close_update(self, norm: float) -> None:
        """All micro-batches of an update are in; ``norm`` is that of its gradient before clipping."""
        self._norms.append(norm)

    def metrics(self) -> dict[str, float]:
        """The metrics of the step, the same on every process; what has no data is absent."""
        updates = len(self._norms)
        values = {
            "optim/lr": self.learning_rate,
            "optim/updates": float(updates - self.skipped_nonfinite),
            "optim/skipped_flat": float(self.skipped_flat),
            "optim/skipped_nonfinite": float(self.skipped_nonfinite),
        }
        if not updates:
            return values
        sums = _add(gather_object([self._sums]))
        tokens = sums["tokens"]
        if tokens:
            values |= {metric: sums[name] / tokens for name, metric in _MEANS.items() if name in sums}
        if sums.get("imitated"):
            values["imitation/nll"] = sums["imitated_nll"] / sums["imitated"]
        values |= {
            "policy/loss": sums["loss"] / updates,
            "optim/grad_norm": math.fsum(self._norms) / updates,
            "train/rows": sums["rows"],
            "train/tokens": tokens + sums.get("imitated", 0.0),
            "train/packed_frac": sums["packed"] / sums["rows"],
            "train/padding_frac": 1 - sums["real"] / sums["padded"],
        }
        if "nll" in sums:
            values |= _imitation_metrics(sums)
        if sums.get("values"):
            values |= _value_metrics(sums, updates)
        if sums.get("first_tokens"):
            values["policy/logprob_diff_mean"] = sums["first_diff"] / sums["first_tokens"]
        return {name: value for name, value in values.items() if math.isfinite(value)}


def post_kl(rows: Sequence[TokenRow], logprobs: Sequence[Sequence[float]], limit: float) -> dict[str, float]:
    """Estimates of KL(sampler ‖ policy) at the trained tokens, from the policy's ``logprobs`` after the step."""
    now = torch.tensor([p for row in logprobs for p in row], dtype=torch.float64)
    then = torch.tensor([p for row in rows for p in row.logprobs or ()], dtype=torch.float64)
    found = {
        "policy/kl_post_k1": float(kl_k1(now - then).mean()),
        "policy/kl_post": float(kl_k3(now - then, limit).mean()),
    }
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _imitation_metrics(sums: Mapping[str, float]) -> dict[str, float]:
    """What is demonstrated and what is rehearsed, each by itself."""
    tokens, rehearsed = sums["tokens"], sums["rehearsed"]
    found = {"sft/nll": sums["nll"] / (tokens - rehearsed)} if tokens > rehearsed else {}
    if rehearsed:
        found |= {"rehearsal/nll": sums["rehearsed_nll"] / rehearsed, "rehearsal/token_frac": rehearsed / tokens}
    return found


def _value_metrics(sums: Mapping[str, float], updates: int) -> dict[str, float]:
    n = sums["values"]
    found = {metric: sums[name] / n for name, metric in _VALUE_MEANS.items()} | {
        "value/loss": sums["value_loss"] / updates
    }
    spread = sums["return_squared"] / n - (sums["return"] / n) ** 2
    if spread > _LEAST_SPREAD * max(1.0, sums["return_squared"] / n):
        left = sums["residual_squared"] / n - (sums["residual"] / n) ** 2
        found["value/explained_variance"] = 1 - left / spread
    return found


def _add(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sum by name; in the order of the parts, so that every process gets the same bits."""
    total: dict[str, float] = defaultdict(float)
    for part in parts:
        for name, value in part.items():
            total[name] += value
    return dict(total)
