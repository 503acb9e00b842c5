"""Answers in the making where nothing is captured, as on a CPU: each row's keys and values lie together, ending alike.

So attention needs no table of pages, and no row computes a token that nobody waits for. What was computed goes back to
the pages in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

import torch

from cuarl.policy.qwen_vl.engine.answer import Answer
from cuarl.policy.qwen_vl.engine.forward import run_layers
from cuarl.policy.qwen_vl.engine.pages import PAGE
from cuarl.policy.qwen_vl.engine.weights import Weights
from cuarl.policy.qwen_vl.fused.ops import rms_norm

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

_ROOM = 32
"""Tokens of an answer for which there is room at first; then as many again."""


class Rows:
    """The keys and values of ``answers``, to which tokens are added, one for every row at a time.

    A layer's are (2, rows, room, KV heads, size); row i's begin at column ``_starts[i]`` and all end at ``_end``.
    """

    def __init__(
        self, policy: QwenVLPolicy, weights: Weights, pages: Sequence[torch.Tensor], answers: Sequence[Answer]
    ) -> None:
        self._policy, self._weights, self._pages = policy, weights, pages
        self.answers = list(answers)
        lengths = [a.length for a in answers]
        self._end = max(lengths)
        self._starts = [self._end - n for n in lengths]
        self._position = torch.tensor([a.prompt.next for a in answers], device=policy.device)
        slots = torch.stack([_slots(a, n, self._end) for a, n in zip(answers, lengths, strict=True)]).to(policy.device)
        self._layers = [_with_room(p[:, slots.view(-1)].unflatten(1, slots.shape)) for p in pages]
        self._mask = self._unpadded()

    def next(self, tokens: torch.Tensor) -> torch.Tensor:
        """Append ``tokens`` (rows,); logits (rows, V) float32 of the next ones."""
        decoder, weights = self._policy.decoder, self._weights
        if self._end == self._layers[0].shape[2]:
            self._layers = [_with_room(layer) for layer in self._layers]
        rows, room = len(tokens), self._layers[0].shape[2]
        slots = torch.arange(rows, device=tokens.device) * room + self._end
        hidden = decoder.embed(tokens[:, None])
        cos, sin = decoder.model.rotary_emb(hidden, self._position.expand(3, -1)[..., None])
        self._end += 1
        mask = None if self._mask is None else self._mask[..., : self._end]

        def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            k, v = (t.view(rows, room, *t.shape[1:])[:, : self._end].transpose(1, 2) for t in (keys, values))
            # the queries of a group stand where tokens stand: nothing is repeated
            q = q.unflatten(1, (k.shape[1], -1))
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=weights.scale)
            return out.flatten(1, 2)

        flat = [layer.flatten(1, 2) for layer in self._layers]
        hidden = run_layers(weights, hidden[:, 0], (cos[:, 0], sin[:, 0]), slots, flat, attend)
        self._position = self._position + 1
        for answer in self.answers:
            answer.launched += 1
        return decoder.logits(rms_norm(hidden, weights.norm, weights.eps))

    def split(self, rows: Sequence[int]) -> Rows:
        """Go on with ``rows``; the others, as they are now."""
        others = copy(self)
        others._choose([i for i in range(len(self.answers)) if i not in set(rows)])
        self._choose(rows)
        return others

    def _choose(self, rows: Sequence[int]) -> None:
        self.answers = [self.answers[i] for i in rows]
        self._starts = [self._starts[i] for i in rows]
        index = torch.tensor(rows, dtype=torch.long, device=self._position.device)
        self._position = self._position[index]
        self._layers = [layer.index_select(1, index) for layer in self._layers]
        self._mask = self._unpadded()

    def put_back(self) -> None:
        """Write what was computed into the answers' pages, as far as these reach."""
        source: list[int] = []
        target: list[int] = []
        room = self._layers[0].shape[2]
        for i, (answer, start) in enumerate(zip(self.answers, self._starts, strict=True)):
            pages, first = answer.pages, len(answer.prompt.ids)
            # the last token was drawn, and not put in
            for n in range(first, min(first + len(answer.job.tokens) - 1, len(pages) * PAGE)):
                source.append(i * room + start + n)
                target.append(pages[n // PAGE] * PAGE + n % PAGE)
        if source:
            at, to = (torch.tensor(x, device=self._position.device) for x in (source, target))
            for layer, pages_of in zip(self._layers, self._pages, strict=True):
                pages_of.index_copy_(1, to, layer.flatten(1, 2).index_select(1, at))

    def _unpadded(self) -> torch.Tensor | None:
        """(rows, 1, 1, columns): what is a row's own; None where all is. Columns yet to be filled are."""
        if not any(self._starts):
            return None
        starts = torch.tensor(self._starts, device=self._position.device)
        # as many columns as the row may ever have
        columns = torch.arange(self._end + self._policy.context, device=starts.device)
        return (columns >= starts[:, None])[:, None, None]


def _slots(answer: Answer, length: int, end: int) -> torch.Tensor:
    """Where an answer's ``length`` first keys and values are among the pages, behind zeros up to ``end``."""
    at = torch.arange(length)
    own = torch.tensor(answer.pages)[at // PAGE] * PAGE + at % PAGE
    return torch.nn.functional.pad(own, (end - length, 0))


def _with_room(layer: torch.Tensor) -> torch.Tensor:
    """A copy of (2, rows, columns, …) with room for more columns."""
    columns = layer.shape[2]
    larger = layer.new_empty((*layer.shape[:2], columns + max(_ROOM, columns // 4), *layer.shape[3:]))
    larger[:, :, :columns] = layer
    return larger
