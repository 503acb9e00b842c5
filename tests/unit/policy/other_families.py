"""Miniature models of families that are run as they are, with random weights: for tests here and of the command
line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPImageProcessorPil,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessorPil,
    Gemma3Processor,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessorPil,
    Idefics3Processor,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

_CONTENT = (
    "{%- for p in m.content -%}{%- if p.type == 'image' -%}{{- 'PICTURE' -}}{%- else -%}{{- p.text -}}{%- endif -%}"
    "{%- endfor -%}"
)
_TEXT = dict(
    hidden_size=64,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=4096,
)
_VISION = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8
)


def _tokenizer(special: list[str], template: str, *, eos: str, pad: str, **extra: object) -> PreTrainedTokenizerFast:
    """Bytes, runs of line breaks as one token (which pictures must not cut), and a family's special tokens."""
    letters = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ĊĊ", "ĊĊĊ"]
    bpe = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(letters)}, merges=[("Ċ", "Ċ"), ("ĊĊ", "Ċ")]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in special])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=eos,
        pad_token=pad,
        clean_up_tokenization_spaces=False,
        chat_template=template,
        **extra,
    )


def _idefics3(folder: Path) -> None:
    """Splits a picture into parts, each with its row and column in text, and a whole one."""
    template = (
        "{%- for m in messages -%}{{- '<|im_start|>' + m.role + ':' -}}"
        + _CONTENT.replace("PICTURE", "<image>")
        + (
            "{{- '<end_of_utterance>\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- 'assistant:' -}}{%- "
            "endif -%}"
        )
    )
    places = [f"<row_{r}_col_{c}>" for r in range(1, 4) for c in range(1, 4)]
    special = [
        "<|im_start|>",
        "<|im_end|>",
        "<end_of_utterance>",
        "<fake_token_around_image>",
        "<image>",
        "<global-img>",
    ]
    tokenizer = _tokenizer([*special, *places], template, eos="<|im_end|>", pad="<|im_end|>")
    ids = tokenizer.get_vocab()
    text = _TEXT | dict(model_type="llama", vocab_size=max(ids.values()) + 3, bos_token_id=None)
    text |= dict(pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    config = Idefics3Config(
        text_config=text,
        vision_config=_VISION,
        scale_factor=2,
        image_token_id=ids["<image>"],
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    model = Idefics3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, ids["<end_of_utterance>"]]
    images = Idefics3ImageProcessorPil(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    _save(folder, model, Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=template))


def _gemma3(folder: Path) -> None:
    """Image tokens see each other both ways; every other layer sees a window; penalties among the model's own
    settings."""
    template = (
        "{{ bos_token }}{%- for m in messages -%}"
        "{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' -}}"
        + _CONTENT.replace("PICTURE", "<start_of_image>")
        + "{{- '<end_of_turn>\n' -}}{%- endfor -%}"
        "{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"
    )
    named = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    special = ["<bos>", "<eos>", "<pad>", "<start_of_turn>", "<end_of_turn>", *named.values()]
    tokenizer = _tokenizer(special, template, eos="<eos>", pad="<pad>", bos_token="<bos>", extra_special_tokens=named)
    ids = tokenizer.get_vocab()
    text = _TEXT | dict(
        vocab_size=max(ids.values()) + 3,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
        final_logit_softcapping=2.0,
    )
    config = Gemma3Config(
        text_config=text,
        vision_config=_VISION,
        mm_tokens_per_image=4,
        image_token_index=ids["<image_soft_token>"],
        boi_token_index=ids["<start_of_image>"],
        eoi_token_index=ids["<end_of_image>"],
    )
    model = Gemma3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = [ids["<eos>"], ids["<end_of_turn>"]]
    model.generation_config.repetition_penalty = 1.5
    images = Gemma3ImageProcessorPil(size={"height": 32, "width": 32})
    _save(folder, model, Gemma3Processor(images, tokenizer, image_seq_length=4, chat_template=template))


def _llava(folder: Path) -> None:
    """Roles in plain text; an answer ends at the end of the sequence."""
    template = (
        "{%- for m in messages -%}{{- m.role | upper + ': ' -}}"
        + _CONTENT.replace("PICTURE", "<image>\n")
        + "{{- '</s>' if m.role == 'assistant' else ' ' -}}{%- endfor -%}"
        "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}"
    )
    tokenizer = _tokenizer(["<s>", "</s>", "<pad>", "<image>"], template, eos="</s>", pad="<pad>")
    ids = tokenizer.get_vocab()
    text = _TEXT | dict(model_type="llama", vocab_size=max(ids.values()) + 3, bos_token_id=None)
    text |= dict(pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    vision = _VISION | dict(model_type="clip_vision_model", num_hidden_layers=3, projection_dim=32)
    config = LlavaConfig(text_config=text, vision_config=vision, image_token_index=ids["<image>"], image_seq_length=16)
    images = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template,
    )
    _save(folder, LlavaForConditionalGeneration(config), processor)


def _save(folder: Path, model: torch.nn.Module, processor: object) -> None:
    for part in (model, processor, processor.tokenizer):  # type: ignore[attr-defined]
        part.save_pretrained(folder)  # type: ignore[operator]


_FAMILIES = {"idefics3": _idefics3, "gemma3": _gemma3, "llava": _llava}
NAMES = tuple(_FAMILIES)


def save_family(name: str, folder: Path) -> Path:
    """Write the miniature model called ``name`` into ``folder``; its weights are the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        try:
            _FAMILIES[name](folder)
        except ImportError as error:
            if "Torchvision" not in str(error):
                raise
            pytest.skip(f"transformers before 5.18 prepares pictures for {name} only where torchvision is installed")
    return folder
