"""Random models of real shapes, and the tokenizer, chat template and picture settings that both sides use."""

from __future__ import annotations

import json
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForImageTextToText, PreTrainedTokenizerFast
from transformers.utils import get_json_schema

from benchmarks.peers.phone import APPS, SYSTEM, Environment, progress, request
from benchmarks.peers.work import SHAPES, Work

IMAGES: dict[str, Any] = dict(
    patch_size=16,
    merge_size=2,
    temporal_patch_size=2,
    image_mean=[0.5] * 3,
    image_std=[0.5] * 3,
    size={"shortest_edge": 32 * 32, "longest_edge": 4096 * 4096},
)
CALL = '<tool_call>\n{{"name": "click", "arguments": {{"x": {x}, "y": {y}}}}}\n</tool_call>'
"""How a click is called, which TRL reads."""
LORA_TARGETS = r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"

_QWEN_TOKENS, _TOKENS = 151_669, {"tiny": 2992}
_SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
_TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
TEMPLATE = """\
{%- macro shown(content) -%}
  {%- if content is string -%}{{ content }}{%- else -%}
    {%- for part in content -%}
      {%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ part.text }}{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}
  {{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\\n' -}}
  {%- if message.role == 'tool' -%}
    {{- '<tool_response>\\n' + shown(message.content) + '\\n</tool_response>' -}}
  {%- else -%}
    {{- shown(message.content) -}}
  {%- endif -%}
  {%- if message.role == 'system' and tools -%}
    {{- '\\n\\nThese are the functions:' -}}
    {%- for tool in tools -%}{{- '\\n' + (tool | tojson) -}}{%- endfor -%}
    {{- '\\nWrite a call as a JSON object of name and arguments between two tool_call tags.' -}}
  {%- endif -%}
  {%- for call in message.tool_calls or [] -%}
    {{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) -}}
    {{- '}\\n</tool_call>' -}}
  {%- endfor -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""
"""Qwen's conversations in few words: ChatML, pictures and calls between their tags, results as the user's."""


def make_tokenizer(shape: str) -> PreTrainedTokenizerFast:
    """One token a word of the contest's texts, a digit and a letter: a call has 29, as many as with Qwen's own.

    As many tokens as the shape's own tokenizer has, most of which nothing is made of.
    """
    raw = Tokenizer(models.BPE())
    words = Regex(r"\p{N}|[^\s\p{L}\p{N}]?\p{L}+| ?[^\s\p{L}\p{N}]+\n*|\s+")
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(words, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    raw.decoder = decoders.ByteLevel()
    texts = [SYSTEM, TEMPLATE, str(click_schema()), "user\nassistant\n", progress(1, 2), CALL.format(x=1, y=2)]
    texts += [request(app) for app in APPS]
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=list(_SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(texts * 2, trainer)
    raw = _filled(raw, _TOKENS.get(shape, _QWEN_TOKENS) - len(_TAGS))
    raw.add_tokens(list(_TAGS))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=1 << 20
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _filled(tokenizer: Tokenizer, size: int) -> Tokenizer:
    """With words that occur nowhere, up to ``size``."""
    state = json.loads(tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    vocabulary |= {f"<filler {i}>": i for i in range(len(vocabulary), size)}
    return Tokenizer.from_str(json.dumps(state))


def click_schema() -> dict[str, Any]:
    """The one tool, as TRL's trainer describes it to the model."""
    schema: dict[str, Any] = get_json_schema(Environment(1, 1, 1, 0.0).click)
    return schema


def make_model(work: Work, tokenizer: Any) -> Any:
    """A random model of that shape, the same on both sides: float32 on a CPU, bfloat16 on a GPU."""
    torch.manual_seed(0)
    if work.shape == "tiny":
        from cuarl.pretrain.architecture import Shape, build_model

        model = build_model(tokenizer, Shape(layers=4, patch=16)).to(work.device)  # the shipped base's
    else:
        from benchmarks.real_sizes import configuration

        with torch.device(work.device):
            model = AutoModelForImageTextToText.from_config(
                configuration(SHAPES[work.shape], tokenizer),
                attn_implementation="sdpa",
                dtype=torch.float32 if work.device == "cpu" else torch.bfloat16,
            )
        model.generation_config.eos_token_id = tokenizer.eos_token_id
        model.generation_config.pad_token_id = tokenizer.pad_token_id
    # a name is looked for when a card is written
    model.name_or_path = model.config._name_or_path = "random"
    return (model.to(torch.bfloat16) if work.device == "cuda" else model).eval()
