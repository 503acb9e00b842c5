"""Distinct prompts of some jobs, what of them is known already, and the passes that compute the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import torch

from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.lanes import lanes, run_alone
from cuarl.policy.qwen_vl.engine.attention import Segments, causal, segments
from cuarl.policy.qwen_vl.engine.forward import Deep, Narrow, run_layers
from cuarl.policy.qwen_vl.engine.pages import PAGE, Key, Node, Pages, page_keys
from cuarl.policy.qwen_vl.engine.weights import Weights
from cuarl.policy.qwen_vl.fused.ops import rms_norm
from cuarl.policy.qwen_vl.inputs import collate_tokens
from cuarl.types import Screenshot

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

TOKENS_AT_ONCE = 1 << 14
"""Tokens of one pass over prompts; longer ones take several."""
_IN_A_LANE = 512
"""The same for a pass in one lane: what its layers go through stays in the caches of one core."""


@dataclass(slots=True)
class PromptState:
    """One distinct prompt. ``positions`` is (3, length) int64, ``next`` the position behind it."""

    ids: tuple[int, ...]
    screenshots: tuple[Screenshot, ...]
    spans: list[tuple[int, int]]
    """First and last + 1 token of each picture."""
    keys: list[Key]
    positions: torch.Tensor
    next: int
    chain: list[Node] = field(default_factory=list)
    """Pages known before."""
    pages: list[int] = field(default_factory=list)
    """Pages of its own, behind those."""

    @property
    def known(self) -> int:
        """Tokens that need not be computed."""
        return len(self.chain) * PAGE

    @property
    def all_pages(self) -> list[int]:
        """In order."""
        return [n.page for n in self.chain] + self.pages

    @property
    def missing(self) -> int:
        """Pages needed behind those known before."""
        return -(-len(self.ids) // PAGE) - len(self.chain)

    @property
    def full(self) -> int:
        """Pages filled by the prompt alone."""
        return len(self.ids) // PAGE


def distinct(policy: QwenVLPolicy, jobs: Sequence[Job]) -> tuple[list[PromptState], list[int]]:
    """The distinct prompts, and for each job which is its own. Raises ValueError as ``collate_tokens`` does."""
    rows = [Row(job.prompt.ids, tuple(job.prompt.screenshots)) for job in jobs]
    inputs, _ = collate_tokens(rows, policy.images, policy.special, "right", pack=False)
    of: list[int] = inputs.prompt_of.tolist()
    after: list[int] = inputs.answer_start.tolist()
    found: list[PromptState] = []
    for p in range(len(inputs.prompt_ids)):
        row = rows[of.index(p)]
        sizes = [policy.images.grid(s.width, s.height).tokens for s in row.screenshots]
        places = [i for i, token in enumerate(row.prompt_ids) if token == policy.special.image]
        ends = list(accumulate(sizes))
        spans = [(places[e - n], places[e - 1] + 1) for e, n in zip(ends, sizes, strict=True)]
        keys = page_keys(
            row.prompt_ids, policy.special.image, [(s.digest, n) for s, n in zip(row.screenshots, sizes, strict=True)]
        )
        positions = inputs.prompt_positions[:, p, : len(row.prompt_ids)]
        found.append(PromptState(row.prompt_ids, row.screenshots, spans, keys, positions, after[p]))
    return found, of


def find_known(prompts: Sequence[PromptState], pages: Pages) -> int:
    """Find what is known of each prompt; the pages that the rest needs. At least a last token is computed anew."""
    for prompt in prompts:
        prompt.chain = pages.find(prompt.keys[: (len(prompt.ids) - 1) // PAGE])
    return sum(p.missing for p in prompts)


def take_pages(prompts: Sequence[PromptState], pages: Pages) -> None:
    """Take pages for what is not known."""
    for prompt in prompts:
        prompt.pages = pages.take(prompt.missing)


def prefill(
    policy: QwenVLPolicy, weights: Weights, buffer: Sequence[torch.Tensor], prompts: Sequence[PromptState]
) -> torch.Tensor:
    """Compute what is not known of ``prompts``; the states (prompts, D) of their last tokens behind the final norm."""
    shares = _shares(policy, prompts)
    if len(shares) == 1:
        last = _in_passes(policy, weights, buffer, prompts, policy.vision.features)
    else:
        # before the lanes part, so that a picture is encoded alike whatever is kept of others
        seen = _features(policy, prompts)
        work = [partial(_in_passes, policy, weights, buffer, share, seen) for share in shares]
        last = torch.cat(run_alone(work))
    return rms_norm(last, weights.norm, weights.eps)


def _shares(policy: QwenVLPolicy, prompts: Sequence[PromptState]) -> list[Sequence[PromptState]]:
    """What of ``prompts`` is computed by itself, in a lane: all together where there are too few for all lanes.

    A prompt stays whole, for its later tokens look at its earlier ones.
    """
    found = lanes() if policy.device.type == "cpu" else None
    if found is None or len(prompts) < found.count:
        return [prompts]
    tokens = [len(p.ids) - p.known for p in prompts]
    most = max(1, min(_IN_A_LANE, -(-sum(tokens) // found.count)))
    shares: list[Sequence[PromptState]] = []
    first = room = 0
    for i, count in enumerate(tokens):
        if i > first and count > room:
            shares.append(prompts[first:i])
            first = i
        room = (most if i == first else room) - count
    shares.append(prompts[first:])
    return shares if len(shares) >= found.count else [prompts]


Encode = Callable[[Sequence[Screenshot]], torch.Tensor]
"""Features (1 + levels, tokens, D) of pictures, one behind the other."""


def _features(policy: QwenVLPolicy, prompts: Sequence[PromptState]) -> Encode:
    """Those of all that ``prompts`` show and is not known, encoded here and now."""
    shown = {s.digest: s for p in prompts for s, (_, end) in zip(p.screenshots, p.spans, strict=True) if end > p.known}
    if not shown:
        return policy.vision.features
    sizes = [policy.images.grid(s.width, s.height).tokens for s in shown.values()]
    made = dict(zip(shown, policy.vision.features(list(shown.values())).split(sizes, dim=1), strict=True))
    return lambda pictures: torch.cat([made[s.digest] for s in pictures], dim=1)


def _in_passes(
    policy: QwenVLPolicy,
    weights: Weights,
    buffer: Sequence[torch.Tensor],
    prompts: Sequence[PromptState],
    encode: Encode,
) -> torch.Tensor:
    """The states (prompts, D) of last tokens before the final norm."""
    last = torch.empty((len(prompts), policy.width), dtype=policy.dtype, device=policy.device)
    for part in _passes(prompts):
        ends = _one_pass(policy, weights, buffer, prompts, part, encode)
        done = [(i, p) for i, (p, _, stop) in enumerate(part) if stop == len(prompts[p].ids)]
        if done:
            where, of = (torch.tensor(x, device=policy.device) for x in zip(*done, strict=True))
            last[of] = ends[where]
    return last


Piece = tuple[int, int, int]
"""A prompt's number, the first of its tokens in a pass, and the last + 1."""


