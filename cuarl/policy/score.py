"""Log-probabilities of given answers: the forward pass of training, and the proof of what was sampled.

Sampling and scoring share one definition of the distribution (``distribution``): placeholders suppressed, logits
divided by the temperature, then the softmax in float32. Logits exist for answer positions only, never for prompts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from cuarl.policy.distribution import log_softmax
from cuarl.policy.generic.policy import PlainPolicy
from cuarl.policy.inputs import ModelInputs
from cuarl.policy.qwen_vl import unpadded
from cuarl.policy.qwen_vl.decoder import Continuation, PromptCache, causal_mask, continuation_mask
from cuarl.policy.qwen_vl.policy import PolicyModel

_LOGITS_AT_ONCE = 1 << 26
"""Logits held at a time (float32, so 256 MB); more are recomputed piece by piece in the backward pass."""


def runs_unpadded(policy: PolicyModel) -> bool:
    """Whether a policy is scored without padding."""
    return policy.device.type == "cuda" and not isinstance(policy, PlainPolicy) and unpadded.fits(policy)


class Scores(NamedTuple):
    """Per answer token, (B, T) float32; 0 where ``ModelInputs.answer_mask`` is False."""

    logprobs: torch.Tensor
    entropy: torch.Tensor
    hidden: torch.Tensor | None = None
    """(N, D) of the N real answer tokens, row by row: the states that they were drawn from; only if asked for."""


class _States(NamedTuple):
    """Hidden states from which answers behind prompts (S, U, D), and those inside prompts (P, W, D), were drawn."""

    answers: torch.Tensor
    inside: torch.Tensor


class Scorer(nn.Module):
    """Scores answers under a policy; its parameters are the policy's, so it can be wrapped for distributed training.

    ``one_pass`` runs the layers exactly once for any batch, so that processes which hold shards of each other's layers meet
    in every layer; else prompts that several rows share are run first, and answers behind them. On an accelerator the rows
    of a batch run without padding (``unpadded``); where gradient checkpointing is on, ``keep_bytes`` of activations are kept
    all the same.
    """

    def __init__(self, policy: PolicyModel, *, one_pass: bool = False, keep_bytes: int = 0) -> None:
        super().__init__()
        self.model = policy.model
        self._policy, self._one_pass, self._keep_bytes = policy, one_pass, keep_bytes
        self.unpadded = runs_unpadded(policy) and not one_pass

    def forward(
        self, inputs: ModelInputs, temperature: float | torch.Tensor = 1.0, *, with_hidden: bool = False
    ) -> Scores:
        """Natural-log probabilities of ``inputs.answer_ids``, and the entropy in nats at each of their positions.

        ``temperature`` is one number, or (B,) numbers; 0 stands for 1, as in the samples drawn greedily. Raises ValueError
        if there is no answer to score.
        """
        if not inputs.answer_ids.shape[1]:
            raise ValueError("there is no answer to score")
        device, targets = inputs.answer_ids.device, inputs.answer_ids[inputs.answer_mask]
        scale = torch.as_tensor(temperature, dtype=torch.float32, device=device).expand(len(inputs.prompt_of))
        scale = torch.where(scale == 0, 1.0, scale)[:, None].expand_as(inputs.answer_ids)[inputs.answer_mask]
        if isinstance(self._policy, PlainPolicy):
            answers = self._policy.answers(inputs)
            hidden = answers.hidden
            logprobs, entropy = self._of_logits(answers.logits, targets, scale)
        else:
            hidden = self._answer_hidden(inputs)
            logprobs, entropy = self._score(hidden, targets, scale)
        empty = torch.zeros(inputs.answer_ids.shape, dtype=torch.float32, device=hidden.device)
        where = inputs.answer_mask
        scored = Scores(empty.masked_scatter(where, logprobs), empty.masked_scatter(where, entropy))
        return scored._replace(hidden=hidden) if with_hidden else scored

    def _answer_hidden(self, inputs: ModelInputs) -> torch.Tensor:
        """(N, D): the hidden state from which each real answer token was drawn, row by row."""
        if self.unpadded and not torch.is_autocast_enabled(inputs.prompt_ids.device.type):
            keep = self._keep_bytes if self._checkpointing() else None
            return unpadded.answer_hidden(self._policy, inputs, keep_bytes=keep)
        hidden, deep = self._policy.embed_prompts(inputs)
        behind, packed = inputs.behind, inputs.packed
        shared = len(inputs.prompt_ids) < len(behind.prompt_of) and not (self._one_pass or self._checkpointing())
        states = (self._shared if shared else self._joined)(behind, hidden, deep, packed.inside if packed else None)
        return states.answers[inputs.answer_mask] if packed is None else packed.gather(*states)

    def _checkpointing(self) -> bool:
        """Gradient checkpointing replays layers, which a cache written on the way does not survive."""
        return self.training and bool(self._policy.decoder.model.layers[0].gradient_checkpointing)

    def _shared(
        self, inputs: ModelInputs, hidden: torch.Tensor, deep: torch.Tensor | None, inside: torch.Tensor | None
    ) -> _States:
        """Encode each distinct prompt once, then all answers behind them."""
        decoder, cache = self._policy.decoder, PromptCache()
        index = inputs.vision.index if inputs.vision else None
        mask = causal_mask(inputs.prompt_mask) if inputs.padded else None
        last = inputs.last[:, None]
        prompts = decoder.run(
            hidden, inputs.prompt_positions, mask, cache, image_index=index, deep=deep,
            wanted=last if inside is None else torch.cat([last, inside], dim=1),
        )  # fmt: skip
        first, within = prompts[:, :1].index_select(0, inputs.prompt_of), prompts[:, 1:]
        tokens = inputs.answer_ids.shape[1] - 1
        if tokens < 1:
            return _States(first, within)
        rest = decoder.run(
            decoder.embed(inputs.answer_ids[:, :-1]), inputs.answer_positions[:, :, :-1],
            continuation_mask(inputs.prompt_mask[inputs.prompt_of], tokens), Continuation(cache, inputs.prompt_of),
        )  # fmt: skip
        return _States(torch.cat([first, rest], dim=1), within)

    def _joined(
        self, inputs: ModelInputs, hidden: torch.Tensor, deep: torch.Tensor | None, inside: torch.Tensor | None
    ) -> _States:
        """One pass over prompts and answers together."""
        decoder, of = self._policy.decoder, inputs.prompt_of
        length, tokens = hidden.shape[1], inputs.answer_ids.shape[1]
        index = None
        if inputs.vision is not None and deep is not None:
            index, feature = _repeat_pictures(inputs.vision.index, inputs.prompt_mask.shape, of, tokens - 1)
            deep = deep.index_select(1, feature)
        # padding behind an answer is never looked at, so without any before a prompt plain causality will do
        mask = torch.cat([inputs.prompt_mask[of], inputs.answer_mask[:, :-1]], dim=1) if inputs.padded else None
        steps = torch.arange(tokens, device=hidden.device)
        wanted = torch.where(steps == 0, inputs.last[of, None], length - 1 + steps)
        states = decoder.run(
            torch.cat([hidden.index_select(0, of), decoder.embed(inputs.answer_ids[:, :-1])], dim=1),
            torch.cat([inputs.prompt_positions[:, of], inputs.answer_positions[:, :, :-1]], dim=2),
            None if mask is None else causal_mask(mask), image_index=index, deep=deep,
            wanted=wanted if inside is None else torch.cat([wanted, inside[of]], dim=1),
        )  # fmt: skip
        prompts = torch.arange(len(hidden), device=hidden.device)
        first_row = (of == prompts[:, None]).int().argmax(1)
        return _States(states[:, :tokens], states[first_row, tokens:])

    def _score(
        self, hidden: torch.Tensor, targets: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, D) hidden states and (N,) targets to (N,) log-probabilities and entropies, in bounded memory."""
        vocabulary = self._policy.decoder.model.embed_tokens.num_embeddings
        step = max(1, _LOGITS_AT_ONCE // vocabulary)
        if len(hidden) <= step:
            return self._score_piece(hidden, targets, scale)
        pieces = [
            checkpoint(self._score_piece, h, t, s, use_reentrant=False)
            for h, t, s in zip(hidden.split(step), targets.split(step), scale.split(step), strict=True)
        ]
        return torch.cat([p[0] for p in pieces]), torch.cat([p[1] for p in pieces])

    def _score_piece(
        self, hidden: torch.Tensor, targets: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._of_logits(self._policy.decoder.logits(hidden), targets, scale)

    def _of_logits(
        self, logits: torch.Tensor, targets: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logp = log_softmax(logits, scale[:, None], self._policy.suppressed())
        return logp.gather(1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(1)


def _repeat_pictures(
    index: torch.Tensor, shape: torch.Size, prompt_of: torch.Tensor, behind: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Image tokens of repeated prompts.

    ``index`` (N,) places the image tokens in flattened prompts of ``shape`` (P, L). Returns, for rows of L + ``behind``
    tokens that repeat them as ``prompt_of`` says, the flattened places and which of the N features belongs to each.
    """
    feature = torch.full(shape, -1, dtype=torch.long, device=index.device)
    feature.view(-1)[index] = torch.arange(len(index), device=index.device)
    rows = nn.functional.pad(feature[prompt_of], (0, behind), value=-1).flatten()
    places = (rows >= 0).nonzero()[:, 0]
    return places, rows[places]
