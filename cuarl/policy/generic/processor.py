"""Pictures of any model family, by the family's own processor.

Where a family's patches, their order and the text around them are not known to ``images``, the processor that comes
with the model is asked: once for each size of screen, what the placeholder of a picture grows into, and for each batch,
what the model's own forward pass takes for its pictures.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from PIL import Image

from cuarl.errors import ConfigError
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot

_PLACEHOLDERS = ("image_token", "boi_token", "start_image_token")
"""Where processors keep the token that stands for a whole picture in the text of a chat template."""
_PROBE = (96, 160)


class FamilyPictures:
    """Wraps the processor of a model; ``template`` lays out its conversations.

    Raises ``ConfigError`` if there is no chat template, or none that shows pictures.
    """

    def __init__(self, processor: Any, forward: Any = None) -> None:
        self.processor = processor
        self.template: str | None = getattr(processor, "chat_template", None) or processor.tokenizer.chat_template
        self.placeholder = self._placeholder()
        self._accepted = frozenset(inspect.signature(forward).parameters) if forward is not None else frozenset()
        self.expansion = lru_cache(maxsize=256)(self._expansion)

    def lay_out(self, conversation: Sequence[Mapping[str, Any]], *, answer: bool) -> str:
        """The text of a conversation by the chat template; ``answer`` opens the assistant's turn behind it."""
        return str(
            self.processor.tokenizer.apply_chat_template(
                conversation, chat_template=self.template, tokenize=False, add_generation_prompt=answer
            )
        )

    def _placeholder(self) -> str:
        if self.template is None:
            raise ConfigError(
                "the model has no chat template, so it can't be shown a conversation", hint="use its instruct variant"
            )
        text = self.lay_out([{"role": "user", "content": [{"type": "image"}]}], answer=False)
        known = [getattr(self.processor, name, None) for name in _PLACEHOLDERS]
        found = [token for token in known if token and str(token) in text]
        if not found:
            raise ConfigError("the model's chat template shows no pictures", hint="use a vision-language model")
        return str(found[0])

    def _expansion(self, width: int, height: int) -> str:
        """What the placeholder of a ``width`` x ``height`` picture grows into."""
        ids = self._expansion_ids(width, height)
        return str(self.processor.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _expansion_ids(self, width: int, height: int) -> list[int]:
        made = self.processor(
            text=[self.placeholder], images=[[Image.new("RGB", (width, height))]], add_special_tokens=False
        )
        return list(map(int, made["input_ids"][0]))

    def tensors(self, rows: Sequence[Sequence[Screenshot]]) -> dict[str, torch.Tensor]:
        """What the model's forward pass takes for the pictures of each row; empty if there are none."""
        if not any(rows):
            return {}
        made = self.processor.image_processor(images=[[s.image for s in row] for row in rows], return_tensors="pt")
        return {name: value for name, value in made.items() if name in self._accepted}

    def token_types(self, ids: torch.Tensor, image: int) -> dict[str, torch.Tensor]:
        """1 at image tokens, 0 elsewhere, by the names under which the model's forward pass takes that, if it does."""
        names = self._accepted & {"token_type_ids", "mm_token_type_ids"}
        return {name: (ids == image).long() for name in names}

    def special_ids(self, config: Any, generation_config: Any) -> SpecialIds:
        """Special ids of the model; what a picture's expansion consists of is never sampled.

        Raises ``ConfigError`` if the configuration does not name the image token.
        """
        tokenizer = self.processor.tokenizer
        image = getattr(config, "image_token_id", None)
        image = image if image is not None else getattr(config, "image_token_index", None)
        probe = self._expansion_ids(*_PROBE)
        if image is None or image not in probe:
            raise ConfigError(f"the image token of {config.model_type} is not known: its configuration has none")
        added = set(tokenizer.added_tokens_decoder)
        vocabulary = config.get_text_config().vocab_size
        beyond = range(max(tokenizer.get_vocab().values()) + 1, vocabulary)
        placeholder = tokenizer.convert_tokens_to_ids(self.placeholder)
        named = [getattr(config, n, None) for n in ("video_token_id", "boi_token_index", "eoi_token_index")]
        pictures = {i for i in probe if i in added} | {image, placeholder, *(i for i in named if i is not None)}
        end = self._end_of_turn()
        configured = getattr(generation_config, "eos_token_id", None)
        ends = configured if isinstance(configured, list | tuple) else (configured,)
        eos: set[int] = {end, *(i for i in (tokenizer.eos_token_id, *ends) if i is not None)}
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else end
        return SpecialIds(
            image=image,
            vision_start=placeholder,
            vision_end=placeholder,
            eos=frozenset(eos),
            end_of_turn=end,
            pad=pad,
            suppressed=tuple(sorted((pictures | set(beyond)) - eos)),
        )

    def _end_of_turn(self) -> int:
        """The special token that the template closes an answer with; the tokenizer's end token if there is none."""
        tokenizer, mark = self.processor.tokenizer, "ANSWER"
        asked = {"role": "user", "content": [{"type": "text", "text": "QUESTION"}]}
        answered = {"role": "assistant", "content": [{"type": "text", "text": mark}]}
        behind = self.lay_out([asked, answered], answer=False).rpartition(mark)[2]
        first = tokenizer.encode(behind, add_special_tokens=False)[:1]
        closing = [i for i in first if i in tokenizer.added_tokens_decoder]
        return int(closing[0] if closing else tokenizer.eos_token_id)
