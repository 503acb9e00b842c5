"""Messages to token ids for any model family, the text around a picture as the family's own processor writes it.

A stretch of conversation between sampled answers is encoded in one piece, pictures included: tokens may reach across
the edges of what a placeholder grows into (line breaks, for instance).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jinja2

from cuarl.errors import AgentError
from cuarl.policy.generic.processor import FamilyPictures
from cuarl.policy.prompt import SAMPLED, Prompt, TextCodec, shape
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot


class GenericRenderer(TextCodec):
    """Renders messages for one processor."""

    def __init__(self, pictures: FamilyPictures, special: SpecialIds) -> None:
        super().__init__(pictures.processor.tokenizer, special)
        self._pictures = pictures
        self._image = str(self._tokenizer.convert_ids_to_tokens(special.image))
        self._template = lru_cache(maxsize=1024)(self._apply_template)
        self._reserved = (*self._reserved, pictures.placeholder)
        self._marks = re.compile(f"({SAMPLED}(?:{re.escape(self._end)})?)")
        self._opening = self._opened_by()

    def render(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, answer: bool = True
    ) -> Prompt | PromptTooLong:
        """Render a conversation; ``answer`` opens the assistant's turn behind it.

        More than ``max_tokens`` ids give a ``PromptTooLong``. Raises ``AgentError`` if a text holds special tokens, or
        the template refuses the conversation.
        """
        pieces = self._template(tuple(shape(m, self._reserved) for m in messages), answer)
        screens = tuple(p.screenshot for m in messages for p in m.parts if isinstance(p, Picture))
        answers = (p for m in messages for p in m.parts if isinstance(p, SampledText))
        unseen = iter(screens)
        ids: list[int] = []
        for piece in pieces:
            if piece.startswith(SAMPLED):
                ids += self._sampled(next(answers), ends=piece.endswith(self._end))
                continue
            text, *rest = piece.split(self._pictures.placeholder)
            text += "".join(self._expansion(next(unseen)) + after for after in rest)
            ids += self._encode(text)
        ids = [*(self._opening if ids[: len(self._opening)] != self._opening else ()), *ids]
        if max_tokens is not None and len(ids) > max_tokens:
            return PromptTooLong(needed=len(ids), limit=max_tokens)
        return Prompt(tuple(ids), screens)

    def picture_tokens(self, width: int, height: int) -> int:
        """How many image tokens a ``width`` x ``height`` picture has in a prompt."""
        return self._pictures.expansion(width, height).count(self._image)

    def seen_size(self, width: int, height: int) -> None:
        """Not known: each family has its own rule, and formats that need it have one, too."""

    def shown(self, screenshot: Screenshot) -> Screenshot:
        """``screenshot`` as it is: what the model sees of it is not known."""
        return screenshot

    def _expansion(self, screenshot: Screenshot) -> str:
        return self._pictures.expansion(screenshot.width, screenshot.height)

    def _apply_template(self, shaped: tuple[Any, ...], answer: bool) -> tuple[str, ...]:
        conversation = [{"role": role, "content": [dict(c) for c in content]} for role, content in shaped]
        try:
            text = self._pictures.lay_out(conversation, answer=answer)
        except jinja2.TemplateError as error:
            roles = ", ".join(m["role"] for m in conversation)
            raise AgentError(f"the model's chat template refuses the conversation: {error}", where=roles) from error
        return tuple(piece for piece in self._marks.split(text) if piece)

    def _opened_by(self) -> list[int]:
        """What the tokenizer puts before every text, where the template does not write it itself."""
        bos = self._tokenizer.bos_token_id
        return [bos] if bos is not None and self._tokenizer.encode("x")[:1] == [bos] else []
