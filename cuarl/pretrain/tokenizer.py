"""The tokenizer of the shipped base: a small byte-level BPE with Qwen's special tokens and chat format.

The text it produces and reads is that of the large Qwen3-VL models, character for character. Only the cutting differs:
the constant stretches of that text (the tool description, the JSON around a call's arguments) are one token each, and
every number below 1000 is one token, so that a tap costs six tokens instead of thirty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
MARKUP = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
ROLES = ("system\n", "user\n", "assistant\n")

_CUT = r"\p{N}{1,3}|, |'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+"
"""How text is cut before merging: numbers of up to three digits, the separator of coordinates, words, punctuation."""

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\n' -}}"
    "{%- if message.content is string -%}{{- message.content -}}{%- else -%}"
    "{%- for part in message.content -%}"
    "{%- if part.type == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}"
    "{%- else -%}{{- part.text -}}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}"
    "{{- '<|im_end|>\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)


def scaffolds(tool: str) -> list[str]:
    """The constant stretches of a call to ``tool``, each of which becomes one token."""
    opening = f'<tool_call>\n{{"name": "{tool}", "arguments": {{"action": '
    point = (
        "click",
        "long_press",
        "swipe",
        "left_click",
        "right_click",
        "double_click",
        "triple_click",
        "middle_click",
        "mouse_move",
        "left_click_drag",
    )
    text = (("type", "text"), ("answer", "text"), ("open", "text"), ("system_button", "button"))
    ending = ("terminate", ("success", "failure"))
    return [
        *(f'{opening}"{a}", "coordinate": [' for a in point),
        *(f'{opening}"{a}", "{k}": "' for a, k in text),
        *(f'{opening}"{ending[0]}", "status": "{s}"}}}}\n</tool_call>' for s in ending[1]),
        f'{opening}"wait", "time": ',
        f'{opening}"key", "keys": ["',
        f'{opening}"scroll", "pixels": ',
        *(f'{opening}"system_button", "button": "{b}"}}}}\n</tool_call>' for b in ("Back", "Home", "Menu", "Enter")),
    ]


CLOSINGS = (
    "]}}\n</tool_call>",
    '"}}\n</tool_call>',
    "}}\n</tool_call>",
    '"]}}\n</tool_call>',
    '], "coordinate2": [',
    '], "time": ',
)


def build_tokenizer(
    corpus: Iterable[str], *, system_prompts: Sequence[str], tools: Sequence[str], vocab_size: int = 3072
) -> PreTrainedTokenizerFast:
    """Train the merges on ``corpus`` and add the special and constant tokens.

    ``vocab_size`` counts everything. Any text can be encoded (byte fallback); words outside ``corpus`` just take more
    tokens. The result depends on the arguments alone.
    """
    added = [*SPECIAL, *MARKUP, *ROLES, *system_prompts, *CLOSINGS]
    for tool in tools:
        added += scaffolds(tool)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_CUT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    numbers = [str(n) for n in range(1000)] * 2_000
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(added),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    bpe.train_from_iterator(_chain(numbers, [", "] * 2_000, corpus), trainer)
    bpe.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    bpe.add_tokens([AddedToken(t, normalized=False) for t in added[len(SPECIAL) :]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
        model_max_length=8192,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _chain(*parts: Iterable[str]) -> Iterable[str]:
    for part in parts:
        yield from part
