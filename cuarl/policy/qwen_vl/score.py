"""Scoring by the layers of a Qwen-VL model: hidden states of the answer tokens, then the head on these alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from cuarl.policy.base import ScoreOptions, TokenScores
from cuarl.policy.qwen_vl import unpadded
from cuarl.policy.qwen_vl.decoder import Continuation, PromptCache, causal_mask, continuation_mask
from cuarl.policy.qwen_vl.inputs import QwenInputs
from cuarl.policy.score import score_logits

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

_LOGITS_AT_ONCE = 1 << 26
"""Logits held at a time (float32, so 256 MB); more are recomputed piece by piece in the backward pass."""


class _States(NamedTuple):
    """Hidden states from which answers behind prompts (S, U, D), and those inside prompts (P, W, D), were drawn."""

    answers: torch.Tensor
    inside: torch.Tensor


def score(policy: QwenVLPolicy, inputs: QwenInputs, temperature: torch.Tensor, options: ScoreOptions) -> TokenScores:
    """See ``Policy.score``."""
    hidden = _answer_hidden(policy, inputs, options)
    targets = inputs.answer_ids[inputs.answer_mask]
    return TokenScores(*_score_hidden(policy, hidden, targets, temperature), hidden)


def _answer_hidden(policy: QwenVLPolicy, inputs: QwenInputs, options: ScoreOptions) -> torch.Tensor:
    """(N, D): the hidden state from which each real answer token was drawn, row by row."""
    # gradient checkpointing replays layers, which a cache written on the way does not survive
    replayed = options.training and bool(policy.decoder.model.layers[0].gradient_checkpointing)
    # autocast would choose types for itself in the single products that the unpadded path is made of
    if options.unpadded and not torch.is_autocast_enabled(inputs.prompt_ids.device.type):
        return unpadded.answer_hidden(policy, inputs, keep_bytes=options.keep_bytes if replayed else None)
    hidden, deep = policy.embed_prompts(inputs)
    behind, packed = inputs.behind, inputs.packed
    # worth two passes only where rows share a prompt; and shards must meet in every layer exactly once
    shared = len(inputs.prompt_ids) < len(behind.prompt_of) and not (options.one_pass or replayed)
    states = (_shared if shared else _joined)(policy, behind, hidden, deep, packed.inside if packed else None)
    return states.answers[inputs.answer_mask] if packed is None else packed.gather(*states)


def _shared(
    policy: QwenVLPolicy,
    inputs: QwenInputs,
    hidden: torch.Tensor,
    deep: torch.Tensor | None,
    inside: torch.Tensor | None,
) -> _States:
    """Encode each distinct prompt once, then all answers behind them."""
    decoder, cache = policy.decoder, PromptCache()
    index = inputs.vision.index if inputs.vision else None
    mask = causal_mask(inputs.prompt_mask) if inputs.padded else None
    last = inputs.last[:, None]
    prompts = decoder.run(
        hidden,
        inputs.prompt_positions,
        mask,
        cache,
        image_index=index,
        deep=deep,
        wanted=last if inside is None else torch.cat([last, inside], dim=1),
    )
    # the first token of an answer is drawn from the last state of its prompt
    first, within = prompts[:, :1].index_select(0, inputs.prompt_of), prompts[:, 1:]
    tokens = inputs.answer_ids.shape[1] - 1
    if tokens < 1:
        return _States(first, within)
    rest = decoder.run(
        decoder.embed(inputs.answer_ids[:, :-1]),
        inputs.answer_positions[:, :, :-1],
        continuation_mask(inputs.prompt_mask[inputs.prompt_of], tokens),
        Continuation(cache, inputs.prompt_of),
    )
    return _States(torch.cat([first, rest], dim=1), within)


def _joined(
    policy: QwenVLPolicy,
    inputs: QwenInputs,
    hidden: torch.Tensor,
    deep: torch.Tensor | None,
    inside: torch.Tensor | None,
) -> _States:
    """One pass over prompts and answers together."""
    decoder, of = policy.decoder, inputs.prompt_of
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
        None if mask is None else causal_mask(mask),
        image_index=index,
        deep=deep,
        wanted=wanted if inside is None else torch.cat([wanted, inside[of]], dim=1),
    )
    # rows that repeat a prompt computed the answers inside it alike: those of the first row count
    prompts = torch.arange(len(hidden), device=hidden.device)
    first_row = (of == prompts[:, None]).int().argmax(1)
    return _States(states[:, :tokens], states[first_row, tokens:])


def _score_hidden(
    policy: QwenVLPolicy, hidden: torch.Tensor, targets: torch.Tensor, temperature: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(N, D) hidden states and (N,) targets to (N,) log-probabilities and entropies, in bounded memory."""

    def piece(h: torch.Tensor, t: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return score_logits(policy.decoder.logits(h), t, scale, policy.suppressed())

    step = max(1, _LOGITS_AT_ONCE // policy.decoder.model.embed_tokens.num_embeddings)
    if len(hidden) <= step:
        return piece(hidden, targets, temperature)
    pieces = [
        checkpoint(piece, h, t, scale, use_reentrant=False)
        for h, t, scale in zip(hidden.split(step), targets.split(step), temperature.split(step), strict=True)
    ]
    return torch.cat([p[0] for p in pieces]), torch.cat([p[1] for p in pieces])


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
