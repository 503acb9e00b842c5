"""The language model of a Qwen-VL policy, run layer by layer with positions, masks and caches of our own.

``generate`` and the models' own forward recompute positions and masks in Python for every token and sample, and start
from scratch for prompts that were seen a moment ago. Here a prompt is encoded once, its keys and values are shared by
all the rows that continue it, in sampling (``RowCache``, grown in place) as in training (``PromptCache``, which lets
gradients through).
"""

from __future__ import annotations

import inspect
from typing import Any, Protocol

import torch
from torch import nn

from cuarl.policy.qwen_vl.rotary import rotate


class Cache(Protocol):
    """Receives the new keys and values of a layer, (rows, heads, new, size), and returns all that it may attend to."""

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any) -> Any:
        """Called once per layer and pass."""
        ...


class PromptCache:
    """Keeps what a first pass over the prompts computed."""

    def __init__(self) -> None:
        self.layers: list[tuple[torch.Tensor, torch.Tensor]] = []

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Record the keys and values of ``layer``."""
        self.layers.append((keys, values))
        return keys, values


class Continuation:
    """Prepends each row's prompt to the keys and values of its answer; differentiable."""

    def __init__(self, prompts: PromptCache, prompt_of: torch.Tensor) -> None:
        self._prompts, self._of = prompts, prompt_of

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Prompt and answer of each row, along the token axis."""
        k, v = self._prompts.layers[layer]
        k, v = k.index_select(0, self._of), v.index_select(0, self._of)
        return torch.cat([k, keys], dim=2), torch.cat([v, values], dim=2)


class RowCache:
    """Keys and values of rows being sampled, in buffers with room to grow.

    ``length`` is the number of tokens all rows have; ``advance`` adds those of the last pass.
    """

    def __init__(self, prompts: PromptCache, prompt_of: torch.Tensor) -> None:
        self.length = prompts.layers[0][0].shape[2]
        self._layers = [
            (_grown(k.index_select(0, prompt_of)), _grown(v.index_select(0, prompt_of))) for k, v in prompts.layers
        ]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write behind what is there, and return views of the whole."""
        k, v = self._layers[layer]
        end = self.length + keys.shape[2]
        if end > k.shape[2]:
            k, v = self._layers[layer] = _grown(k), _grown(v)
        k[:, :, self.length : end] = keys
        v[:, :, self.length : end] = values
        return k[:, :, :end], v[:, :, :end]

    def advance(self, tokens: int) -> None:
        """Make the last pass's tokens part of the past."""
        self.length += tokens

    def keep(self, rows: torch.Tensor) -> None:
        """Drop all rows but ``rows``."""
        self._layers = [(k.index_select(0, rows), v.index_select(0, rows)) for k, v in self._layers]


_ROOM = 32


