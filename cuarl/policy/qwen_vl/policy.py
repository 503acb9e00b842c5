"""A loaded policy: the model with its tokenizer, image processor and special ids, and batches for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import nn

from cuarl.errors import ConfigError
from cuarl.policy import companions
from cuarl.policy.adapters.folded import Folded
from cuarl.policy.generic.render import PlainRenderer
from cuarl.policy.inputs import ModelInputs, Row, Side
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.decoder import Decoder
from cuarl.policy.qwen_vl.engine.engine import Engine
from cuarl.policy.qwen_vl.engine.fits import fits
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.inputs import collate_tokens
from cuarl.policy.qwen_vl.render import Renderer
from cuarl.policy.qwen_vl.vision import VisionTower
from cuarl.policy.sampler import Message, PromptTooLong
from cuarl.policy.special import SpecialIds
from cuarl.trajectory import Sampled


class PolicyModel:
    """One policy in this process.

    ``model`` is what trains and saves (a PEFT model if there is an adapter); ``base`` is the transformers model under
    it. ``version`` counts updates: whoever changes the weights calls ``updated()``. ``kv_bytes`` bounds the keys and values
    that sampling on a GPU keeps; None: half of the memory that is free then.
    """

    def __init__(
        self, model: Any, tokenizer: Any, images: ImageProcessor, special: SpecialIds, *, name: str,
        revision: str | None = None, train_vision: bool = False, cache_bytes: int | None = None,
    ) -> None:  # fmt: skip
        self._name_parts(model, tokenizer, special, name=name, revision=revision)
        self.images = images
        self.renderer: Renderer | PlainRenderer = Renderer(tokenizer, images, special)
        room = _room_for_features(self.device) if cache_bytes is None else cache_bytes
        self.vision = VisionTower(self.base.model.visual, images, trained=train_vision, cache_bytes=room)
        self.decoder = Decoder(self.base.model.language_model, self.base.lm_head)

    def _name_parts(self, model: Any, tokenizer: Any, special: SpecialIds, *, name: str, revision: str | None) -> None:
        self.model = model
        self.base: Any = model.get_base_model() if hasattr(model, "peft_config") else model
        self.tokenizer = tokenizer
        self.special = special
        self.name = name
        self.revision = revision
        self.version = 0
        self.halted: Callable[[], bool] = bool
        """Asked before each token: whether sampling is to end at once, since those who wait for answers are cancelled."""
        self._folded = Folded(model) if self.has_adapter else None
        self._suppressed: torch.Tensor | None = None
        self._engine: Engine | None = None
        self.kv_bytes: int | None = None
        self._has_engine: bool | None = None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.base.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the base's weights (an adapter's may differ)."""
        return cast(torch.dtype, self.base.get_input_embeddings().weight.dtype)

    @cached_property
    def context(self) -> int:
        """The most tokens that prompt and answer may have together."""
        return int(self.base.config.get_text_config().max_position_embeddings)

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        return int(self.base.config.get_text_config().hidden_size)

    @property
    def has_adapter(self) -> bool:
        """Whether an adapter lies on the base."""
        return self.model is not self.base

    def suppressed(self) -> torch.Tensor | None:
        """The ids that are never sampled, on this policy's device; None if there are none."""
        if self._suppressed is None and self.special.suppressed:
            with torch.inference_mode(False):
                self._suppressed = torch.tensor(self.special.suppressed, device=self.device)
        return self._suppressed

    def engine(self) -> Engine | None:
        """What samples from this policy; None where only its own layers can (see ``fits``)."""
        if self._has_engine is None:
            self._has_engine = fits(self)
        if self._engine is None and self._has_engine:
            self._engine = Engine(self, budget_bytes=self.kv_bytes)
        return self._engine

    def forget_prompts(self) -> None:
        """Compute every prompt anew from now on: what is sampled then doesn't depend on what was sampled before."""
        if self._engine is not None:
            self._engine.forget()

    def release_engine(self, keep_bytes: int = 0) -> None:
        """Give back the memory that only sampling needs, if it is more than ``keep_bytes``."""
        if self._engine is not None and self._engine.nbytes > keep_bytes:
            self._engine.release()

    def updated(self, version: int | None = None) -> None:
        """Say that the weights have changed: the next samples carry ``version`` (one more than before if None)."""
        self.version = self.version + 1 if version is None else version
        if self.vision.trained:
            self.forget_pictures()

    def forget_pictures(self) -> None:
        """Encode every picture anew from now on."""
        self.vision.cache.clear()

    @property
    def resize(self) -> Callable[[int, int], tuple[int, int]] | None:
        """Width and height in pixels that the model sees of a screen, from the screen's; None if that is not known."""
        return self.images.resized

    def seen_size(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a ``width`` x ``height`` picture; None if that is not known."""
        return self.resize(width, height) if self.resize is not None else None

    def save_companions(self, folder: str) -> None:
        """Write tokenizer and image processor into ``folder``, beside the weights."""
        companions.write(folder, self.tokenizer, self.images.processor)

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters that are trained."""
        return (p for p in self.model.parameters() if p.requires_grad)

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Inside, the policy is the base without its adapter; restored after an error too.

        Raises ``ConfigError`` for a policy without an adapter: there is nothing to compare with.
        """
        if not self.has_adapter:
            raise ConfigError(
                "a fully fine-tuned policy does not keep its base",
                hint="--kl-reference start, or --kl-penalty-coef 0, or --use-lora",
            )
        with self.model.disable_adapter():
            yield

    def folded(self) -> AbstractContextManager[None]:
        """Inside, a float32 adapter is folded into the weights, for sampling; nothing may be trained meanwhile."""
        return self._folded.active(self.version) if self._folded is not None else nullcontext()

    def render(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Prompt | PromptTooLong:
        """Render a conversation to the ids of a prompt (see ``Renderer.render``)."""
        return self.renderer.render(messages, max_tokens=max_tokens)

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """Ids of an answer as if it had been sampled, end of turn included: how demonstrations are tokenised."""
        return self.renderer.encode_answer(text)

    def written(
        self, messages: Sequence[Message], text: str, max_tokens: int | None = None
    ) -> Sampled | PromptTooLong:  # fmt: skip
        """A record of a given answer, tokenised as if it had been sampled; without logprobs, for it was not.

        The prompt must fit into the context, and into ``max_tokens``.
        """
        room = self.context - 1
        prompt = self.render(messages, max_tokens=room if max_tokens is None else min(room, max_tokens))
        if isinstance(prompt, PromptTooLong):
            return prompt
        return Sampled(
            prompt_ids=prompt.ids, images=tuple(s.ref for s in prompt.screenshots), token_ids=self.encode_answer(text),
            text=text, policy=self.name, policy_version=self.version,
        )  # fmt: skip

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without a closing end token."""
        kept = list(ids[:-1] if ids and ids[-1] in self.special.eos else ids)
        return str(self.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def collate(self, rows: Sequence[Row], *, padding: Side = "left", pack: bool = False) -> ModelInputs:
        """Pad, place and encode ``rows`` into a batch on this policy's device.

        ``padding`` is the side of the prompts' padding; the answers' is always the right. With ``pack``, rows that extend
        one another become one sequence, for scoring (``packing``). Neither changes a result. A
        frozen vision tower runs here, without gradients and once per screenshot; a trained one runs in the scorer.
        Raises ValueError if a row's image tokens and screenshots don't agree.
        """
        inputs, screens = collate_tokens(rows, self.images, self.special, padding, pack=pack)
        if inputs.vision is not None:
            if self.vision.trained:
                seen = inputs.vision._replace(pixels=self.images.patches(screens))
            else:
                seen = inputs.vision._replace(features=self.vision.features(screens))
            inputs = replace(inputs, vision=seen)
        return inputs.to(self.device)

    def embed_prompts(self, inputs: ModelInputs) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embeddings (P, L, D) of the prompts with their pictures in place, and what deeper levels add (levels, N, D)."""
        hidden = self.decoder.embed(inputs.prompt_ids)
        seen = inputs.vision
        if seen is None:
            return hidden, None
        features = seen.features
        if features is None and seen.pixels is not None:
            features = self.vision.encode(seen.pixels, seen.grids)
        assert features is not None, "collate gives features or pixels"
        features = features.to(hidden.dtype)
        flat = hidden.reshape(-1, hidden.shape[-1]).index_copy(0, seen.index, features[0])
        return flat.view_as(hidden), features[1:]


def _room_for_features(device: torch.device) -> int:
    """Bytes of encoded pictures to keep: 512 MiB, or a sixteenth of a GPU's memory.

    A screen of 1080x2400 takes 40 MiB at the width of a 2B model, and those of a step are read again in each turn and in
    the update.
    """
    if device.type != "cuda":
        return 512 << 20
    return max(512 << 20, int(torch.cuda.get_device_properties(device).total_memory) // 16)
