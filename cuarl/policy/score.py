"""Log-probabilities of given answers: the forward pass of training, and the proof of what was sampled.

Sampling and scoring share one definition of the distribution (``distribution``): placeholders suppressed, logits
divided by the temperature, then the softmax in float32. Logits exist for answer positions only, never for prompts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from cuarl.policy.base import Policy, ScoreOptions
from cuarl.policy.distribution import log_softmax
from cuarl.policy.inputs import Inputs


class Scores(NamedTuple):
    """Per answer token, (B, T) float32; 0 where ``Inputs.answer_mask`` is False."""

    logprobs: torch.Tensor
    entropy: torch.Tensor
    hidden: torch.Tensor | None = None
    """(N, D) of the N real answer tokens, row by row: the states that they were drawn from; only if asked for."""


class Scorer(nn.Module):
    """Scores answers under a policy; its parameters are the policy's, so it can be wrapped for distributed training.

    ``one_pass`` and ``keep_bytes`` are those of ``ScoreOptions``. Rows run without padding where the policy can do it.
    """

    def __init__(self, policy: Policy, *, one_pass: bool = False, keep_bytes: int = 0) -> None:
        super().__init__()
        self.model = policy.model
        self._policy, self._one_pass, self._keep_bytes = policy, one_pass, keep_bytes
        # decided once: what a policy can do is no longer to be seen when its layers are in shards
        self.unpadded = policy.unpadded and not one_pass

    def forward(self, inputs: Inputs, temperature: float | torch.Tensor = 1.0, *, with_hidden: bool = False) -> Scores:
        """Natural-log probabilities of ``inputs.answer_ids``, and the entropy in nats at each of their positions.

        ``temperature`` is one number, or (B,) numbers; 0 stands for 1, as in the samples drawn greedily. Raises
        ValueError if there is no answer to score.
        """
        if not inputs.answer_ids.shape[1]:
            raise ValueError("there is no answer to score")
        mask = inputs.answer_mask
        # a temperature for each real answer token: the policy gives nothing else, so that prompts cost no logits
        scale = torch.as_tensor(temperature, dtype=torch.float32, device=mask.device).expand(len(mask))
        scale = torch.where(scale == 0, 1.0, scale)[:, None].expand_as(mask)[mask]
        options = ScoreOptions(self.training, self._one_pass, self.unpadded, self._keep_bytes)
        found = self._policy.score(inputs, scale, options)
        # zeros elsewhere, so that a sum over a row is a sum over its answer
        empty = torch.zeros(mask.shape, dtype=torch.float32, device=found.logprobs.device)
        logprobs, entropy = empty.masked_scatter(mask, found.logprobs), empty.masked_scatter(mask, found.entropy)
        return Scores(logprobs, entropy, found.hidden if with_hidden else None)


def score_logits(
    logits: torch.Tensor, targets: torch.Tensor, temperature: torch.Tensor, suppressed: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(N,) log-probabilities of ``targets`` and entropies, from (N, V) float32 logits and (N,) temperatures."""
    logp = log_softmax(logits, temperature[:, None], suppressed)
    return logp.gather(1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(1)
