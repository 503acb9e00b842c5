"""The tokenizer of the shipped base: whole words of devices and requests, letters for all others, Qwen's chat format.

The text it produces and reads is that of the large Qwen3-VL models, character for character. Only the cutting differs:
the constant stretches of that text (the tool description, the JSON around a call's arguments) are one token each, and
so is every coordinate on the grid of a hundred steps, so that a tap costs six tokens instead of thirty. A word that is
not in the vocabulary is spelled, letter by letter: then what is read and what is typed line up with what is seen, and a
name never met before is no harder than any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cuarl.policy.tiny import GRID

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
        *(
            f'{opening}"system_button", "button": "{b}"}}}}\n</tool_call>'
            for b in ("Back", "Home", "Menu", "Enter", "Recents")
        ),
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
    """Make the vocabulary of the words of ``corpus``, and add the special and constant tokens.

    ``vocab_size`` bounds everything; the rarest words are left out. Any text can be encoded (byte fallback). The result
    depends on the arguments alone.
    """
    added = [*SPECIAL, *MARKUP, *ROLES, *system_prompts, *CLOSINGS]
    for tool in tools:
        added += scaffolds(tool)
    cut = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_CUT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    numbers = [str(n) for n in range(0, 1000, GRID) if n >= 10]
    fixed = [*letters, *numbers, *(piece for piece, _ in cut.pre_tokenize_str(", "))]
    words = _words(corpus, cut, vocab_size - len(added) - len(fixed), set(fixed))
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys([*fixed, *words]))}
    # no merges: a word is in the vocabulary as a whole or falls to its letters
    bpe = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    bpe.pre_tokenizer = cut
    bpe.decoder = decoders.ByteLevel()
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


def _words(corpus: Iterable[str], cut: pre_tokenizers.PreTokenizer, most: int, known: set[str]) -> list[str]:
    """The most frequent words, of at least three letters, that occur twice or more."""
    counts: Counter[str] = Counter()
    for line in corpus:
        counts.update(piece for piece, _ in cut.pre_tokenize_str(line))
    found = [p for p, n in counts.items() if n > 1 and p not in known and len(p) > 2 and not p.isdigit()]
    return sorted(found, key=lambda p: (-counts[p], p))[: max(0, most)]