def _grown(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with room for a quarter more tokens, so that long answers are copied only now and then."""
    rows, heads, length, size = tensor.shape
    buffer = tensor.new_empty(rows, heads, length + max(_ROOM, length // 4), size)
    buffer[:, :, :length] = tensor
    return buffer


class Given:
    """Keys and values that were computed elsewhere; what a layer computes itself is ignored."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._given = keys, values

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The given ones."""
        return self._given


Rotary = tuple[torch.Tensor, torch.Tensor]
"""Cosine and sine of each token's position, (rows, tokens, size of a head)."""


class Decoder:
    """Embeds tokens and runs the decoder layers of ``language_model``; ``head`` gives logits."""

    def __init__(self, language_model: Any, head: nn.Module) -> None:
        self.model = language_model
        self.head = head
        forward = inspect.signature(type(language_model.layers[0]).forward)
        # transformers renamed the argument in 5.2x
        self._cache_argument = "cache" if "cache" in forward.parameters else "past_key_values"

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """(rows, tokens) ids to (rows, tokens, D)."""
        return self.model.embed_tokens(ids)

    def run(
        self,
        hidden: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Cache | None = None,
        *,
        image_index: torch.Tensor | None = None,
        deep: torch.Tensor | None = None,
        wanted: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Hidden states (rows, tokens, D) after the final norm; (rows, W, D) of tokens ``wanted`` (rows, W) alone.

        ``mask`` is (rows, 1, tokens, keys) bool, True where a token may look; None means causal over the tokens given.
        ``deep`` (levels, N, D) is added at ``image_index`` (N,) of the flattened tokens behind the first layers
        (DeepStack, arXiv:2406.04334). No image token may be ``wanted``.
        """
        rotary = self.model.rotary_emb(hidden, positions)
        layers = self.model.layers
        narrow = wanted is not None and _may_narrow(layers[-1], rotary)
        for i, layer in enumerate(layers[:-1] if narrow else layers):
            hidden = self._layer(layer, hidden, rotary, mask, cache)
            if deep is not None and i < deep.shape[0]:
                flat = hidden.reshape(-1, hidden.shape[-1])
                hidden = flat.index_add(0, image_index, deep[i].to(flat.dtype)).view_as(hidden)
        if wanted is not None and narrow:
            hidden = self._narrow(hidden, rotary, mask, cache, wanted)
        elif wanted is not None:
            hidden = _take(hidden, wanted)
        return self.model.norm(hidden)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(…, D) to (…, vocabulary) float32."""
        return self.head(hidden).float()

    def _layer(
        self, layer: nn.Module, hidden: torch.Tensor, rotary: Rotary, mask: torch.Tensor | None, cache: Cache | None
    ) -> torch.Tensor:
        extra = {self._cache_argument: cache, "use_cache": True} if cache is not None else {}
        out = layer(hidden, attention_mask=self._as_asked(mask, hidden), position_embeddings=rotary, **extra)
        return out[0] if isinstance(out, tuple) else out

    def _narrow(
        self, hidden: torch.Tensor, rotary: Rotary, mask: torch.Tensor | None, cache: Cache | None, wanted: torch.Tensor
    ) -> torch.Tensor:
        """The last layer for the tokens wanted. Of the others only keys and values matter: a fifth of its work."""
        layers = self.model.layers
        keys, values = _keys_values(layers[-1], hidden, rotary)
        if cache is not None:
            keys, values = cache.update(keys, values, len(layers) - 1)
        rows = torch.arange(len(hidden), device=hidden.device)[:, None]
        if mask is None:
            seen = torch.arange(keys.shape[2], device=hidden.device) <= wanted[..., None]
        else:
            seen = mask.expand(len(hidden), -1, -1, -1)[rows, 0, wanted]
        rotary = (_take(rotary[0], wanted), _take(rotary[1], wanted))
        return self._layer(layers[-1], _take(hidden, wanted), rotary, seen[:, None], Given(keys, values))

    def _as_asked(self, mask: torch.Tensor | None, hidden: torch.Tensor) -> torch.Tensor | None:
        """Eager attention adds its mask to the scores, and knows no implicit causality."""
        if self.model.config._attn_implementation == "sdpa":
            return mask
        if mask is None:
            n = hidden.shape[1]
            mask = torch.ones(n, n, dtype=torch.bool, device=hidden.device).tril()[None, None]
        zero = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
        return torch.where(mask, zero, torch.finfo(hidden.dtype).min)


def _may_narrow(layer: Any, rotary: Rotary) -> bool:
    """Whether the parts of a layer may be called by themselves.

    Not if they are sharded, nor while the layer is replayed for its gradient; nor where a layer expects cosines and
    sines per axis (older releases of transformers).
    """
    replayed = layer.gradient_checkpointing and layer.training and torch.is_grad_enabled()
    return not (replayed or hasattr(layer, "unshard")) and rotary[0].dim() == 3


def _keys_values(layer: Any, hidden: torch.Tensor, rotary: Rotary) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values (rows, heads, tokens, size) of a layer, as its attention computes them."""
    attention = layer.self_attn
    hidden = layer.input_layernorm(hidden)
    shape = (*hidden.shape[:2], -1, attention.head_dim)
    keys = attention.k_proj(hidden).view(shape)
    if hasattr(attention, "k_norm"):
        keys = attention.k_norm(keys)
    cos, sin = (t[:, None] for t in rotary)
    return rotate(keys.transpose(1, 2), cos, sin), attention.v_proj(hidden).view(shape).transpose(1, 2)


def _take(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """(rows, tokens, D) at ``index`` (rows, W)."""
    return values.expand(len(index), -1, -1).gather(1, index[..., None].expand(-1, -1, values.shape[-1]))


def causal_mask(mask: torch.Tensor) -> torch.Tensor:
    """(rows, 1, L, L) bool from (rows, L): earlier real tokens; padding sees itself, for softmax needs something."""
    length = mask.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=mask.device)
    return ((causal & mask[:, None, :]) | itself)[:, None]


def continuation_mask(prompt_mask: torch.Tensor, tokens: int) -> torch.Tensor:
    """(rows, 1, tokens, L + tokens) bool: all real prompt tokens (rows, L), then the answer's own past."""
    rows = prompt_mask.shape[0]
    own = torch.ones(tokens, tokens, dtype=torch.bool, device=prompt_mask.device).tril().expand(rows, -1, -1)
    return torch.cat([prompt_mask[:, None].expand(-1, tokens, -1), own], dim=2)[:, None]
