"""Messages to token ids for Qwen-VL: image placeholders as many as a picture has tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from cuarl.policy.prompt import SAMPLED, Prompt, TextCodec, shape
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText, Text
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot


class QwenRenderer(TextCodec):
    """Renders messages for one tokenizer and Qwen's image processor."""

    def __init__(self, tokenizer: Any, images: ImageProcessor, special: SpecialIds) -> None:
        super().__init__(tokenizer, special)
        self.images = images
        image = re.escape(tokenizer.convert_ids_to_tokens(special.image))
        self._cut = re.compile(f"({image}|{SAMPLED}(?:{re.escape(self._end)})?)")
        self._template = lru_cache(maxsize=1024)(self._apply_template)

    def render(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, answer: bool = True
    ) -> Prompt | PromptTooLong:
        """Render a conversation; ``answer`` opens the assistant's turn behind it.

        More than ``max_tokens`` ids give a ``PromptTooLong``. Raises ``AgentError`` if a text holds special tokens.
        """
        pieces = self._template(tuple(shape(m, self._reserved) for m in messages), answer)
        parts = (p for m in messages for p in m.parts if not isinstance(p, Text))
        ids: list[int] = []
        screens: list[Screenshot] = []
        for piece in pieces:
            if isinstance(piece, tuple):
                ids += piece
                continue
            part = next(parts)
            if isinstance(part, Picture):
                screens.append(part.screenshot)
                ids += [self.special.image] * self.picture_tokens(part.screenshot.width, part.screenshot.height)
            elif isinstance(part, SampledText):
                ids += self._sampled(part, ends=piece == "sampled+end")
        if max_tokens is not None and len(ids) > max_tokens:
            return PromptTooLong(needed=len(ids), limit=max_tokens)
        return Prompt(tuple(ids), tuple(screens))

    def picture_tokens(self, width: int, height: int) -> int:
        """How many image tokens a ``width`` x ``height`` picture has in a prompt."""
        return self.images.grid(width, height).tokens

    def seen_size(self, width: int, height: int) -> tuple[int, int]:
        """Width and height in pixels that the model sees of a ``width`` x ``height`` picture."""
        return self.images.resized(width, height)

    def shown(self, screenshot: Screenshot) -> Screenshot:
        """``screenshot`` as the model sees it."""
        return self.images.shown(screenshot)

    def _apply_template(self, shape: tuple[Any, ...], answer: bool) -> tuple[tuple[int, ...] | str, ...]:
        """The pieces of a conversation: ids of constant text, or what to fill in (``image``, ``sampled…``)."""
        conversation = [{"role": role, "content": [dict(c) for c in content]} for role, content in shape]
        text = self._tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=answer)
        return tuple(self._pieces(text))

    def _pieces(self, text: str) -> Iterator[tuple[int, ...] | str]:
        for piece in self._cut.split(text):
            if piece.startswith(SAMPLED):
                yield "sampled+end" if piece.endswith(self._end) else "sampled"
            elif self._cut.fullmatch(piece):
                yield "image"
            elif piece:
                yield self._encode(piece)
