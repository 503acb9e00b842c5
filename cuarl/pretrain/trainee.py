"""The model in training: each screen is encoded once, and all that is asked about it follows on the same prompt.

The vision tower and the prompt up to the picture's end are computed once a screen, and the rounds continue it without
seeing one another, as in use: dozens of questions cost little more than one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from cuarl.policy.qwen_vl.decoder import Continuation, Decoder, PromptCache
from cuarl.policy.qwen_vl.fused.ops import rms_norm
from cuarl.policy.qwen_vl.images import Grid
from cuarl.policy.qwen_vl.positions import multi_axis_positions
from cuarl.policy.qwen_vl.rotary import rotate
from cuarl.policy.qwen_vl.vision import adapt_tower
from cuarl.pretrain.layout import Layout
from cuarl.pretrain.shared_attention import attend


class Seen(NamedTuple):
    """Features (B * tokens, D) of the pictures of a batch, and those of deeper levels (levels, B * tokens, D)."""

    features: torch.Tensor
    deep: torch.Tensor
    grid: Grid

    def of(self, pictures: Sequence[int]) -> Seen:
        """Those of some of the pictures."""
        cells = torch.arange(self.grid.tokens)
        index = torch.cat([i * self.grid.tokens + cells for i in pictures]).to(self.features.device)
        return Seen(self.features[index], self.deep[:, index], self.grid)


class Prompts(NamedTuple):
    """Keys and values of the prompts of a batch up to the end of their pictures."""

    cache: PromptCache
    length: int
    next: int
    """Position of the token behind."""


def patches_of(screens: torch.Tensor, patch: int, merge: int) -> torch.Tensor:
    """Equal-sized screens (B, height, width, 3) uint8 to patches (B * patches, 3 * patch²) float32 in token order.

    The same values as ``images.ImageProcessor.patches`` gives, computed on the device.
    """
    b, h, w, _ = screens.shape
    side = patch * merge
    x = screens.float() / 127.5 - 1
    x = x.view(b, h // side, merge, patch, w // side, merge, patch, 3)
    return x.permute(0, 1, 4, 2, 5, 7, 3, 6).reshape(-1, 3 * patch * patch)


class Tower:
    """The vision tower over equal-sized screens: positions are worked out once, not for each picture in Python."""

    def __init__(self, visual: Any, grid: Grid) -> None:
        self._visual, self._grid = visual, grid
        self._rotary: tuple[torch.Tensor, ...] = ()
        hook = visual.blocks[0].register_forward_pre_hook(self._note, with_kwargs=True)
        weight = next(visual.parameters())
        thw = torch.tensor([[1, grid.rows, grid.cols]], device=weight.device)
        with torch.no_grad():
            visual(torch.zeros(grid.patches, visual.patch_embed.proj.weight[0].numel()).to(weight), grid_thw=thw)
        hook.remove()

    def _note(self, _: nn.Module, __: Any, kwargs: dict[str, Any]) -> None:
        self._rotary = kwargs["position_embeddings"]

    def __call__(self, patches: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Patches (B * patches, values) to features (N, D) and those of deeper levels (levels, N, D)."""
        visual, count = self._visual, self._grid.patches
        pictures = patches.shape[0] // count
        hidden = visual.patch_embed(patches)
        hidden = (hidden.view(pictures, count, -1) + self._positions().to(hidden.dtype)).flatten(0, 1)
        bounds = torch.arange(0, pictures * count + 1, count)
        rotary = tuple(t.repeat(pictures, 1) for t in self._rotary)
        deep = []
        for i, block in enumerate(visual.blocks):
            hidden = block(hidden, cu_seqlens=bounds, position_embeddings=rotary)
            if i in visual.deepstack_visual_indexes:
                deep.append(visual.deepstack_merger_list[visual.deepstack_visual_indexes.index(i)](hidden))
        return visual.merger(hidden), torch.stack(deep)

    def _positions(self) -> torch.Tensor:
        """(patches, D) in token order, resampled from the square grid of learnt positions."""
        g, table = self._grid, self._visual.pos_embed.weight
        side = math.isqrt(table.shape[0])
        square = table.view(side, side, -1).permute(2, 0, 1)[None].float()
        fitted = nn.functional.interpolate(square, (g.rows, g.cols), mode="bilinear", align_corners=True)[0]
        m = g.merge
        return fitted.view(-1, g.rows // m, m, g.cols // m, m).permute(1, 3, 2, 4, 0).reshape(g.patches, -1)


class Trainee(nn.Module):
    """The model with a forward over equal-sized screens and rows of text about them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.image_id: int = model.config.image_token_id
        seen = model.config.vision_config
        self.patch, self.merge = int(seen.patch_size), int(seen.spatial_merge_size)
        adapt_tower(model.model.visual)
        self._towers: dict[tuple[int, int], Tower] = {}
        self._decoder = Decoder(model.model.language_model, model.lm_head)
        fast = next(model.parameters()).is_cuda
        # the parts between attentions, each as a few kernels; their products are still the library's
        self._before = torch.compile(_before, dynamic=True) if fast else _before
        self._after = torch.compile(_after, dynamic=True) if fast else _after

    @property
    def token(self) -> int:
        """Pixels of an image token's side."""
        return self.patch * self.merge

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.parameters()).device

    def see(self, screens: torch.Tensor) -> Seen:
        """Encode screens (B, height, width, 3) uint8."""
        size = screens.shape[1], screens.shape[2]
        grid = self.grid(*size)
        if size not in self._towers:
            self._towers[size] = Tower(self.model.model.visual, grid)
        return Seen(*self._towers[size](patches_of(screens, self.patch, self.merge)), grid)

    def grid(self, height: int, width: int) -> Grid:
        """The patches of a screen."""
        return Grid(height // self.patch, width // self.patch, self.merge)

    def prompts(self, seen: Seen, head: tuple[int, ...]) -> Prompts:
        """Compute the prompts that begin with the ids of ``head``, which ends with the picture."""
        count = seen.grid.tokens
        pictures = seen.features.shape[0] // count
        ids = torch.tensor([head], device=self.device)
        first = int((ids[0] == self.image_id).nonzero()[0])
        text = self._decoder.embed(ids).expand(pictures, -1, -1)
        features = seen.features.view(pictures, count, -1).to(text.dtype)
        embedded = torch.cat([text[:, :first], features, text[:, first + count :]], 1)
        where = multi_axis_positions(
            (ids == self.image_id).cpu(), torch.ones(1, len(head), dtype=torch.bool), [seen.grid]
        )
        rows = torch.arange(pictures, device=self.device)[:, None] * len(head)
        index = (rows + torch.arange(first, first + count, device=self.device)).flatten()
        cache = PromptCache()
        axes = where.axes.to(self.device).expand(3, pictures, -1)
        self._decoder.run(embedded, axes, None, cache, image_index=index, deep=seen.deep)
        return Prompts(cache, len(head), int(where.next))

    def states(self, seen: Seen, layout: Layout) -> torch.Tensor:
        """(W, D) states of the tokens of ``layout`` that something is learnt from."""
        model = self._decoder.model
        hidden = self._decoder.embed(layout.ids)
        hidden = hidden.index_copy(0, layout.image, seen.features[layout.feature].to(hidden.dtype))
        cos, sin = (t[0][:, None].to(hidden.dtype) for t in model.rotary_emb(hidden[None], layout.positions[:, None]))
        for i, layer in enumerate(model.layers):
            q, k, v = self._before(hidden, cos, sin, *_weights_before(layer))
            mixed = attend(q, k, v, layout.bounds).flatten(1)
            hidden = self._after(hidden, mixed, *_weights_after(layer))
            if i < len(seen.deep):
                hidden = hidden.index_add(0, layout.image, seen.deep[i][layout.feature].to(hidden.dtype))
        return rms_norm(hidden[layout.wanted], model.norm.weight, _EPS)

    def follow(self, prompts: Prompts, ids: torch.Tensor) -> torch.Tensor:
        """(B, T, D) states of ``ids`` (B, T) that follow on the prompts."""
        count, length = ids.shape
        own = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril().expand(count, -1, -1)
        mask = torch.cat([own.new_ones(count, length, prompts.length), own], 2)[:, None]
        positions = (prompts.next + torch.arange(length, device=ids.device)).expand(3, count, -1)
        cache = Continuation(prompts.cache, torch.arange(count, device=ids.device))
        return self._decoder.run(self._decoder.embed(ids), positions, mask, cache)

    def whole(self, seen: Seen, ids: torch.Tensor, screen: torch.Tensor) -> torch.Tensor:
        """(N, T, D) states of whole prompts ``ids`` (N, T), each with the picture of ``screen`` (N,) somewhere."""
        count = seen.grid.tokens
        is_image = ids == self.image_id
        index = is_image.flatten().nonzero()[:, 0]
        picked = (screen[:, None] * count + torch.arange(count, device=ids.device)).flatten()
        embedded = self._decoder.embed(ids)
        flat = embedded.flatten(0, 1).index_copy(0, index, seen.features[picked].to(embedded.dtype))
        where = multi_axis_positions(is_image, torch.ones_like(is_image), [seen.grid] * len(ids))
        return self._decoder.run(flat.view_as(embedded), where.axes, None, image_index=index, deep=seen.deep[:, picked])

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(…, D) to (…, vocabulary) float32."""
        return self._decoder.logits(hidden)

    def loss(self, seen: Seen, layout: Layout) -> torch.Tensor:
        """Weighted mean of cross-entropies in nats."""
        logits = self.logits(self.states(seen, layout))
        each = nn.functional.cross_entropy(logits, layout.target, reduction="none")
        return (each * layout.weight).sum() / layout.weight.sum()


_EPS = 1e-6
"""Of all norms, as transformers' configuration of Qwen3-VL has it."""


def _weights_before(layer: Any) -> tuple[torch.Tensor, ...]:
    a = layer.self_attn
    parts = (layer.input_layernorm, a.q_proj, a.k_proj, a.v_proj, a.q_norm, a.k_norm)
    return tuple(part.weight for part in parts)


def _weights_after(layer: Any) -> tuple[torch.Tensor, ...]:
    m = layer.mlp
    parts = (layer.self_attn.o_proj, layer.post_attention_layernorm, m.gate_proj, m.up_proj, m.down_proj)
    return tuple(part.weight for part in parts)


def _before(
    hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Queries, keys and values (N, heads, size) of a layer's attention from its input (N, D)."""
    norm, q, k, v, q_norm, k_norm = weights
    x, size = rms_norm(hidden, norm, _EPS), len(q_norm)
    queries, keys, values = (nn.functional.linear(x, w).unflatten(1, (-1, size)) for w in (q, k, v))
    return rotate(rms_norm(queries, q_norm, _EPS), cos, sin), rotate(rms_norm(keys, k_norm, _EPS), cos, sin), values


def _after(hidden: torch.Tensor, mixed: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    """A layer's output (N, D) from its input and what its attention gives (N, heads * size)."""
    out, norm, gate, up, down = weights
    hidden = hidden + nn.functional.linear(mixed, out)
    x = rms_norm(hidden, norm, _EPS)
    gated = nn.functional.silu(nn.functional.linear(x, gate)) * nn.functional.linear(x, up)
    return hidden + nn.functional.linear(gated, down)
