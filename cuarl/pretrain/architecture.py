"""The shape of the shipped base: transformers' own Qwen3-VL classes, a few million parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from transformers import PreTrainedTokenizerFast, Qwen3VLConfig, Qwen3VLForConditionalGeneration

SizeName = Literal["tiny", "small"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the layers."""

    width: int = 256
    layers: int = 6
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 32
    mlp: int = 768
    vision_width: int = 128
    vision_layers: int = 4
    vision_heads: int = 4
    vision_mlp: int = 384
    positions: int = 576
    """Learnt vision positions, a square number: interpolated to each picture's grid."""
    patch: int = 8
    """Pixels of a patch's side. A letter is about seven pixels wide: a patch of 16 holds two or three, at any of 256
    offsets, and reading is learnt far more slowly."""
    merge: int = 2
    """Patches of an image token's side."""

    @property
    def token(self) -> int:
        """Pixels of an image token's side."""
        return self.patch * self.merge


SHAPES: dict[SizeName, Shape] = {
    "tiny": Shape(layers=4, vision_width=64, vision_layers=5, vision_mlp=192, merge=4),
    "small": Shape(
        width=384, heads=12, kv_heads=6, mlp=1152, vision_width=192, vision_layers=5, vision_heads=6, vision_mlp=576
    ),
}
"""7.8 and 15.8 million parameters. The tiny one's tokens are twice as wide and high: prompts are short on a CPU."""


def config(tokenizer: PreTrainedTokenizerFast, shape: Shape | None = None) -> Qwen3VLConfig:
    """Configuration of a tiny Qwen3-VL with the token ids of ``tokenizer``.

    Weights start at a deviation of one over the root of a layer's width. The usual 0.02 suits layers of 2,500: through
    narrow ones hardly anything passes, and letters are learnt many times more slowly.
    """
    s = shape or Shape()
    ids: dict[str, int] = tokenizer.get_vocab()
    text: dict[str, Any] = dict(
        vocab_size=max(ids.values()) + 1,
        hidden_size=s.width,
        intermediate_size=s.mlp,
        num_hidden_layers=s.layers,
        num_attention_heads=s.heads,
        num_key_value_heads=s.kv_heads,
        head_dim=s.head_dim,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=round(1 / math.sqrt(s.width), 4),
        rope_parameters=dict(rope_type="default", rope_theta=10_000.0, mrope_section=[4, 6, 6], mrope_interleaved=True),
    )
    vision: dict[str, Any] = dict(
        depth=s.vision_layers,
        hidden_size=s.vision_width,
        intermediate_size=s.vision_mlp,
        num_heads=s.vision_heads,
        out_hidden_size=s.width,
        patch_size=s.patch,
        spatial_merge_size=s.merge,
        temporal_patch_size=2,
        num_position_embeddings=s.positions,
        deepstack_visual_indexes=[1, max(2, s.vision_layers - 2)],
        initializer_range=round(1 / math.sqrt(s.vision_width), 4),
    )
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        tie_word_embeddings=True,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast, shape: Shape | None = None, *, seed: int = 0
) -> Qwen3VLForConditionalGeneration:
    """A freshly initialised model, float32.

    Vision positions start at a standard deviation of 0.3: at a smaller one they drown in the patch embeddings, and
    pointing is learnt several times more slowly.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3VLForConditionalGeneration(config(tokenizer, shape))
        torch.nn.init.normal_(model.model.visual.pos_embed.weight, std=0.3)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model


def image_processor_config(shape: Shape | None = None, max_side: int = 2560) -> dict[str, Any]:
    """Settings of the Qwen image processor for this base: pictures keep their size, rounded to whole tokens."""
    s = shape or Shape()
    return dict(
        patch_size=s.patch,
        merge_size=s.merge,
        temporal_patch_size=2,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        size={"shortest_edge": s.token * s.token, "longest_edge": max_side * max_side},
    )