def _passes(prompts: Sequence[PromptState]) -> Iterator[list[Piece]]:
    part: list[Piece] = []
    room = TOKENS_AT_ONCE
    for p, prompt in enumerate(prompts):
        start = prompt.known
        while start < len(prompt.ids):
            stop = min(len(prompt.ids), start + room)
            part.append((p, start, stop))
            room -= stop - start
            start = stop
            if not room:
                yield part
                part, room = [], TOKENS_AT_ONCE
    if part:
        yield part


def _one_pass(
    policy: QwenVLPolicy,
    weights: Weights,
    buffer: Sequence[torch.Tensor],
    prompts: Sequence[PromptState],
    part: Sequence[Piece],
    encode: Encode,
) -> torch.Tensor:
    """Compute a pass's tokens; the states (pieces, D) of the last of each piece."""
    device = policy.device
    ids = torch.tensor([i for p, a, b in part for i in prompts[p].ids[a:b]], device=device)
    positions = torch.cat([prompts[p].positions[:, a:b] for p, a, b in part], dim=1).to(device)
    slots = torch.cat([_slots(prompts[p], a, b) for p, a, b in part]).to(device)
    whole = all(a == 0 for _, a, _ in part)
    looked_at = slots if whole else torch.cat([_slots(prompts[p], 0, b) for p, _, b in part]).to(device)
    sizes, seen = [b - a for _, a, b in part], [b for _, _, b in part]
    parts, ends = segments(sizes, seen, device), segments([1] * len(part), seen, device)
    hidden = policy.decoder.embed(ids[None])[0]
    rotary = policy.decoder.model.rotary_emb(hidden[None], positions[:, None])
    deep = None
    pictures = list(_pictures(prompts, part))
    if pictures:
        hidden, deep = _with_pictures(policy, hidden, pictures, encode)

    def attend(which: Segments, q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        k, v = keys.index_select(0, looked_at), values.index_select(0, looked_at)
        return causal(q, k, v, which, weights.scale)

    last = torch.tensor(list(accumulate(sizes)), device=device) - 1
    # what pictures add behind the last layer is added to all tokens
    narrow = Narrow(last, partial(attend, ends)) if deep is None or len(deep.features) < len(weights.layers) else None
    angles = rotary[0][0], rotary[1][0]
    hidden = run_layers(weights, hidden, angles, slots, buffer, partial(attend, parts), deep, narrow)
    return hidden if narrow is not None else hidden[last]


def _slots(prompt: PromptState, start: int, stop: int) -> torch.Tensor:
    at = torch.arange(start, stop)
    return torch.tensor(prompt.all_pages)[at // PAGE] * PAGE + at % PAGE


Seen = tuple[Screenshot, int, int, int]
"""A picture, the first and last + 1 of its tokens that are in the pass, and where the first of these is."""


def _pictures(prompts: Sequence[PromptState], part: Sequence[Piece]) -> Iterator[Seen]:
    offset = 0
    for p, start, stop in part:
        for screenshot, (first, end) in zip(prompts[p].screenshots, prompts[p].spans, strict=True):
            a, b = max(first, start), min(end, stop)
            if a < b:
                yield screenshot, a - first, b - first, offset + a - start
        offset += stop - start


def _with_pictures(
    policy: QwenVLPolicy, hidden: torch.Tensor, pictures: Sequence[Seen], encode: Encode
) -> tuple[torch.Tensor, Deep]:
    """Put the pictures' features in place; and what deeper levels add."""
    distinct = list({s.digest: s for s, _, _, _ in pictures}.values())
    sizes = [policy.images.grid(s.width, s.height).tokens for s in distinct]
    known = dict(zip([s.digest for s in distinct], encode(distinct).split(sizes, dim=1), strict=True))
    features = torch.cat([known[s.digest][:, a:b] for s, a, b, _ in pictures], dim=1).to(hidden.dtype)
    index = torch.cat([torch.arange(at, at + b - a) for _, a, b, at in pictures]).to(hidden.device)
    return hidden.index_copy(0, index, features[0]), Deep(index, features[1:])
