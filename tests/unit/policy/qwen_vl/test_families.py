"""The other families that loading accepts, at miniature size, against their own forward pass."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3VLMoeConfig,
    Qwen3VLMoeForConditionalGeneration,
)

from cuarl.policy.generate import generate
from cuarl.policy.jobs import Job
from cuarl.policy.load import FAMILIES, load_policy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.conftest import save_model
from tests.unit.policy.pictures import prompt, screen
from tests.unit.policy.qwen_vl.test_score import _plain, _rows, _score


def _qwen2(text: dict[str, Any], special: dict[str, int]) -> Any:
    text |= {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 14}
    return Qwen2VLForConditionalGeneration(Qwen2VLConfig(text_config=text, vision_config=vision, **special))


def _qwen3_moe(text: dict[str, Any], special: dict[str, int]) -> Any:
    text |= dict(
        head_dim=32,
        moe_intermediate_size=32,
        num_experts=4,
        num_experts_per_tok=2,
        rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[4, 6, 6], mrope_interleaved=True),
    )
    vision = dict(
        depth=2,
        hidden_size=32,
        intermediate_size=48,
        num_heads=2,
        out_hidden_size=64,
        patch_size=16,
        num_position_embeddings=64,
        deepstack_visual_indexes=[0],
    )
    return Qwen3VLMoeForConditionalGeneration(Qwen3VLMoeConfig(text_config=text, vision_config=vision, **special))


@pytest.fixture(params=["qwen2_vl", "qwen3_vl_moe"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    return save_qwen(request.param, tmp_path, tokenizer)


def save_qwen(name: str, folder: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    ids = tokenizer.get_vocab()
    text = dict(
        vocab_size=max(ids.values()) + 1,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    special = dict(
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = (_qwen2 if name == "qwen2_vl" else _qwen3_moe)(text, special)
    assert model.config.model_type == name and name in FAMILIES
    size = {"shortest_edge": 32 * 32, "longest_edge": 512 * 512}
    return save_model(folder, model, tokenizer, patch_size=14 if name == "qwen2_vl" else 16, size=size)


def test_a_family_is_scored_and_sampled_like_its_own_forward_pass(folder: Path) -> None:
    policy = load_policy(ModelSpec(model=str(folder)))
    rows = _rows(policy)
    scores = _score(policy, rows)
    for i, r in enumerate(rows):
        expected = _plain(policy, r)[range(len(r.answer_ids)), list(r.answer_ids)]
        assert (scores.logprobs[i, : len(r.answer_ids)] - expected).abs().max() < 1e-4
    sampled = generate(policy, [Job(prompt(policy, "go", screen(1)), SamplingParams(max_tokens=4), seed=1)])[0]
    assert len(sampled.token_ids) == 4


def test_a_family_takes_an_adapter(folder: Path) -> None:
    policy = load_policy(ModelSpec(model=str(folder), lora=LoraSpec(targets="attention"), train="adapter"))
    assert len(list(policy.parameters())) == 2 * 4 * 2, "two matrices for four projections of two layers"
