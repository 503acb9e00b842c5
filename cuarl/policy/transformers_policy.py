"""What policies of both kinds have in common: a model of transformers, its tokenizer, perhaps an adapter."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any, Self, cast

import torch
from torch import nn

from cuarl.errors import ConfigError
from cuarl.policy.adapters.folded import Folded
from cuarl.policy.base import ScoreOptions, TokenScores
from cuarl.policy.inputs import Inputs, Row, Side
from cuarl.policy.jobs import Job
from cuarl.policy.prompt import Prompt, Renderer
from cuarl.policy.sampler import Message, PromptTooLong
from cuarl.policy.special import SpecialIds
from cuarl.policy.work import Work
from cuarl.trajectory import Sampled
from cuarl.types import Screenshot


class TransformersPolicy(ABC):
    """A ``base.Policy`` over a model of transformers; how it computes is left to the packages.

    ``model`` is what trains and saves (a PEFT model if there is an adapter); ``base`` is the transformers model under
    it.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        renderer: Renderer,
        *,
        name: str,
        revision: str | None,
    ) -> None:
        self.model = model
        self.base: Any = model.get_base_model() if hasattr(model, "peft_config") else model
        self.tokenizer = tokenizer
        self.renderer = renderer
        self.name = name
        self.revision = revision
        self.version = 0
        self.halted: Callable[[], bool] = bool
        self._folded = Folded(model) if self.has_adapter else None
        self._suppressed: torch.Tensor | None = None

    @property
    def special(self) -> SpecialIds:
        """The ids that mean something to the machinery."""
        return self.renderer.special

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.base.parameters()).device

    def on_device(self) -> AbstractContextManager[None]:
        """Inside, this policy's GPU is the thread's current one.

        Kernels that are not torch's own, and captured graphs, go to the current GPU wherever their tensors are; a
        thread begins with the first.
        """
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()

    @property
    def dtype(self) -> torch.dtype:
        """Type of the base's weights (an adapter's may differ)."""
        return cast(torch.dtype, self.base.get_input_embeddings().weight.dtype)

    @cached_property
    def context(self) -> int:
        """The most tokens that prompt and answer may have together."""
        return int(getattr(self.base.config.get_text_config(), "max_position_embeddings", 1 << 17))

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
            # kept for training, too, which takes no tensor of inference mode
            with torch.inference_mode(False):
                self._suppressed = torch.tensor(self.special.suppressed, device=self.device)
        return self._suppressed

    # --- messages and tokens ---------------------------------------------------------------------------------------

    def render(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> Prompt | PromptTooLong:
        """Render a conversation to the ids of a prompt (see ``prompt.Renderer``)."""
        return self.renderer.render(messages, max_tokens=max_tokens)

    def encode_answer(self, text: str) -> tuple[int, ...]:
        """Ids of an answer as if it had been sampled, end of turn included: how demonstrations are tokenised."""
        return self.renderer.encode_answer(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without a closing end token."""
        return self.renderer.decode(ids)

    def seen_size(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a ``width`` x ``height`` picture; None if that is not known."""
        return self.renderer.seen_size(width, height)

    def picture_tokens(self, width: int, height: int) -> int:
        """How many image tokens a ``width`` x ``height`` picture has in a prompt."""
        return self.renderer.picture_tokens(width, height)

    def shown(self, screenshot: Screenshot) -> Screenshot:
        """``screenshot`` at the size at which the model sees it; as it is if that is not known."""
        return self.renderer.shown(screenshot)

    def written(self, messages: Sequence[Message], text: str, max_tokens: int | None = None) -> Sampled | PromptTooLong:
        """A record of a given answer, tokenised as if it had been sampled; without logprobs, for it was not.

        The prompt must fit into the context, and into ``max_tokens``.
        """
        room = self.context - 1
        prompt = self.render(messages, max_tokens=room if max_tokens is None else min(room, max_tokens))
        if isinstance(prompt, PromptTooLong):
            return prompt
        return Sampled(
            prompt_ids=prompt.ids,
            images=tuple(s.ref for s in prompt.screenshots),
            token_ids=self.encode_answer(text),
            text=text,
            policy=self.name,
            policy_version=self.version,
        )

    # --- sampling and scoring --------------------------------------------------------------------------------------

    @abstractmethod
    def collate(self, rows: Sequence[Row], *, padding: Side = "left", pack: bool = False) -> Inputs:
        """``rows`` as a batch on this policy's device (see ``Policy.collate``)."""

    @abstractmethod
    def answer(self, jobs: Sequence[Job]) -> None:
        """Sample an answer to every job."""

    @abstractmethod
    def score(self, inputs: Inputs, temperature: torch.Tensor, options: ScoreOptions) -> TokenScores:
        """Score the real answer tokens of a batch (see ``Policy.score``)."""

    def folded(self) -> AbstractContextManager[None]:
        """Inside, a float32 adapter is folded into the weights, for sampling; nothing may be trained meanwhile."""
        return self._folded.active(self.version) if self._folded is not None else nullcontext()

    # --- weights and state -----------------------------------------------------------------------------------------

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

    def updated(self, version: int | None = None) -> None:
        """Say that the weights have changed: the next samples carry ``version`` (one more than before if None)."""
        self.version = self.version + 1 if version is None else version

    @abstractmethod
    def save_companions(self, folder: str) -> None:
        """Write tokenizer and processor into ``folder``, beside the weights."""

    def with_model(self, model: Any, memo: dict[int, object]) -> Self:
        """A copy of this policy around ``model``, a deep copy of its own made with ``memo``; caches start empty."""
        memo[id(self.tokenizer)] = self.tokenizer
        # made anew by whoever needs it first, on the device that the copy is on
        memo |= {id(held): None for held in (self._suppressed,) if held is not None}
        if self._folded is not None:
            memo[id(self._folded)] = Folded(model)
        return copy.deepcopy(self, memo)

    @property
    @abstractmethod
    def unpadded(self) -> bool:
        """Whether answers can be scored without padding, as the policy is now."""

    def in_lanes(self, screenshots: Iterable[Screenshot]) -> bool:
        """Whether parts of a batch that shows these are better scored by one thread each than by all together."""
        return False

    @abstractmethod
    def forget_pictures(self) -> None:
        """Encode every picture anew from now on."""

    @abstractmethod
    def recall_pictures(self) -> None:
        """Know again what was known before that, where it changes no bit."""

    @abstractmethod
    def forget_prompts(self) -> None:
        """Compute every prompt anew from now on: what is sampled then doesn't depend on what was sampled before."""

    @abstractmethod
    def release_memory(self, keep_bytes: int = 0) -> None:
        """Give back the memory that only sampling needs, if it is more than ``keep_bytes``."""

    @abstractmethod
    def take_work(self) -> Work | None:
        """What was computed since this was last called; None where nobody counts."""
