"""Messages to token ids, as the model's own processor renders them, with past answers spliced in by their ids.

The chat template gives the text around the parts. Special tokens cut that text into pieces that a tokenizer encodes
independently of each other, so a conversation is the concatenation of encoded pieces, of image placeholders (as many as
the picture has tokens) and of sampled ids; no answer is ever tokenised twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from cuarl.errors import AgentError
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText, Text
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot

SAMPLED = "\x00sampled\x00"
"""Stands for a past answer while the template is applied; no tokenizer ever sees it."""


class Prompt(NamedTuple):
    """A rendered conversation: ids with image placeholders expanded, and the screenshots in prompt order."""

    ids: tuple[int, ...]
    screenshots: tuple[Screenshot, ...]


class Renderer(Protocol):
    """Knows what a model's prompts look like; needs its tokenizer and processor, not its weights."""

    @property
    def special(self) -> SpecialIds:
        """The ids that mean something to the machinery."""
        ...

    def render(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Prompt | PromptTooLong:
        """Render a conversation, with the assistant's turn opened behind it."""
        ...

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """Ids of an answer as if it had been sampled, end of turn included."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without a closing end token."""
        ...

    def picture_tokens(self, width: int, height: int) -> int:
        """How many image tokens a ``width`` x ``height`` picture has in a prompt."""
        ...

    def seen_size(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a ``width`` x ``height`` picture; None if that is not known."""
        ...

    def shown(self, screenshot: Screenshot) -> Screenshot:
        """``screenshot`` at the size at which the model sees it; as it is if that is not known."""
        ...


class TextCodec:
    """Text to ids and back for one tokenizer; remembers what constant pieces encode to."""

    def __init__(self, tokenizer: Any, special: SpecialIds) -> None:
        self._tokenizer, self.special = tokenizer, special
        self._end = tokenizer.convert_ids_to_tokens(special.end_of_turn)
        ids = (special.image, special.vision_start, special.vision_end, special.end_of_turn)
        self._reserved = (*tokenizer.all_special_tokens, *tokenizer.convert_ids_to_tokens(list(ids)), SAMPLED)
        marks = {*tokenizer.convert_ids_to_tokens(sorted({*ids, *special.eos}))} - {None}
        self._typed = re.compile(f"({'|'.join(map(re.escape, sorted(marks, key=len, reverse=True)))})")
        self._encode = lru_cache(maxsize=4096)(self._encode_piece)

    def _sampled(self, part: SampledText, *, ends: bool) -> tuple[int, ...]:
        """Ids of a past answer, closed by the end of turn if the template wants one and it was not sampled."""
        ids = self._encode_said(part.text) if part.token_ids is None else part.token_ids
        closed = bool(ids) and ids[-1] in self.special.eos
        return ids if closed or not ends else (*ids, self.special.end_of_turn)

    def _encode_piece(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _encode_said(self, text: str) -> tuple[int, ...]:
        """Ids of an answer that is text: marks of turns' ends and of pictures are spelled, for they were typed."""
        ids: list[int] = []
        for i, piece in enumerate(self._typed.split(text)):
            spelled = (
                self._tokenizer.encode(piece, add_special_tokens=False, split_special_tokens=True) if i % 2 else ()
            )
            ids += spelled or (self._encode(piece) if piece else ())
        return tuple(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without a closing end token."""
        kept = list(ids[:-1] if ids and ids[-1] in self.special.eos else ids)
        return str(self._tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """Ids of an answer as if it had been sampled, end of turn included (demonstrations)."""
        return (*self._encode_said(text), self.special.end_of_turn)


def shape(message: Message, reserved: tuple[str, ...]) -> tuple[str, tuple[tuple[tuple[str, str], ...], ...]]:
    """A message without its pictures and ids: hashable, and all that a chat template depends on."""
    content: list[tuple[tuple[str, str], ...]] = []
    for part in message.parts:
        match part:
            case Text(text):
                found = next((t for t in reserved if t in text), None)
                if found is not None:
                    raise AgentError(f"a prompt text holds the special token {found!r}", where=repr(text[:80]))
                content.append((("type", "text"), ("text", text)))
            case Picture():
                content.append((("type", "image"),))
            case SampledText():
                content.append((("type", "text"), ("text", SAMPLED)))
    return message.role, tuple(content)
