"""The special token ids of a Qwen-VL model."""

from __future__ import annotations

from typing import Any

from cuarl.policy.special import SpecialIds


def special_ids(config: Any, generation_config: Any, tokenizer: Any) -> SpecialIds:
    """Collect the ids from a Qwen-VL configuration, its generation settings and its tokenizer.

    A model may have several end tokens; each of them ends an answer.
    """
    eos = {tokenizer.eos_token_id}
    configured = getattr(generation_config, "eos_token_id", None)
    eos |= set(configured) if isinstance(configured, list | tuple) else {configured}
    eos.discard(None)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    text = config.get_text_config()
    placeholders = {
        getattr(config, name, None)
        for name in ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    }
    beyond = range(max(tokenizer.get_vocab().values()) + 1, text.vocab_size)
    return SpecialIds(
        image=config.image_token_id,
        vision_start=config.vision_start_token_id,
        vision_end=config.vision_end_token_id,
        eos=frozenset(eos),
        end_of_turn=tokenizer.eos_token_id,
        pad=pad,
        suppressed=tuple(sorted({i for i in placeholders if i is not None} | set(beyond))),
    )
