"""The tower of a Qwen3-VL model for one still picture at a time, its layers taken apart.

The model's own forward finds positions and segments anew for every batch, which takes half as long as a small tower's
layers; here they are found once for each size, by the tower itself. The same as its own forward up to rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from cuarl.policy.qwen_vl.images import Grid
from cuarl.policy.qwen_vl.rotary import rotate

_TOWERS = ("Qwen3VLVisionModel",)
_SIZES = 64
"""Sizes of pictures whose places are kept."""
_asking = threading.Lock()
"""Held while a tower is asked for places, which takes a part of it away."""


class Places(NamedTuple):
    """What a size adds to its patches (S, D), and the cosines and sines (S, 1, size of a head) of their positions."""

    embedded: torch.Tensor
    cos: torch.Tensor
    sin: torch.Tensor


class StillTower:
    """Encodes one picture with ``visual``, whose weights are frozen."""

    def __init__(self, visual: Any) -> None:
        self._visual = visual
        # as it is now: another is put there for as long as it takes to find places
        self._embed = visual.patch_embed.forward
        self._known: dict[Grid, Places] = {}

    def encode(self, pixels: torch.Tensor, places: Places) -> torch.Tensor:
        """Features (1 + levels, tokens, D) of a picture's patches (S, values), without gradients."""
        with torch.no_grad():
            return self._encode(pixels, places)

    def _encode(self, pixels: torch.Tensor, places: Places) -> torch.Tensor:
        visual = self._visual
        hidden = self._embed(pixels).add_(places.embedded)
        deep: dict[int, torch.Tensor] = {}
        for i, block in enumerate(visual.blocks):
            hidden = _block(block, hidden, places)
            if i in visual.deepstack_visual_indexes:
                level = visual.deepstack_visual_indexes.index(i)
                deep[level] = visual.deepstack_merger_list[level](hidden)
        return torch.stack([visual.merger(hidden), *(deep[level] for level in sorted(deep))])

    def places(self, grid: Grid) -> Places:
        """Those of a size, asked of the tower once."""
        with _asking:
            if grid not in self._known:
                if len(self._known) == _SIZES:
                    self._known.clear()
                self._known[grid] = self._asked(grid)
            return self._known[grid]

    def _asked(self, grid: Grid) -> Places:
        """What its first block is given for patches that are all zero."""
        visual, found = self._visual, []

        def look(_: object, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            found.append((given[0], *named["position_embeddings"]))

        width = visual.blocks[0].norm1.normalized_shape[0]
        weight = next(visual.parameters())
        nothing = torch.zeros((grid.patches, width), dtype=weight.dtype, device=weight.device)
        handle = visual.blocks[0].register_forward_pre_hook(look, with_kwargs=True)
        with _embedding(visual.patch_embed, nothing), torch.no_grad():
            try:
                visual(nothing, grid_thw=torch.tensor([[1, grid.rows, grid.cols]], device=weight.device))
            finally:
                handle.remove()
        embedded, cos, sin = found[0]
        return Places(embedded.clone(), cos.float().unsqueeze(-2), sin.float().unsqueeze(-2))


def fits(visual: Any) -> bool:
    """Whether a tower is one of those that are taken apart here, with plain layers."""
    return type(visual).__name__ in _TOWERS and all(_fits(block) for block in visual.blocks)


def _fits(block: Any) -> bool:
    products = (block.attn.qkv, block.attn.proj, block.mlp.linear_fc1, block.mlp.linear_fc2)
    return {type(product) for product in products} == {torch.nn.Linear}


@contextmanager
def _embedding(patch_embed: Any, result: torch.Tensor) -> Iterator[None]:
    """Inside, patches are embedded to ``result`` whatever they are."""
    before = patch_embed.forward
    patch_embed.forward = lambda _: result
    try:
        yield
    finally:
        patch_embed.forward = before


def _block(block: Any, hidden: torch.Tensor, places: Places) -> torch.Tensor:
    attention, mlp = block.attn, block.mlp
    qkv = attention.qkv(block.norm1(hidden)).view(len(hidden), 3 * attention.num_heads, -1)
    hidden = _added(attention.proj, hidden, _attend(qkv, attention.num_heads, places))
    return _added(mlp.linear_fc2, hidden, mlp.act_fn(mlp.linear_fc1(block.norm2(hidden))))


def _attend(qkv: torch.Tensor, heads: int, places: Places) -> torch.Tensor:
    """(S, D) of queries, keys and values (S, 3 * heads, size)."""
    turned = rotate(qkv[:, : 2 * heads].float(), places.cos, places.sin).to(qkv.dtype)
    q, k, v = (t.transpose(0, 1)[None] for t in (turned[:, :heads], turned[:, heads:], qkv[:, 2 * heads :]))
    return functional.scaled_dot_product_attention(q, k, v)[0].transpose(0, 1).flatten(1)


def _added(product: torch.nn.Linear, hidden: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.addmm(hidden, x, product.weight.t())
    return out if product.bias is None else out.add_(product.bias)
