"""The vision tower: pictures to features, each picture once, many pictures at a time.

Without flash attention transformers runs one attention call per picture (and per window) and layer. Segments of equal
length are independent rows of one call; screenshots of a run share a size, so a few calls do instead of hundreds. The
tower is frozen unless it is trained, so features are kept by the digest of the screenshot.

On a CPU every picture is encoded by itself. How a math library rounds a row may depend on how many rows it is given
(MKL without AVX-512 is an example), so the features of a picture would depend on what it was first encoded with: a run
resumed with an empty cache would differ from one that was never interrupted. A small one takes one lane, whatever is
encoded beside it, by a tower that is taken apart (``tower``).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from cuarl.policy.lanes import run_alone
from cuarl.policy.qwen_vl import tower
from cuarl.policy.qwen_vl.images import Grid, ImageProcessor
from cuarl.policy.qwen_vl.rotary import rotate
from cuarl.types import Screenshot

_PATCHES_AT_ONCE = 1 << 16
_SMALL = 1 << 31
"""Patches of a picture times weights of the tower up to which one thread encodes it sooner than several together."""


class FeatureCache:
    """Features by screenshot digest; the least recently used go first once ``limit_bytes`` is reached."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._size = 0
        self._items: OrderedDict[str, torch.Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: str) -> torch.Tensor | None:
        """The features, (1 + levels, tokens, D), or None."""
        with self._lock:
            if digest in self._items:
                self._items.move_to_end(digest)
            return self._items.get(digest)

    def put(self, digest: str, features: torch.Tensor) -> None:
        """Remember ``features``."""
        with self._lock:
            old = self._items.pop(digest, None)
            self._size += features.nbytes - (0 if old is None else old.nbytes)
            self._items[digest] = features
            while self._size > self.limit_bytes and len(self._items) > 1:
                self._size -= self._items.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Forget everything (the tower has changed)."""
        with self._lock:
            self._items.clear()
            self._size = 0

    def __len__(self) -> int:
        return len(self._items)


class VisionTower:
    """Encodes screenshots with the ``visual`` module of a Qwen-VL model, which is adapted for it."""

    def __init__(self, visual: nn.Module, images: ImageProcessor, *, trained: bool, cache_bytes: int) -> None:
        adapt_tower(visual)
        self.visual = visual
        self.images = images
        self.trained = trained
        self.cache = self.kept = FeatureCache(cache_bytes)
        self._still = None if trained or not tower.fits(visual) else tower.StillTower(visual)
        self._weights = sum(p.numel() for p in visual.parameters())
        self.encoded = 0
        """Pictures that went through the tower since somebody set this to 0."""

    def set_aside(self) -> None:
        """Forget all pictures; where each is encoded by itself, until ``bring_back``."""
        if self._device.type != "cpu":
            self.kept.clear()
        self.cache = FeatureCache(self.kept.limit_bytes)

    def bring_back(self) -> None:
        """Forget what was encoded since ``set_aside``, and know again what was before."""
        self.cache = self.kept

    @property
    def _device(self) -> torch.device:
        return next(self.visual.parameters()).device

    def features(self, screenshots: Sequence[Screenshot]) -> torch.Tensor:
        """Features (1 + levels, N, D) of all pictures in order, without gradients, from the cache where possible."""
        with torch.no_grad():
            return self._features(screenshots)

    def _features(self, screenshots: Sequence[Screenshot]) -> torch.Tensor:
        found: dict[str, torch.Tensor] = {}
        missing: dict[str, Screenshot] = {}
        for s in screenshots:
            known = None if self.trained else self.cache.get(s.digest)
            if known is None:
                missing[s.digest] = s
            else:
                found[s.digest] = known
        for s, features in self._encoded(list(missing.values())):
            found[s.digest] = features
            if not self.trained:
                self.cache.put(s.digest, features)
        return torch.cat([found[s.digest] for s in screenshots], dim=1)

    def _encoded(self, screenshots: list[Screenshot]) -> Iterator[tuple[Screenshot, torch.Tensor]]:
        """Each picture's features (1 + levels, tokens, D)."""
        small = [s for s in screenshots if self.is_small(s)]
        yield from zip(small, self._encode_small(small), strict=True)
        for part in self._parts([s for s in screenshots if not self.is_small(s)]):
            grids = [self.images.grid(s.width, s.height) for s in part]
            cpu = self._device.type == "cpu"
            pixels = self.images.patches(part) if cpu else self.images.patches_on(self._device, part)
            pieces = self.encode(pixels, grids).split([g.tokens for g in grids], dim=1)
            yield from zip(part, (piece.contiguous() for piece in pieces), strict=True)

    def is_small(self, screenshot: Screenshot) -> bool:
        """Whether one thread encodes it."""
        grid = self.images.grid(screenshot.width, screenshot.height)
        return self._still is not None and self._device.type == "cpu" and grid.patches * self._weights <= _SMALL

    def _encode_small(self, screenshots: Sequence[Screenshot]) -> list[torch.Tensor]:
        """One lane for each."""
        still = self._still
        if still is None or not screenshots:
            return []
        self.encoded += len(screenshots)
        places = [still.places(self.images.grid(s.width, s.height)) for s in screenshots]

        def encode(screenshot: Screenshot, at: tower.Places) -> torch.Tensor:
            return still.encode(self.images.patches([screenshot]), at)

        return run_alone([partial(encode, s, at) for s, at in zip(screenshots, places, strict=True)])

    def _parts(self, screenshots: list[Screenshot]) -> list[list[Screenshot]]:
        """What is encoded together: one picture on a CPU, else as many as fit a budget of patches.

        The budget keeps the memory from growing with the batch.
        """
        if self._device.type == "cpu":
            return [[s] for s in screenshots]
        parts: list[list[Screenshot]] = []
        room = 0
        for s in screenshots:
            patches = self.images.grid(s.width, s.height).patches
            if not parts or patches > room:
                parts.append([])
                room = _PATCHES_AT_ONCE
            parts[-1].append(s)
            room -= patches
        return parts

    def encode(self, pixels: torch.Tensor, grids: Sequence[Grid]) -> torch.Tensor:
        """Features (1 + levels, N, D) of patches (sum of patches, values), with gradients if the tower has any."""
        self.encoded += len(grids)
        weight = next(self.visual.parameters())
        thw = torch.tensor([[1, g.rows, g.cols] for g in grids], device=weight.device)
        out = self.visual(pixels.to(weight.device, weight.dtype), grid_thw=thw)
        return torch.stack([out.pooler_output, *(getattr(out, "deepstack_features", None) or ())])


