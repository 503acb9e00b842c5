"""Attention of prompts and of the answers that branch off them, where flash attention for segments does not run.

A prompt's keys are neither copied nor padded for each of its answers: a call has several answers to one prompt as
queries, each of which sees the prompt and itself. Queries that share keys (grouped-query attention, arXiv:2305.13245)
stand where tokens stand, so that nothing is repeated for them either.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import torch

_AT_ONCE = 128
"""Answer tokens of a call: they see one another's keys in vain."""


class Call(NamedTuple):
    """The next ``tokens``: alone, by plain causality, or behind those of the call number ``prompt``."""

    tokens: int
    prompt: int | None = None
    seen: torch.Tensor | None = None
    """(queries, those of the prompt + tokens) bool, where plain causality won't do."""
    queries: int | None = None
    """How many of the tokens look; None: all."""


def calls(prompts: Sequence[tuple[int, Sequence[int]]]) -> list[Call]:
    """The calls for tokens behind each other: of each prompt its length and those of the answers behind it."""
    found: list[Call] = []
    for length, answers in prompts:
        if len(answers) == 1:
            found.append(Call(length + answers[0]))
            continue
        prompt = len(found)
        found.append(Call(length))
        for part in _parts(answers):
            own = torch.block_diag(*(torch.ones(n, n) for n in part)).bool().tril()
            whole = torch.ones(len(own), length, dtype=torch.bool)
            found.append(Call(len(own), prompt, torch.cat([whole, own], dim=1)))
    return found


def _parts(answers: Sequence[int]) -> list[list[int]]:
    parts: list[list[int]] = []
    for n in filter(None, answers):
        if not parts or sum(parts[-1]) + n > _AT_ONCE:
            parts.append([])
        parts[-1].append(n)
    return parts


def narrowed(made: Sequence[Call], rows: Sequence[int]) -> list[Call]:
    """The same calls with only the tokens ``rows``, in their order, as queries."""
    found: list[Call] = []
    start = at = 0
    for call in made:
        end = bisect_left(rows, start + call.tokens, at)
        own = torch.tensor([row - start for row in rows[at:end]], dtype=torch.long)
        seen = torch.arange(call.tokens) <= own[:, None] if call.seen is None else call.seen[own]
        found.append(call._replace(seen=seen, queries=end - at))
        start, at = start + call.tokens, end
    return found


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, made: Sequence[Call], scale: float) -> torch.Tensor:
    """Each query (M, heads, size) over the keys and values (N, KV heads, size) that it sees; differentiable."""
    # split at once: each slice by itself would have a gradient as large as the whole
    asked = q.split([call.tokens if call.queries is None else call.queries for call in made])
    given = [t.split([call.tokens for call in made]) for t in (k, v)]
    out: list[torch.Tensor] = []
    for call, queries, *own in zip(made, asked, *given, strict=True):
        keys, values = own
        if call.prompt is not None:
            keys, values = (torch.cat([of[call.prompt], mine]) for of, mine in zip(given, own, strict=True))
        if not len(queries):
            continue
        if call.seen is None:
            out.append(_causal(queries, keys, values, scale))
        else:
            out.append(_seeing(queries, keys, values, call.seen, scale))
    return torch.cat(out)


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    group = q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(group, 1) for t in (k, v))
    q, k, v = (t.transpose(0, 1)[None] for t in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
    return out[0].transpose(0, 1)


def _seeing(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor, scale: float) -> torch.Tensor:
    group = q.shape[1] // k.shape[1]
    q = q.unflatten(1, (-1, group)).permute(1, 2, 0, 3).flatten(1, 2)[None]
    k, v = (t.transpose(0, 1)[None] for t in (k, v))
    mask = seen.repeat(group, 1)[None, None]
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return out[0].unflatten(1, (group, -1)).permute(2, 0, 1, 3).flatten(1, 2)
