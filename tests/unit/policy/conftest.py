"""Miniature models of both families, with random weights and a small tokenizer, loaded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
)

from cuarl.policy.load import load_policy
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.pretrain.architecture import Shape, build_model
from cuarl.pretrain.tokenizer import CHAT_TEMPLATE, CLOSINGS, SPECIAL, scaffolds
from tests.unit.policy.pictures import SYSTEM

SHAPE = Shape(
    patch=16,
    width=48,
    layers=3,
    heads=4,
    kv_heads=2,
    head_dim=32,
    mlp=64,
    vision_width=32,
    vision_layers=3,
    vision_heads=2,
    vision_mlp=48,
    positions=64,
)


def small_tokenizer(system_prompt: str) -> PreTrainedTokenizerFast:
    """Bytes, one merge ("12"), Qwen's special tokens and chat format: what the shipped one is, without its training."""
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate([*bytes_, "12"])}, merges=[("1", "2")]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    bpe.add_tokens([AddedToken(t, normalized=False) for t in (system_prompt, *scaffolds("mobile_use"), *CLOSINGS)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>", clean_up_tokenization_spaces=False
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return small_tokenizer(SYSTEM)


def save_model(folder: Path, model: Any, tokenizer: PreTrainedTokenizerFast, **processor: Any) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(**processor).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def qwen3_folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerFast) -> Path:
    size = {"shortest_edge": 32 * 32, "longest_edge": 512 * 512}
    return save_model(
        tmp_path_factory.mktemp("qwen3"),
        build_model(tokenizer, SHAPE, seed=1),
        tokenizer,
        patch_size=16,
        size=size,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )


@pytest.fixture(scope="session")
def qwen25_folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: PreTrainedTokenizerFast) -> Path:
    ids = tokenizer.get_vocab()
    config = Qwen2_5_VLConfig(
        text_config=dict(
            vocab_size=max(ids.values()) + 5,
            hidden_size=64,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            rope_parameters=dict(rope_type="default", rope_theta=10_000.0, mrope_section=[2, 3, 3]),
        ),
        vision_config=dict(
            depth=3,
            hidden_size=32,
            intermediate_size=48,
            num_heads=2,
            out_hidden_size=64,
            patch_size=14,
            window_size=56,
            fullatt_block_indexes=[2],
        ),
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        model = Qwen2_5_VLForConditionalGeneration(config)
    size = {"shortest_edge": 28 * 28, "longest_edge": 512 * 512}
    return save_model(tmp_path_factory.mktemp("qwen25"), model, tokenizer, patch_size=14, size=size)


@pytest.fixture(scope="session")
def qwen3(qwen3_folder: Path) -> QwenVLPolicy:
    return load_policy(ModelSpec(model=str(qwen3_folder)))


@pytest.fixture(scope="session")
def qwen25(qwen25_folder: Path) -> QwenVLPolicy:
    return load_policy(ModelSpec(model=str(qwen25_folder)))


@pytest.fixture(params=["qwen3", "qwen25"])
def policy(request: pytest.FixtureRequest) -> QwenVLPolicy:
    """Each family in turn, frozen: tests must not change it."""
    found: QwenVLPolicy = request.getfixturevalue(request.param)
    found.vision.cache.clear()
    return found


@pytest.fixture
def adapted(qwen3_folder: Path) -> QwenVLPolicy:
    """A fresh policy with an adapter that is not zero, to train or change."""
    made = load_policy(ModelSpec(model=str(qwen3_folder), lora=LoraSpec(rank=4), train="adapter"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for name, p in made.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.1)
    return made