def adapt_tower(visual: nn.Module) -> None:
    """Let ``visual`` take still pictures as they are, and attend in batches; the results are equal up to rounding."""
    patch_embed: Any = visual.patch_embed
    patch_embed.forward = partial(_embed_patches, patch_embed)
    batch_attention(visual)


def _embed_patches(patch_embed: Any, pixels: torch.Tensor) -> torch.Tensor:
    """Patches (S, values) to (S, D): the convolution over frames, rows and columns of a patch as one matrix product.

    For a still picture, given without its repeated frames, the weights of the frames add up to one.
    """
    conv = patch_embed.proj
    weight = conv.weight.flatten(1)
    if pixels.shape[1] != weight.shape[1]:
        weight = conv.weight.sum(2).flatten(1)
    return nn.functional.linear(pixels.to(weight.dtype), weight, conv.bias)


def batch_attention(visual: nn.Module) -> int:
    """Let the attention layers of ``visual`` treat segments of equal length as one batch; returns how many layers.

    The result equals transformers' loop over segments up to float rounding.
    """
    layers = [m for m in visual.modules() if hasattr(m, "qkv") and hasattr(m, "proj") and hasattr(m, "num_heads")]
    for layer in layers:
        layer.forward = partial(_segment_attention, layer)
    return len(layers)


def _segment_attention(
    layer: Any,
    hidden_states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    *_: object,
    position_embeddings: tuple[torch.Tensor, torch.Tensor],
    **__: object,
) -> torch.Tensor:
    """Attention of patches (S, D) within the segments bounded by ``cu_seqlens``."""
    count = hidden_states.shape[0]
    q, k, v = layer.qkv(hidden_states).reshape(count, 3, layer.num_heads, -1).unbind(1)
    cos, sin = (t.unsqueeze(-2).float() for t in position_embeddings)
    q, k = (rotate(t.float(), cos, sin).to(v.dtype) for t in (q, k))
    bounds = cu_seqlens.tolist()
    lengths = [b - a for a, b in pairwise(bounds)]
    if len(set(lengths)) == 1:
        out = _attend(q, k, v, lengths[0])
    else:
        out = torch.zeros_like(v)
        for length in sorted(set(lengths)):
            starts = torch.tensor([a for a, n in zip(bounds, lengths, strict=False) if n == length])
            index = (starts[:, None] + torch.arange(length)).flatten().to(v.device)
            out = out.index_copy(0, index, _attend(q[index], k[index], v[index], length))
    return layer.proj(out.reshape(count, -1))


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, length: int) -> torch.Tensor:
    """Full attention within consecutive segments of ``length``; all tensors are (S, heads, head size)."""
    q, k, v = (t.reshape(-1, length, *t.shape[1:]).transpose(1, 2) for t in (q, k, v))
    out = nn.functional.scaled_dot_product_attention(q, k, v)
    return out.transpose(1, 2).reshape(-1, out.shape[1], out.shape[3])
